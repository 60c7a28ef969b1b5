/**
 * The socket to the server. It is descriptor 0 of the process, open for reading and writing.
 *
 * Each runtime opens an inherited socket in its own way.
 */
import net from "node:net";

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

interface BunSocket {
  write(data: Uint8Array): number;
  flush(): void;
}

interface BunRuntime {
  connect(options: { fd: number; socket: Record<string, unknown> }): Promise<BunSocket>;
}

export async function openTransport(events: TransportEvents): Promise<Transport> {
  const bun = (globalThis as { Bun?: BunRuntime }).Bun;
  return bun === undefined ? openNodeSocket(events) : openBunSocket(bun, events);
}

function openNodeSocket(events: TransportEvents): Transport {
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

async function openBunSocket(bun: BunRuntime, events: TransportEvents): Promise<Transport> {
  const queue: Uint8Array[] = [];
  let unsent = 0;
  let waiting: (() => void)[] = [];
  const settle = () => {
    const ready = waiting;
    waiting = [];
    for (const resolve of ready) resolve();
  };
  const send = (socket: BunSocket) => {
    while (queue.length > 0) {
      const chunk = queue[0] as Uint8Array;
      const written = socket.write(chunk);
      if (written <= 0) return;
      unsent -= written;
      if (written < chunk.length) {
        queue[0] = chunk.subarray(written);
        return;
      }
      queue.shift();
    }
    settle();
  };
  const close = () => {
    settle();
    events.closed();
  };
  const socket = await bun.connect({
    fd: 0,
    socket: {
      data: (_: BunSocket, chunk: Uint8Array) => events.data(chunk),
      drain: (ready: BunSocket) => send(ready),
      error: () => {},
      end: close,
      close,
    },
  });
  const encoder = new TextEncoder();
  return {
    deferred: false,
    write(text) {
      const bytes = encoder.encode(text);
      unsent += bytes.length;
      queue.push(bytes);
      if (queue.length === 1) send(socket);
    },
    unsent: () => unsent,
    drained: () => (unsent === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}
