/** JSON-RPC 2.0 over a transport, one message per line. */
import { MAX_LINE_BYTES, MAX_OPEN_REQUESTS, MAX_WAITING_REQUESTS } from "./limits.js";
import { ErrorCode, ProtocolError, type ErrorData } from "./protocol.js";
import { openTransport, type Transport } from "./transport.js";

type RequestHandler = (params: any, id: number) => unknown;
type NotificationHandler = (params: any) => void;

interface Message {
  id?: number;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: ErrorData };
}

interface Pending {
  resolve(value: any): void;
  reject(error: Error): void;
}

/** Turns an error of a handler into an error object of the protocol. */
type Describe = (error: unknown) => { code: number; message: string; data?: ErrorData };

export class Connection {
  readonly #requests = new Map<string, RequestHandler>();
  readonly #notifications = new Map<string, NotificationHandler>();
  readonly #pending = new Map<number, Pending>();
  readonly #waiting: (() => void)[] = [];
  readonly #lines = new LineReader(
    (line) => this.#receive(line),
    (head) => this.#refuseLongLine(head),
  );
  #transport: Transport | undefined;
  #nextId = 1;
  #serving = 0;

  constructor(
    private readonly describe: Describe,
    private readonly onClosed: () => void,
  ) {}

  open(): void {
    this.#transport = openTransport({
      data: (chunk) => this.#lines.push(chunk),
      closed: () => this.onClosed(),
    });
  }

  onRequest(method: string, handler: RequestHandler): void {
    this.#requests.set(method, handler);
  }

  onNotification(method: string, handler: NotificationHandler): void {
    this.#notifications.set(method, handler);
  }

  /** Sends a request. Waits for a free place when 256 requests are open. */
  async request<T = any>(method: string, params: unknown): Promise<T> {
    if (this.#pending.size >= MAX_OPEN_REQUESTS) {
      if (this.#waiting.length >= MAX_WAITING_REQUESTS) {
        throw new ProtocolError(ErrorCode.limit, `too many requests to the server are open (${method})`);
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    const id = this.#nextId++;
    const line = encode({ id, method, params });
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#transport?.write(line);
    });
  }

  /** Sends a notification. A message that is too large is dropped. */
  notify(method: string, params: unknown): void {
    try {
      this.#transport?.write(encode({ method, params }));
    } catch {
      // The message does not fit into a line, and a notification has no answer to fail.
    }
  }

  /** Bytes that wait in the socket. */
  unsent(): number {
    return this.#transport?.unsent() ?? 0;
  }

  drained(): Promise<void> {
    return this.#transport?.drained() ?? Promise.resolve();
  }

  /**
   * Makes sure that messages have left the process before code runs that may block the event loop.
   * Most runtimes write at once; then this returns `undefined`.
   */
  flush(): Promise<void> | undefined {
    return this.#transport?.deferred === true ? new Promise((resolve) => setTimeout(resolve, 0)) : undefined;
  }

  #receive(line: string): void {
    let message: Message;
    try {
      message = JSON.parse(line) as Message;
    } catch {
      return this.#sendError(null, { code: ErrorCode.parse, message: "the line is not valid JSON" });
    }
    if (message === null || typeof message !== "object") {
      return this.#sendError(null, { code: ErrorCode.invalidRequest, message: "the line is not a message" });
    }
    if (typeof message.method === "string") {
      if (typeof message.id === "number") void this.#serve(message.id, message.method, message.params ?? {});
      else this.#notice(message.method, message.params ?? {});
    } else if (typeof message.id === "number") {
      this.#settle(message.id, message);
    }
  }

  async #serve(id: number, method: string, params: unknown): Promise<void> {
    const handler = this.#requests.get(method);
    if (handler === undefined) {
      return this.#sendError(id, { code: ErrorCode.methodNotFound, message: `unknown method ${method}` });
    }
    if (this.#serving >= MAX_OPEN_REQUESTS) {
      return this.#sendError(id, { code: ErrorCode.limit, message: "too many requests to the plugin host are open" });
    }
    this.#serving++;
    try {
      const result = await handler(params, id);
      this.#transport?.write(encode({ id, result: result ?? {} }));
    } catch (error) {
      this.#sendError(id, this.describe(error));
    } finally {
      this.#serving--;
    }
  }

  #notice(method: string, params: unknown): void {
    try {
      this.#notifications.get(method)?.(params);
    } catch (error) {
      console.error(`the notification ${method} failed:`, error);
    }
  }

  #settle(id: number, message: Message): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    this.#waiting.shift()?.();
    if (message.error !== undefined && message.error !== null) {
      pending.reject(new ProtocolError(message.error.code, String(message.error.message), message.error.data));
    } else {
      pending.resolve(message.result);
    }
  }

  #sendError(id: number | null, error: { code: number; message: string; data?: ErrorData }): void {
    this.#transport?.write(`${JSON.stringify({ jsonrpc: "2.0", id, error })}\n`);
  }

  #refuseLongLine(head: string): void {
    const id = /"id"\s*:\s*(\d+)/.exec(head);
    const isRequest = head.includes('"method"');
    const message = `the message is larger than ${MAX_LINE_BYTES} bytes`;
    if (id !== null && !isRequest) {
      this.#settle(Number(id[1]), { error: { code: ErrorCode.limit, message } });
    } else {
      this.#sendError(id === null ? null : Number(id[1]), { code: ErrorCode.limit, message });
    }
  }
}

function encode(message: Message): string {
  const line = `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
  // A character takes at most three bytes in UTF-8, so short strings need no exact count.
  if (line.length * 3 > MAX_LINE_BYTES && Buffer.byteLength(line) > MAX_LINE_BYTES) {
    throw new ProtocolError(ErrorCode.limit, `the message is larger than ${MAX_LINE_BYTES} bytes`, {
      kind: "too_large",
    });
  }
  return line;
}

/** Splits a byte stream into lines of at most `MAX_LINE_BYTES`. */
class LineReader {
  #parts: Uint8Array[] = [];
  #length = 0;
  #skipping = false;

  constructor(
    private readonly onLine: (line: string) => void,
    private readonly onLongLine: (head: string) => void,
  ) {}

  push(chunk: Uint8Array): void {
    let rest = chunk;
    for (;;) {
      const end = rest.indexOf(10);
      if (end < 0) {
        this.#keep(rest);
        return;
      }
      this.#keep(rest.subarray(0, end));
      this.#finish();
      rest = rest.subarray(end + 1);
    }
  }

  #keep(part: Uint8Array): void {
    if (part.length === 0 || this.#skipping) return;
    if (this.#length + part.length > MAX_LINE_BYTES) {
      const head = this.#parts[0] ?? part;
      this.#parts = [head.slice(0, 200)];
      this.#skipping = true;
      return;
    }
    // The runtime may reuse the memory of a chunk.
    this.#parts.push(part.slice());
    this.#length += part.length;
  }

  #finish(): void {
    const parts = this.#parts;
    const skipped = this.#skipping;
    this.#parts = [];
    this.#length = 0;
    this.#skipping = false;
    const text = Buffer.concat(parts).toString("utf8");
    if (skipped) this.onLongLine(text);
    else if (text.trim() !== "") this.onLine(text);
  }
}
