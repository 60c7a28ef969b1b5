// Calls of the server's routes. The types come from its API document.
import { t } from "../text";
import { access, base } from "./server";
import type { Routes } from "./types.gen";

/** The deadline of a call that waits neither for a model nor for a user. */
const DEADLINE_MS = 70_000;

/** A call that the server rejected, or that did not reach it. */
export class ApiError extends Error {
  /** The status of the reply, or 0 if there is none. */
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

type Part<Name extends keyof Routes, Key extends string> =
  Routes[Name] extends Record<Key, infer Value> ? Value : never;
type Need<Key extends string, Value> = [Value] extends [never]
  ? unknown
  : Record<string, never> extends { [Name in keyof Value as undefined extends Value[Name] ? never : Name]: Value[Name] }
    ? { [Name in Key]?: Value }
    : { [Name in Key]: Value };
type Input<Name extends keyof Routes> = Need<"path", Part<Name, "path">> &
  Need<"query", Part<Name, "query">> &
  Need<"body", Part<Name, "body">> &
  Extra;
interface Extra {
  signal?: AbortSignal;
  /** The call waits for a model or a user. */
  long?: boolean;
}
type Reply<Name extends keyof Routes> = Routes[Name]["reply"];
type Loose = { path?: Record<string, unknown>; query?: Record<string, unknown>; body?: unknown } & Extra;
type Args<Name extends keyof Routes> =
  Record<string, never> extends Input<Name> ? [input?: Input<Name>] : [input: Input<Name>];

/** What the app does when the server wants a password. */
let onUnauthorized: () => void = () => {};
export function whenUnauthorized(run: () => void): void {
  onUnauthorized = run;
}

/** Returns the address of a route. */
export function address(
  route: string,
  input: { path?: Record<string, unknown>; query?: Record<string, unknown> } = {},
): URL {
  const template = route.slice(route.indexOf(" ") + 1);
  const path = template.replace(/\{\*?(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(input.path?.[name] ?? "")),
  );
  const url = new URL(path.slice(1), base);
  for (const [name, value] of Object.entries(input.query ?? {})) {
    if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
  }
  return url;
}

/** Sends a request and returns the reply. */
export async function send(
  method: string,
  url: URL,
  input: { body?: unknown; headers?: Record<string, string> } & Extra = {},
): Promise<Response> {
  const { headers: own, credentials } = access();
  const headers: Record<string, string> = { ...own, ...input.headers };
  if (input.body !== undefined) headers["Content-Type"] = "application/json";
  const signals = [input.signal, input.long ? undefined : AbortSignal.timeout(DEADLINE_MS)].filter(
    (one) => one !== undefined,
  );
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      // A deletion is carried out even if the page closes.
      keepalive: method === "DELETE",
      headers,
      credentials,
      body: input.body === undefined ? null : JSON.stringify(input.body),
      signal: signals.length > 0 ? AbortSignal.any(signals) : null,
    });
  } catch (error) {
    if (input.signal?.aborted) throw error;
    throw new ApiError(0, t.unreachable);
  }
  if (response.ok) return response;
  if (response.status === 401) onUnauthorized();
  throw new ApiError(response.status, await reason(response));
}

/** Returns what an error reply says. */
async function reason(response: Response): Promise<string> {
  try {
    const reply = (await response.json()) as { data?: { message?: unknown }; message?: unknown; error?: unknown };
    const message = reply.data?.message ?? reply.message ?? reply.error;
    if (typeof message === "string" && message) return message;
  } catch {
    // Not a reply of this server, but for example of a proxy.
  }
  return response.status === 401 ? t.passwordWrong : t.failedWith(response.status);
}

/** Calls a route and returns its reply. */
export async function call<Name extends keyof Routes>(route: Name, ...args: Args<Name>): Promise<Reply<Name>> {
  return (await callWithHeaders(route, ...args)).reply;
}

/** Calls a route and returns its reply with the headers. */
export async function callWithHeaders<Name extends keyof Routes>(
  route: Name,
  ...args: Args<Name>
): Promise<{ reply: Reply<Name>; headers: Headers }> {
  const input = (args[0] ?? {}) as Loose;
  const method = route.slice(0, route.indexOf(" "));
  const response = await send(method, address(route, input), input);
  if (response.status === 204) return { reply: undefined as Reply<Name>, headers: response.headers };
  const kind = response.headers.get("content-type") ?? "";
  if (!kind.includes("json")) throw new ApiError(response.status, t.otherServer);
  return { reply: (await response.json()) as Reply<Name>, headers: response.headers };
}
