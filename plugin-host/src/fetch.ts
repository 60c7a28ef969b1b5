/** Custom `fetch` functions of auth loaders: the server sends the requests of a provider through them. */
import { runAs } from "./attribution.js";
import type { Connection } from "./connection.js";
import { messageOf } from "./errors.js";
import { MAX_FETCH_HANDLES_PER_PLUGIN } from "./limits.js";
import { logError } from "./log.js";
import type { Plugin } from "./plugins.js";
import { ErrorCode, ProtocolError, type FetchParams, type HeaderList } from "./protocol.js";
import { OutgoingWindow } from "./streams.js";

interface Running {
  abort: AbortController;
  window: OutgoingWindow;
}

export class CustomFetches {
  readonly #functions = new Map<string, { plugin: Plugin; run: typeof fetch }>();
  readonly #running = new Map<string, Running>();
  #nextHandle = 1;

  constructor(private readonly connection: Connection) {}

  /** Keeps a function. The oldest one of the plugin is dropped when it has too many. */
  register(plugin: Plugin, run: typeof fetch): string {
    const mine = [...this.#functions].filter(([, entry]) => entry.plugin === plugin);
    const oldest = mine[0];
    if (mine.length >= MAX_FETCH_HANDLES_PER_PLUGIN && oldest !== undefined) this.#functions.delete(oldest[0]);
    const handle = `fetch-${this.#nextHandle++}`;
    this.#functions.set(handle, { plugin, run });
    return handle;
  }

  credit(params: { id: string; bytes: number }): void {
    this.#running.get(params.id)?.window.extend(params.bytes);
  }

  cancel(params: { id: string }): void {
    const running = this.#running.get(params.id);
    running?.abort.abort(new DOMException("the request was cancelled", "AbortError"));
    running?.window.cancel();
  }

  async fetch(params: FetchParams): Promise<unknown> {
    const entry = this.#functions.get(String(params.handle));
    if (entry === undefined)
      throw new ProtocolError(ErrorCode.invalidParams, `there is no fetch ${String(params.handle)}`);
    const { plugin, run } = entry;
    const running: Running = { abort: new AbortController(), window: new OutgoingWindow() };
    this.#running.set(params.id, running);
    try {
      const response = await runAs(plugin, () => run(params.url, requestInit(params, running.abort.signal)));
      // The body follows after the answer to this request.
      setImmediate(() => void this.#sendBody(plugin, params.id, response, running));
      return {
        status: response.status,
        statusText: response.statusText ?? "",
        headers: responseHeaders(response),
        url: response.url || params.url,
      };
    } catch (error) {
      this.#running.delete(params.id);
      throw error;
    }
  }

  async #sendBody(plugin: Plugin, id: string, response: Response, running: Running): Promise<void> {
    const reader = response.body?.getReader();
    let error: string | undefined;
    try {
      while (reader !== undefined) {
        const { done, value } = await reader.read();
        if (done) break;
        const sent = await running.window.send(value, (data) => this.connection.notify("fetch.data", { id, data }));
        if (!sent) {
          await reader.cancel();
          break;
        }
      }
    } catch (cause) {
      error = messageOf(cause);
      if (!running.abort.signal.aborted) logError("the response of a custom fetch failed", cause, plugin.index);
    } finally {
      this.#running.delete(id);
      this.connection.notify("fetch.end", error === undefined ? { id } : { id, error });
    }
  }
}

/** What the AI SDK passes to `fetch`: plain headers and a text as the body. Plugins parse that text. */
function requestInit(params: FetchParams, signal: AbortSignal): RequestInit {
  const init: RequestInit = { method: params.method, headers: Object.fromEntries(params.headers), signal };
  if (params.body !== undefined) {
    const bytes = Buffer.from(params.body, "base64");
    const text = bytes.toString("utf8");
    init.body = Buffer.from(text, "utf8").equals(bytes) ? text : new Uint8Array(bytes);
  }
  return init;
}

function responseHeaders(response: Response): HeaderList {
  // The body that we pass on is already decoded.
  const dropped = ["content-encoding", "content-length", "transfer-encoding"];
  return [...response.headers].filter(([name]) => !dropped.includes(name.toLowerCase()));
}
