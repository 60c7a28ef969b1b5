/**
 * Events as async iterators.
 *
 * `events` yields the events of a directory or of a session, over broken connections. `turn` sends a prompt and yields
 * its events until the session is idle. Its end is never lost: after a reconnection the state of the session is read.
 */
import { configOf, unwrap } from "./client.js";
import type { CodewrightClient } from "./gen/sdk.gen.js";
import type { Event, PermissionRequest, SessionPromptAsyncData } from "./gen/types.gen.js";
import { type CallOptions, type StreamOptions, stream, toError } from "./http.js";

export interface EventOptions extends StreamOptions {
  directory?: string;
  /** Only the events of this session. */
  sessionID?: string;
  signal?: AbortSignal;
}

/** Yields events until the signal fires. Throws if the server stays away. */
export async function* events(client: CodewrightClient, options: EventOptions = {}): AsyncGenerator<Event, void, unknown> {
  const { directory, sessionID, ...others } = options;
  const request = { method: "GET", path: "/event", query: { directory, sessionID }, isSlow: false };
  yield* stream(request, { ...configOf(client), ...(others as CallOptions) }) as AsyncGenerator<Event, void, unknown>;
}

export type TurnParameters = { sessionID: string; directory?: string } & NonNullable<SessionPromptAsyncData["body"]>;

/** Milliseconds without an event after which a session that is idle has no more events to repeat. */
const QUIET = 500;

/**
 * Sends a prompt and yields the events of its session until the session is idle; the last event is `session.idle`.
 *
 *     for await (const event of turn(client, { sessionID, parts: [{ type: "text", text: "Fix the test" }] })) …
 *
 * A session that fails sends `session.error` before. Leaving the loop does not stop the model: `client.session.abort` does.
 */
export async function* turn(
  client: CodewrightClient,
  parameters: TurnParameters,
  options: StreamOptions & { signal?: AbortSignal } = {},
): AsyncGenerator<Event, void, unknown> {
  const { sessionID, directory } = parameters;
  const stop = new AbortController();
  const abort = () => stop.abort(options.signal?.reason);
  options.signal?.addEventListener("abort", abort, { once: true });
  const source = events(client, { ...options, directory, sessionID, signal: stop.signal });
  const advance = () => {
    const read = source.next();
    // The last read is not awaited; its failure does not matter any more.
    read.catch(() => {});
    return read;
  };
  let isSent = false;
  let isIdle = false;
  try {
    let next = advance();
    for (;;) {
      const result = isIdle ? await Promise.race([next, quiet()]) : await next;
      if (result === undefined) {
        yield { id: "", type: "session.idle", properties: { sessionID } } as Event;
        return;
      }
      if (result.done) return options.signal?.throwIfAborted();
      next = advance();
      const event = result.value;
      if (event.type === "server.connected") {
        if (isSent) isIdle = await idle(client, sessionID, directory);
        else await prompt(client, parameters, options.signal);
        isSent = true;
        continue;
      }
      yield event;
      if (event.type === "session.idle" && event.properties.sessionID === sessionID) return;
    }
  } finally {
    options.signal?.removeEventListener("abort", abort);
    stop.abort();
    source.return().catch(() => {});
  }
}

async function prompt(client: CodewrightClient, parameters: TurnParameters, signal?: AbortSignal): Promise<void> {
  const sent = await client.session.promptAsync(parameters, { signal });
  if (sent.error !== undefined) throw toError(sent.error, undefined, sent.response);
}

/** Returns whether a session has no running turn. */
async function idle(client: CodewrightClient, sessionID: string, directory?: string): Promise<boolean> {
  const { data, error, response } = await client.session.status({ directory });
  if (error !== undefined) throw toError(error, undefined, response);
  const status = (data as { [id: string]: { type: string } })[sessionID];
  return status === undefined || status.type === "idle";
}

function quiet(): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), QUIET));
}

export type PermissionReply = "once" | "always" | "reject";

/**
 * Answers permission requests, those that wait already and those that come, until the signal fires. `decide` returns
 * the reply, or `undefined` to leave a request to another client.
 */
export async function answerPermissions(
  client: CodewrightClient,
  decide: (request: PermissionRequest) => PermissionReply | undefined | Promise<PermissionReply | undefined>,
  options: EventOptions = {},
): Promise<void> {
  const { directory } = options;
  const seen = new Set<string>();
  const answer = async (request: PermissionRequest) => {
    if (seen.has(request.id) || (options.sessionID !== undefined && request.sessionID !== options.sessionID)) return;
    seen.add(request.id);
    const reply = await decide(request);
    if (reply === undefined) return;
    const { error, response } = await client.permission.reply({ requestID: request.id, directory, reply });
    // A request that another client answered meanwhile is gone, which is no failure.
    if (error !== undefined && response?.status !== 404) throw toError(error, undefined, response);
  };
  for await (const event of events(client, options)) {
    if (event.type === "permission.asked") await answer(event.properties);
    if (event.type === "permission.replied") seen.delete(event.properties.requestID);
    if (event.type !== "server.connected") continue;
    for (const request of await unwrap(client.permission.list({ directory }))) await answer(request);
  }
}
