/**
 * The socket to the server. It is descriptor 0 of the process, open for reading and writing.
 *
 * Each runtime opens an inherited socket in its own way.
 */
import { writeSync } from "node:fs";

export interface Transport {
  /** Queues bytes. They leave the process at once unless the socket is full. */
  write(text: string): void;
  /** Bytes that are queued and not yet written. */
  unsent(): number;
  /** Resolves when the queue is empty or the socket is closed. */
  drained(): Promise<void>;
  /** True if `write` may leave bytes in the process until the event loop turns. */
  readonly deferred: boolean;
}

export interface TransportEvents {
  data(chunk: Uint8Array): void;
  closed(): void;
}

interface BunRuntime {
  stdin: { stream(): { getReader(): { read(): Promise<{ value?: Uint8Array; done: boolean }> } } };
}

export function openTransport(events: TransportEvents): Transport {
  const bun = (globalThis as { Bun?: BunRuntime }).Bun;
  return bun === undefined ? openNodeSocket(events) : openBunStream(bun, events);
}

function openNodeSocket(events: TransportEvents): Transport {
  const net = require("node:net") as typeof import("node:net");
  const socket = new net.Socket({ fd: 0, readable: true, writable: true, allowHalfOpen: false });
  socket.on("data", (chunk: Buffer) => events.data(chunk));
  // A reset is the end of the connection as well. `close` follows.
  socket.on("error", () => {});
  socket.on("close", () => events.closed());
  return {
    deferred: "Deno" in globalThis,
    write: (text) => void socket.write(text),
    unsent: () => socket.writableLength,
    drained: () =>
      new Promise((resolve) => {
        if (socket.writableLength === 0 || socket.destroyed) return resolve();
        socket.once("drain", resolve);
        socket.once("close", () => resolve());
      }),
  };
}

/** How soon a full socket is tried again. */
const RETRY_MS = 2;

/**
 * The sockets of bun have timers, which wake the process up every second as long as one of them is open. So it reads
 * descriptor 0 as its standard input, and writes it as a file.
 */
function openBunStream(bun: BunRuntime, events: TransportEvents): Transport {
  const queue: Uint8Array[] = [];
  let unsent = 0;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let waiting: (() => void)[] = [];
  const settle = () => {
    const ready = waiting;
    waiting = [];
    for (const resolve of ready) resolve();
  };
  const send = () => {
    retry = undefined;
    for (let chunk = queue[0]; chunk !== undefined; chunk = queue[0]) {
      let written: number;
      try {
        written = writeSync(0, chunk);
      } catch (error) {
        const { code } = error as { code?: string };
        if (code === "EAGAIN" || code === "EINTR") {
          retry = setTimeout(send, code === "EINTR" ? 0 : RETRY_MS);
          return;
        }
        // The connection has ended. The reader notices it as well.
        queue.length = 0;
        unsent = 0;
        break;
      }
      unsent -= written;
      if (written < chunk.length) queue[0] = chunk.subarray(written);
      else queue.shift();
    }
    settle();
  };
  const receive = async () => {
    const reader = bun.stdin.stream().getReader();
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        if (next.value !== undefined) events.data(next.value);
      }
    } catch {
      // A reset is the end of the connection as well.
    }
    settle();
    events.closed();
  };
  void receive();
  const encoder = new TextEncoder();
  return {
    deferred: false,
    write(text) {
      const bytes = encoder.encode(text);
      unsent += bytes.length;
      queue.push(bytes);
      if (retry === undefined) send();
    },
    unsent: () => unsent,
    drained: () => (unsent === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}
