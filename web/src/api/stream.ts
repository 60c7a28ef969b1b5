// The stream of events of all directories. It reconnects by itself. The listener fetches its state again after each
// connection, because that also contains what is not in the log: running turns, questions and texts in progress.
import { access } from "./server";
import { address } from "./client";
import type { GlobalEvent } from "./types.gen";

/** The server sends a heartbeat every ten seconds. A stream that is silent for longer is broken. */
const SILENCE_MS = 35_000;
const RETRY_MS = [250, 500, 1_000, 2_000, 4_000];
/** A frame that is longer than this is not from our server. */
const MAX_FRAME = 64 * 1024 * 1024;

export type StreamState = "connecting" | "open" | "lost" | "refused";

/** Cuts the text of a stream into frames. */
export class Frames {
  #rest = "";
  /** Returns the data of the frames that a piece of text completes. */
  push(text: string): string[] {
    this.#rest += text;
    if (this.#rest.length > MAX_FRAME) throw new Error("a frame of the event stream is too long");
    const frames: string[] = [];
    let at = 0;
    for (let end = this.#rest.indexOf("\n\n"); end >= 0; end = this.#rest.indexOf("\n\n", at)) {
      const frame = parse(this.#rest.slice(at, end));
      if (frame) frames.push(frame);
      at = end + 2;
    }
    if (at > 0) this.#rest = this.#rest.slice(at);
    return frames;
  }
}

function parse(text: string): string | null {
  let data = "";
  for (const line of text.split("\n")) {
    if (line.startsWith("data:")) data += (data ? "\n" : "") + line.slice(line[5] === " " ? 6 : 5);
  }
  return data || null;
}

interface Listener {
  onEvent: (event: GlobalEvent) => void;
  onState: (state: StreamState, attempt: number) => void;
  /** Whether an event can be dropped before it is parsed. */
  isIgnored?: (data: string) => boolean;
}

/** Follows the events until the signal aborts. */
export async function follow(listener: Listener, signal: AbortSignal): Promise<void> {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    listener.onState(attempt === 0 ? "connecting" : "lost", attempt);
    try {
      await once(listener, signal, () => (attempt = 0));
    } catch (error) {
      if (error instanceof Refused) {
        listener.onState("refused", attempt);
        return;
      }
      // Any other failure is a lost connection.
    }
    if (signal.aborted) return;
    listener.onState("lost", attempt + 1);
    await pause(RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)] ?? 4_000, signal);
  }
}

class Refused extends Error {}

async function once(listener: Listener, signal: AbortSignal, opened: () => void): Promise<void> {
  const broken = new AbortController();
  const abort = () => broken.abort();
  signal.addEventListener("abort", abort);
  let watchdog = setTimeout(abort, SILENCE_MS);
  const { headers, credentials } = access();
  try {
    const response = await fetch(address("GET /global/event"), {
      headers,
      credentials,
      signal: broken.signal,
      cache: "no-store",
    });
    if (response.status === 401 || response.status === 403) throw new Refused();
    if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const frames = new Frames();
    for (let isFirst = true; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(watchdog);
      watchdog = setTimeout(abort, SILENCE_MS);
      for (const data of frames.push(value)) {
        if (isFirst) {
          isFirst = false;
          opened();
          listener.onState("open", 0);
        }
        if (!listener.isIgnored?.(data)) listener.onEvent(JSON.parse(data) as GlobalEvent);
      }
    }
  } finally {
    clearTimeout(watchdog);
    signal.removeEventListener("abort", abort);
    broken.abort();
  }
}

/** Waits, but not longer than until the network is back or the page is visible again. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      document.removeEventListener("visibilitychange", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    addEventListener("online", end);
    document.addEventListener("visibilitychange", end);
    signal.addEventListener("abort", end);
  });
}
