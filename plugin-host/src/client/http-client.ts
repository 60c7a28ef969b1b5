/**
 * The inner HTTP client that SDK clients have as `_client`: requests, errors and interceptors as plugins expect them.
 */
import { openEventStream, type EventStream, type EventStreamOptions } from "./sse.js";

type Fetch = (request: Request) => Promise<Response>;

export interface ClientConfig {
  baseUrl?: string;
  fetch?: Fetch;
  headers?: HeadersLike;
  throwOnError?: boolean;
  responseStyle?: "data" | "fields";
  parseAs?: ParseAs;
  signal?: AbortSignal | null;
  directory?: string;
  [option: string]: unknown;
}

type HeadersLike = Headers | [string, string][] | Record<string, unknown>;
type ParseAs = "arrayBuffer" | "auto" | "blob" | "formData" | "json" | "stream" | "text";

export interface RequestOptions extends ClientConfig, EventStreamOptions {
  url: string;
  method?: string;
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
}

export type Result = unknown;

class Interceptors {
  readonly functions: (((...values: any[]) => unknown) | null)[] = [];

  use(run: (...values: any[]) => unknown): number {
    return this.functions.push(run) - 1;
  }

  eject(which: number | ((...values: any[]) => unknown)): void {
    const index = typeof which === "number" ? which : this.functions.indexOf(which);
    if (index in this.functions) this.functions[index] = null;
  }

  clear(): void {
    this.functions.length = 0;
  }

  async apply<T>(value: T, ...others: unknown[]): Promise<T> {
    let current = value;
    for (const run of this.functions) if (run !== null) current = (await run(current, ...others)) as T;
    return current;
  }
}

type Method = ((options: RequestOptions) => Promise<Result>) & { sse(options: RequestOptions): Promise<EventStream> };

export class HttpClient {
  readonly interceptors = { request: new Interceptors(), response: new Interceptors(), error: new Interceptors() };
  readonly get = this.#method("GET");
  readonly post = this.#method("POST");
  readonly put = this.#method("PUT");
  readonly patch = this.#method("PATCH");
  readonly delete = this.#method("DELETE");
  readonly head = this.#method("HEAD");
  readonly options = this.#method("OPTIONS");
  readonly trace = this.#method("TRACE");
  #config: ClientConfig;

  constructor(config: ClientConfig) {
    this.#config = { ...config };
  }

  readonly getConfig = (): ClientConfig => ({ ...this.#config });

  readonly setConfig = (config: ClientConfig): ClientConfig => {
    const headers = mergeHeaders(this.#config.headers, config.headers);
    this.#config = { ...this.#config, ...config, headers };
    return this.getConfig();
  };

  readonly buildUrl = (options: RequestOptions): string => {
    const base = String(options.baseUrl ?? this.#config.baseUrl ?? "").replace(/\/$/, "");
    const path = options.url.replace(/\{(\w+)\}/g, (whole, name: string) => {
      const value = options.path?.[name];
      return value === undefined || value === null ? whole : encodeURIComponent(String(value));
    });
    const query = toQuery(options.query);
    return base + (path.startsWith("/") ? path : `/${path}`) + (query === "" ? "" : `?${query}`);
  };

  readonly request = async (options: RequestOptions): Promise<Result> => {
    const merged: RequestOptions = { ...this.#config, ...options };
    const request = await this.#buildRequest(merged);
    const send = merged.fetch ?? ((input: Request) => globalThis.fetch(input));
    const sent = await send(request);
    const response = await this.interceptors.response.apply(sent, request, merged);
    if (response.ok) {
      const data = await readData(response, merged.parseAs ?? "auto");
      return merged.responseStyle === "data" ? data : { data, request, response };
    }
    const text = await response.text();
    let body: unknown = text;
    try {
      body = JSON.parse(text);
    } catch {
      // The error stays a text.
    }
    let error = await this.interceptors.error.apply(body, response, request, merged);
    if (error === undefined || error === "" || error === null) error = {};
    if (merged.throwOnError === true) throw wrapError(error, request, response);
    return merged.responseStyle === "data" ? undefined : { error, request, response };
  };

  #method(method: string): Method {
    const call = (options: RequestOptions) => this.request({ ...options, method });
    const sse = async (options: RequestOptions): Promise<EventStream> => {
      const merged: RequestOptions = { ...this.#config, ...options, method };
      const send = merged.fetch ?? ((input: Request) => globalThis.fetch(input));
      return openEventStream(async (headers) => {
        const request = await this.#buildRequest({ ...merged, headers: mergeHeaders(merged.headers, headers) });
        return send(request);
      }, merged);
    };
    return Object.assign(call, { sse });
  }

  async #buildRequest(options: RequestOptions): Promise<Request> {
    const headers = mergeHeaders(this.#config.headers, options.headers);
    const init: RequestInit = { method: options.method ?? "GET", headers, redirect: "follow" };
    if (options.body !== undefined && options.body !== null) {
      init.body = isRawBody(options.body) ? options.body : JSON.stringify(options.body);
      if (!headers.has("content-type") && typeof init.body === "string")
        headers.set("content-type", "application/json");
    }
    if (options.signal !== undefined && options.signal !== null) init.signal = options.signal;
    const request = await this.interceptors.request.apply(new Request(this.buildUrl(options), init), options);
    return withDirectory(request, options.directory);
  }
}

/**
 * Tells the server which directory a request is for. A GET or HEAD request says it in its query, any other one in
 * a header.
 */
function withDirectory(request: Request, directory: string | undefined): Request {
  const name = "x-opencode-directory";
  const header = request.headers.get(name) ?? (directory === undefined ? null : encodeURIComponent(directory));
  if (header === null) return request;
  if (request.method !== "GET" && request.method !== "HEAD") {
    request.headers.set(name, header);
    return request;
  }
  const url = new URL(request.url);
  if (!url.searchParams.has("directory")) url.searchParams.set("directory", decodeHeader(header));
  const rewritten = new Request(url, request);
  rewritten.headers.delete(name);
  return rewritten;
}

function decodeHeader(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

async function readData(response: Response, parseAs: ParseAs): Promise<unknown> {
  if (response.status === 204 || response.headers.get("content-length") === "0") return {};
  const kind = parseAs === "auto" ? kindOf(response.headers.get("content-type")) : parseAs;
  switch (kind) {
    case "stream":
      return response.body;
    case "json": {
      const text = await response.text();
      return text === "" ? {} : JSON.parse(text);
    }
    default:
      return response[kind]();
  }
}

function kindOf(contentType: string | null): Exclude<ParseAs, "auto"> {
  const type = contentType?.split(";")[0]?.trim() ?? "";
  if (type === "") return "stream";
  if (type.startsWith("application/json") || type.endsWith("+json")) return "json";
  if (type === "multipart/form-data") return "formData";
  if (/^(application|audio|image|video)\//.test(type)) return "blob";
  return type.startsWith("text/") ? "text" : "json";
}

/** The error that is thrown with `throwOnError`: a readable message, and the answer of the server as its cause. */
function wrapError(error: unknown, request: Request, response: Response): Error {
  if (error instanceof Error) return error;
  const body = error as { data?: { message?: unknown }; message?: unknown; name?: unknown };
  const texts = typeof error === "string" ? [error] : [body.data?.message, body.message, body.name];
  const message = texts.find((text) => typeof text === "string" && text !== "");
  const fallback = `${request.method} ${new URL(request.url).pathname} failed with status ${response.status}`;
  return new Error((message as string | undefined) ?? fallback, { cause: { body: error, status: response.status } });
}

/** The query as the server reads it: arrays repeat the name, objects become `name[key]`. */
function toQuery(query: Record<string, unknown> | undefined): string {
  const params = new URLSearchParams();
  const add = (name: string, value: unknown): void => {
    if (value === undefined || value === null) return;
    if (Array.isArray(value)) for (const item of value) add(name, item);
    else if (typeof value === "object") for (const [key, inner] of Object.entries(value)) add(`${name}[${key}]`, inner);
    else params.append(name, String(value));
  };
  for (const [name, value] of Object.entries(query ?? {})) add(name, value);
  return params.toString();
}

function mergeHeaders(...sources: (HeadersLike | undefined)[]): Headers {
  const merged = new Headers();
  for (const source of sources) {
    if (source === undefined || source === null) continue;
    const isList = source instanceof Headers || Array.isArray(source);
    for (const [name, value] of isList ? source : Object.entries(source)) {
      if (value === null) merged.delete(name);
      else if (value !== undefined) merged.set(name, String(value));
    }
  }
  return merged;
}

function isRawBody(body: unknown): body is BodyInit {
  return (
    typeof body === "string" ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob ||
    body instanceof FormData ||
    body instanceof URLSearchParams ||
    body instanceof ReadableStream
  );
}
