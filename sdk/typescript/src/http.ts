/**
 * Requests to the server, and its event streams.
 *
 * Every request has a deadline. An event stream reconnects a bounded number of times, tells the server the last event
 * that it received, and throws if the server stays away: a loop over events never ends silently.
 */

export interface ClientConfig {
  /** The address of the server. Default: `http://localhost:4096`. */
  baseUrl?: string;
  /** The directory of all calls that do not name one. */
  directory?: string;
  /** The password of the server (`CODEWRIGHT_SERVER_PASSWORD`). */
  password?: string;
  /** The user name that belongs to the password. Default: `opencode`. */
  username?: string;
  headers?: Record<string, string>;
  fetch?: (request: Request) => Promise<Response>;
  /** Throw an error instead of returning `{ error }`. Default: false. */
  throwOnError?: boolean;
  /** Milliseconds until a call fails. Default: a minute, or an hour for calls that wait for a model. */
  timeout?: number;
  signal?: AbortSignal;
}

/** The options of a call. */
export interface CallOptions extends ClientConfig, StreamOptions {
  parseAs?: "arrayBuffer" | "auto" | "blob" | "formData" | "json" | "stream" | "text";
  responseStyle?: "data" | "fields";
  client?: unknown;
}

/** The options of an event stream. */
export interface StreamOptions {
  onSseError?: (error: unknown) => void;
  onSseEvent?: (event: StreamEvent) => void;
  /** Milliseconds before the first reconnection, doubled each time. Default: 250. */
  sseDefaultRetryDelay?: number;
  /** Reconnections in a row that bring no event before the stream throws. Default: 10. */
  sseMaxRetryAttempts?: number;
  /** The longest pause between two reconnections in milliseconds. Default: 5000. */
  sseMaxRetryDelay?: number;
}

export interface StreamEvent {
  data: unknown;
  event?: string;
  id?: string;
  retry?: number;
}

export interface HttpRequest {
  method: string;
  path: string;
  query: Record<string, unknown>;
  body?: unknown;
  /** Whether the reply waits for a model. */
  isSlow: boolean;
}

/** The server refused a call, or could not be reached (`status` is then undefined). */
export class CodewrightError extends Error {
  override readonly name = "CodewrightError";
  constructor(
    message: string,
    /** The status of the reply. */
    readonly status: number | undefined,
    /** The body of the reply. */
    readonly body: unknown,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const DEADLINE = 60_000;
const SLOW_DEADLINE = 3_600_000;
/** Milliseconds without a byte after which a stream counts as broken. The server sends a heartbeat every ten seconds. */
const SILENCE = 60_000;
/** Characters of one event. */
const MAX_EVENT = 16 * 1024 * 1024;

/** Sends a request and returns `{ data | error, request, response }`, or the data alone. */
export async function send(request: HttpRequest, options: CallOptions): Promise<unknown> {
  const isDataOnly = options.responseStyle === "data";
  let sent: Request | undefined;
  let response: Response | undefined;
  let error: unknown;
  try {
    const deadline = AbortSignal.timeout(options.timeout ?? (request.isSlow ? SLOW_DEADLINE : DEADLINE));
    sent = build(request, options, options.signal ? AbortSignal.any([options.signal, deadline]) : deadline);
    response = await (options.fetch ?? patientFetch)(sent);
    if (response.ok) {
      const data = await read(response, options.parseAs ?? "auto");
      return isDataOnly ? data : { data, request: sent, response };
    }
    error = parse(await response.text());
  } catch (failure) {
    if (sent === undefined) throw failure;
    error = failure;
  }
  if (options.throwOnError) throw toError(error, request, response);
  return isDataOnly ? undefined : { error: error === "" ? {} : error, request: sent, response };
}

/**
 * `fetch` without the deadlines of Node and bun, which end a request after five minutes without a byte although a model
 * may work longer. Every request has a deadline of its own.
 */
function patientFetch(request: Request): Promise<Response> {
  // Node has no other way to its class; a proxy that the program has set is left alone.
  const usual = (globalThis as any)[Symbol.for("undici.globalDispatcher.1")];
  if (patient === undefined && usual?.constructor?.name === "Agent") {
    patient = new usual.constructor({ headersTimeout: 0, bodyTimeout: 0 });
  }
  return fetch(request, { timeout: false, ...(patient === undefined ? {} : { dispatcher: patient }) } as RequestInit);
}

let patient: unknown;

/** Returns an error with the message of the server, and the reply. */
export function toError(error: unknown, request?: HttpRequest, response?: Response): CodewrightError {
  if (error instanceof CodewrightError) return error;
  const body = error as { data?: { message?: unknown }; message?: unknown; name?: unknown } | null | undefined;
  const texts = typeof error === "string" ? [error] : [body?.data?.message, body?.message, body?.name];
  const message = texts.find((text) => typeof text === "string" && text !== "") as string | undefined;
  const call = request === undefined ? "the call" : `${request.method} ${request.path}`;
  const place = response === undefined ? "" : ` (${response.status})`;
  const cause = error instanceof Error ? { cause: error } : undefined;
  return new CodewrightError(`${call} failed${place}: ${message ?? "no reason given"}`, response?.status, error, cause);
}

function build(request: HttpRequest, options: CallOptions, signal: AbortSignal, extra: Record<string, string> = {}): Request {
  const headers = new Headers(options.headers);
  for (const [name, value] of Object.entries(extra)) headers.set(name, value);
  if (options.password !== undefined && !headers.has("authorization")) {
    const bytes = new TextEncoder().encode(`${options.username ?? "opencode"}:${options.password}`);
    headers.set("authorization", `Basic ${btoa(String.fromCharCode(...bytes))}`);
  }
  if (options.directory !== undefined) headers.set("x-opencode-directory", encodeURIComponent(options.directory));
  const init: RequestInit = { method: request.method, headers, signal };
  if (request.body !== undefined) {
    init.body = JSON.stringify(request.body);
    headers.set("content-type", "application/json");
  }
  const base = (options.baseUrl ?? "http://localhost:4096").replace(/\/$/, "");
  const query = toQuery(request.query);
  return new Request(base + request.path + (query === "" ? "" : `?${query}`), init);
}

/** Lists repeat the name, and objects become `name[key]`. */
function toQuery(query: Record<string, unknown>): string {
  const found = new URLSearchParams();
  const add = (name: string, value: unknown): void => {
    if (value === undefined || value === null) return;
    if (Array.isArray(value)) for (const item of value) add(name, item);
    else if (typeof value === "object") for (const [key, inner] of Object.entries(value)) add(`${name}[${key}]`, inner);
    else found.append(name, String(value));
  };
  for (const [name, value] of Object.entries(query)) add(name, value);
  return found.toString();
}

async function read(response: Response, parseAs: NonNullable<CallOptions["parseAs"]>): Promise<unknown> {
  if (parseAs === "stream") return response.body;
  if (response.status === 204 || response.headers.get("content-length") === "0") return {};
  const type = response.headers.get("content-type") ?? "";
  let kind = parseAs;
  if (kind === "auto") {
    if (type === "" || /^(application|text)\/(.+\+)?json/.test(type)) kind = "json";
    else kind = type.startsWith("text/") ? "text" : "blob";
  }
  if (kind !== "json") return response[kind]();
  const text = await response.text();
  return text === "" ? {} : JSON.parse(text);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Reads an event stream, and continues it on a new connection if it breaks. */
export async function* stream(request: HttpRequest, options: CallOptions): AsyncGenerator<unknown, void, unknown> {
  const { signal } = options;
  const [first, longest] = [options.sseDefaultRetryDelay ?? 250, options.sseMaxRetryDelay ?? 5000];
  let lastId: string | undefined;
  let failures = 0;
  while (!signal?.aborted) {
    const connection = new AbortController();
    const abort = () => connection.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    let failure: unknown = new Error("the server ended the stream");
    try {
      const resumed: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId };
      const built = build(request, options, connection.signal, { accept: "text/event-stream", ...resumed });
      const response = await within(SILENCE, connection, (options.fetch ?? fetch)(built));
      if (!response.ok) {
        const error = toError(parse(await response.text()), request, response);
        if (response.status >= 400 && response.status < 500 && response.status !== 429) throw new Refused(error);
        throw error;
      }
      for await (const event of frames(response, connection)) {
        if (event.id !== undefined) lastId = event.id;
        options.onSseEvent?.(event);
        // A stream that only greets makes no progress.
        if ((event.data as { type?: string } | undefined)?.type !== "server.connected") failures = 0;
        if (event.data !== undefined) yield event.data;
      }
    } catch (error) {
      if (error instanceof Refused) throw error.reason;
      failure = error;
    } finally {
      signal?.removeEventListener("abort", abort);
      connection.abort();
    }
    if (signal?.aborted) return;
    options.onSseError?.(failure);
    if (++failures > (options.sseMaxRetryAttempts ?? 10)) throw toError(failure, request);
    await pause(Math.min(first * 2 ** (failures - 1), longest), signal);
  }
}

class Refused {
  constructor(readonly reason: Error) {}
}

async function* frames(response: Response, connection: AbortController): AsyncGenerator<StreamEvent> {
  if (response.body === null) throw new Error("the event stream has no body");
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await within(SILENCE, connection, reader.read());
    if (done) return;
    text += decoder.decode(value, { stream: true });
    // A carriage return at the end may belong to a line end that is not complete.
    const complete = text.endsWith("\r") ? text.slice(0, -1) : text;
    const pieces = complete.replace(/\r\n?/g, "\n").split("\n\n");
    text = pieces.pop() + text.slice(complete.length);
    for (const piece of pieces) {
      const event = frame(piece);
      if (event !== undefined) yield event;
    }
    if (text.length > MAX_EVENT) throw new Error("an event of the stream is too large");
  }
}

/** Parses the lines of one event. */
function frame(text: string): StreamEvent | undefined {
  const event: StreamEvent = { data: undefined };
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    else if (name === "event" || name === "id") event[name] = value;
  }
  if (data.length > 0) event.data = parse(data.join("\n"));
  return data.length > 0 || event.id !== undefined ? event : undefined;
}

async function within<T>(milliseconds: number, connection: AbortController, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => connection.abort(new Error("the event stream is silent")), milliseconds);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** Waits, or returns early if the signal fires. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal?.addEventListener("abort", end, { once: true });
  });
}
