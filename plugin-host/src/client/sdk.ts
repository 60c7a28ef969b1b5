/** Clients with the shape of the official SDK, built from tables of routes. */
import { HttpClient, type ClientConfig, type RequestOptions } from "./http-client.js";
import { ROUTES_V1 } from "./routes-v1.js";

type Tree = { [name: string]: unknown };

interface Route {
  name: string[];
  method: string;
  url: string;
}

/** The default client: `client.session.prompt({path: {id}, query, body})`. */
export function createClient(config: ClientConfig): Tree {
  const inner = new HttpClient(config);
  const client = build(
    ROUTES_V1,
    inner,
    (route) =>
      (options: Partial<RequestOptions> = {}) =>
        send(inner, route, options),
  );
  // The calls for the sign-in of MCP servers exist under both names.
  (client["mcp"] as Tree)["auth"] = client["auth"];
  return client;
}

/** The v2 client: flat parameters, `client.session.prompt({sessionID, parts})`. */
export function createClientV2(config: ClientConfig): Tree {
  const { ROUTES_V2 } = require("./routes-v2.js") as typeof import("./routes-v2.js");
  const inner = new HttpClient(config);
  return build(
    ROUTES_V2,
    inner,
    (route) =>
      (parameters: Record<string, unknown> = {}, options: Partial<RequestOptions> = {}) =>
        send(inner, route, { ...options, ...placeParameters(route, parameters) }),
  );
}

function send(inner: HttpClient, route: Route, options: Partial<RequestOptions>): Promise<unknown> {
  const request = { ...options, url: route.url } as RequestOptions;
  if (route.method === "SSE") return inner.get.sse(request);
  return inner.request({ ...request, method: route.method });
}

function build(table: string, inner: HttpClient, call: (route: Route) => unknown): Tree {
  const client: Tree = {};
  attach(client, inner);
  for (const route of parseRoutes(table)) {
    let node = client;
    for (const name of route.name.slice(0, -1)) {
      if (node[name] === undefined) node[name] = attach({}, inner);
      node = node[name] as Tree;
    }
    node[route.name.at(-1) as string] = call(route);
  }
  return client;
}

/** Plugins reach the inner client through every part of the client. It is not listed among the keys. */
function attach(node: Tree, inner: HttpClient): Tree {
  Object.defineProperty(node, "_client", { value: inner, writable: true, configurable: true });
  return node;
}

function parseRoutes(table: string): Route[] {
  return table
    .trim()
    .split("\n")
    .map((line) => {
      const [name = "", method = "", url = ""] = line.split(" ");
      return { name: name.split("."), method, url };
    });
}

/** Places flat parameters: names of the path, then the query of reading calls and the body of the others. */
function placeParameters(route: Route, parameters: Record<string, unknown>): Partial<RequestOptions> {
  const path: Record<string, unknown> = {};
  const query: Record<string, unknown> = {};
  const body: Record<string, unknown> = {};
  const reads = route.method === "GET" || route.method === "SSE" || route.method === "HEAD";
  for (const [name, value] of Object.entries(parameters)) {
    if (route.url.includes(`{${name}}`)) path[name] = value;
    else if (reads || name === "directory" || name === "workspace" || name === "location") query[name] = value;
    else body[name] = value;
  }
  return { path, query, ...(Object.keys(body).length > 0 ? { body } : {}) };
}
