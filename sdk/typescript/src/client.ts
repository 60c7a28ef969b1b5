/** The client: a typed method for each route of the server, built from the table of calls. */
import type { Client, Options, RequestResult } from "./gen/client/types.gen.js";
import type { CodewrightClient } from "./gen/sdk.gen.js";
import { type CallOptions, type ClientConfig, type HttpRequest, send, stream, toError } from "./http.js";
import { ROUTES } from "./routes.js";

export type * from "./gen/types.gen.js";
export type { Client, ClientConfig, CodewrightClient, Options, RequestResult };
export { CodewrightError, type CallOptions, type StreamEvent, type StreamOptions } from "./http.js";
export * from "./events.js";
export * from "./parts.js";

type Tree = { [name: string]: unknown };

/** Calls whose reply waits for a model or a user. */
const SLOW = /^(session\.(prompt|command|shell|summarize|init)|v2\.session\.(wait|compact)|experimental\.review\..*|tui\.control\.next|.*\.callback|mcp\.auth\.authenticate)$/;
const IN_QUERY = new Set(["directory", "workspace", "location"]);
const READS = new Set(["GET", "SSE"]);
const configs = new WeakMap<object, ClientConfig>();

/**
 * Creates a client.
 *
 *     const client = createCodewrightClient({ baseUrl: "http://localhost:4096", directory: process.cwd() });
 *     const session = await unwrap(client.session.create({ title: "First" }));
 */
export function createCodewrightClient(config: ClientConfig = {}): CodewrightClient {
  const client: Tree = {};
  for (const line of ROUTES.trim().split("\n")) {
    const [name = "", verb = "", url = "", ...exceptions] = line.split(" ");
    const path = name.split(".");
    const method = path.pop() as string;
    let node = client;
    for (const part of path) node = (node[part] ??= {}) as Tree;
    const hasNone = exceptions[0] === "-";
    node[method] = (...given: [Tree?, CallOptions?]) => {
      const [parameters, options] = hasNone ? [undefined, given[0] as CallOptions | undefined] : given;
      const merged = { ...config, ...options, headers: { ...config.headers, ...options?.headers } };
      const request = place(name, verb, url, exceptions, parameters ?? {});
      if (verb !== "SSE") return send(request, merged);
      return Promise.resolve({ stream: stream(request, merged) });
    };
  }
  configs.set(client, config);
  return client as unknown as CodewrightClient;
}

/** Returns the configuration of a client. */
export function configOf(client: CodewrightClient): ClientConfig {
  return configs.get(client) ?? {};
}

/** Returns the data of a call, or throws its error. */
export async function unwrap<T>(
  call: Promise<{ data: T; error: undefined } | { data: undefined; error: unknown } | { data: T }>,
): Promise<NonNullable<T>> {
  const result = (await call) as { data?: T; error?: unknown; response?: Response };
  if (result.error !== undefined) throw toError(result.error, undefined, result.response);
  return result.data as NonNullable<T>;
}

/** Places the parameters of a call; `routes` in generate.mjs describes the exceptions. */
function place(name: string, verb: string, url: string, exceptions: string[], parameters: Tree): HttpRequest {
  const query: Tree = {};
  const fields: Tree = {};
  let body: unknown;
  const values = { ...parameters };
  const path = url.replace(/\{(\w+)\}/g, (_, key: string) => {
    const value = values[key];
    if (value === undefined || value === null || value === "") throw new TypeError(`${name} needs the parameter \`${key}\``);
    delete values[key];
    const text = encodeURIComponent(String(value));
    return key === "path" ? text.replaceAll("%2F", "/") : text;
  });
  for (const exception of exceptions) {
    const [, mark, parameter = "", key = parameter] = /^([?!=]?)(\w+)(?:>(\w+))?$/.exec(exception) ?? [];
    if (!(parameter in values)) continue;
    const value = values[parameter];
    delete values[parameter];
    if (mark === "=") body = value;
    else if (mark === "?" || (mark === "" && IN_QUERY.has(key))) query[key] = value;
    else fields[key] = value;
  }
  for (const [key, value] of Object.entries(values)) {
    if (READS.has(verb) || IN_QUERY.has(key)) query[key] = value;
    else fields[key] = value;
  }
  if (body === undefined && !READS.has(verb) && Object.keys(fields).length > 0) body = fields;
  return { method: READS.has(verb) ? "GET" : verb, path, query, body, isSlow: SLOW.test(name) };
}
