/** `fetch` to the API of the server, through the socket. It works whether or not the server listens on a port. */
import type { Connection } from "../connection.js";
import { MAX_BODY_BYTES } from "../limits.js";
import type { HeaderList } from "../protocol.js";
import { IncomingBody } from "../streams.js";

export class ServerFetch {
  readonly #bodies = new Map<string, IncomingBody>();
  #nextId = 1;

  constructor(private readonly connection: Connection) {
    connection.onNotification("http.data", ({ id, data }) => this.#bodies.get(id)?.push(data));
    connection.onNotification("http.end", ({ id, error }) => {
      this.#bodies.get(id)?.end(error ?? undefined);
      this.#bodies.delete(id);
    });
  }

  readonly fetch = async (input: Request | URL | string, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    request.signal.throwIfAborted();
    const url = new URL(request.url);
    const id = `http-${this.#nextId++}`;
    const cancel = () => {
      this.connection.notify("http.cancel", { id });
      this.#bodies.delete(id);
    };
    const body = new IncomingBody((bytes) => this.connection.notify("http.credit", { id, bytes }), cancel);
    this.#bodies.set(id, body);
    const onAbort = () => {
      body.end("the request was aborted");
      cancel();
    };
    request.signal.addEventListener("abort", onAbort, { once: true });
    try {
      const params = {
        id,
        method: request.method,
        path: url.pathname + url.search,
        headers: [...request.headers],
        ...(await bodyOf(request)),
      };
      const { status, headers } = await abortable(request.signal, this.connection.request("http", params));
      const response = responseOf(body, status, headers);
      Object.defineProperty(response, "url", { value: request.url });
      return response;
    } catch (error) {
      this.#bodies.delete(id);
      throw error;
    }
  };
}

async function bodyOf(request: Request): Promise<{ body?: string }> {
  if (request.body === null) return {};
  const bytes = Buffer.from(await request.arrayBuffer());
  if (bytes.length > MAX_BODY_BYTES)
    throw new TypeError(`the body of a request is larger than ${MAX_BODY_BYTES} bytes`);
  return { body: bytes.toString("base64") };
}

function responseOf(body: IncomingBody, status: number, headers: HeaderList): Response {
  const hasBody = status !== 204 && status !== 205 && status !== 304;
  return new Response(hasBody ? body.stream : null, { status, headers });
}

function abortable<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
