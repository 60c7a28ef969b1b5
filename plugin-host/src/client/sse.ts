/** Event streams of the server as async generators. */

export interface EventStream {
  stream: AsyncGenerator<unknown, void, unknown>;
}

export interface StreamEvent {
  data: unknown;
  event?: string;
  id?: string;
  retry?: number;
}

export interface EventStreamOptions {
  onSseError?: (error: unknown) => void;
  onSseEvent?: (event: StreamEvent) => void;
  sseDefaultRetryDelay?: number;
  sseMaxRetryAttempts?: number;
  sseMaxRetryDelay?: number;
  signal?: AbortSignal | null;
}

/** Characters of one event that may be held. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;

/** Opens a stream when its first value is read, and again with growing pauses when it breaks. */
export function openEventStream(
  open: (headers: Record<string, string>) => Promise<Response>,
  options: EventStreamOptions,
): EventStream {
  return { stream: events(open, options) };
}

async function* events(
  open: (headers: Record<string, string>) => Promise<Response>,
  options: EventStreamOptions,
): AsyncGenerator<unknown, void, unknown> {
  let lastId: string | undefined;
  let delay = options.sseDefaultRetryDelay ?? 3000;
  const stopped = () => options.signal?.aborted === true;
  for (let attempt = 1; !stopped(); attempt++) {
    try {
      const response = await open(lastId === undefined ? {} : { "Last-Event-ID": lastId });
      if (!response.ok) throw new Error(`the event stream answered with status ${response.status}`);
      if (response.body === null) throw new Error("the event stream has no body");
      for await (const event of parse(response.body, options.signal ?? undefined)) {
        if (event.id !== undefined) lastId = event.id;
        if (event.retry !== undefined) delay = event.retry;
        options.onSseEvent?.(event);
        if (event.data !== undefined) yield event.data;
      }
      return;
    } catch (error) {
      if (stopped()) return;
      options.onSseError?.(error);
      if (options.sseMaxRetryAttempts !== undefined && attempt >= options.sseMaxRetryAttempts) return;
      const pause = Math.min(delay * 2 ** Math.min(attempt - 1, 20), options.sseMaxRetryDelay ?? 30_000);
      await new Promise((resolve) => setTimeout(resolve, pause).unref());
    }
  }
}

async function* parse(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): AsyncGenerator<StreamEvent> {
  const reader = body.getReader();
  const stop = () => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", stop, { once: true });
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text = (text + decoder.decode(value, { stream: true })).replace(/\r\n?/g, "\n");
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const event = parseEvent(text.slice(0, end));
        text = text.slice(end + 2);
        if (event !== undefined) yield event;
      }
      if (text.length > MAX_EVENT_CHARS) throw new Error("an event of the stream is too large");
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

function parseEvent(frame: string): StreamEvent | undefined {
  const data: string[] = [];
  const event: StreamEvent = { data: undefined };
  for (const line of frame.split("\n")) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    else if (name === "event") event.event = value;
    else if (name === "id") event.id = value;
    else if (name === "retry" && /^\d+$/.test(value)) event.retry = Number(value);
  }
  if (data.length > 0) event.data = parseData(data.join("\n"));
  return data.length > 0 || event.id !== undefined || event.retry !== undefined ? event : undefined;
}

function parseData(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
