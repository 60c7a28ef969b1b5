/** Bodies in pieces, with a window that the receiver extends. */
import { STREAM_CHUNK_BYTES, STREAM_WINDOW_BYTES } from "./limits.js";

/** The receiving side: a stream that grants credit for what its reader has taken. */
export class IncomingBody {
  readonly stream: ReadableStream<Uint8Array>;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #queue: Uint8Array[] = [];
  #taken = 0;
  #finished = false;
  #wanted = false;

  constructor(
    private readonly grant: (bytes: number) => void,
    cancel: () => void,
  ) {
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          this.#wanted = true;
          this.#deliver();
        },
        cancel: () => {
          this.#finished = true;
          this.#queue = [];
          cancel();
        },
      },
      { highWaterMark: 0 },
    );
  }

  push(data: string): void {
    if (this.#finished) return;
    this.#queue.push(Buffer.from(data, "base64"));
    this.#deliver();
  }

  end(error?: string): void {
    if (this.#finished) return;
    this.#finished = true;
    if (error !== undefined) {
      this.#queue = [];
      this.#controller.error(new TypeError(error));
    } else if (this.#queue.length === 0) {
      this.#controller.close();
    }
  }

  #deliver(): void {
    const chunk = this.#wanted ? this.#queue.shift() : undefined;
    if (chunk === undefined) return;
    this.#wanted = false;
    this.#controller.enqueue(chunk);
    if (this.#finished) {
      if (this.#queue.length === 0) this.#controller.close();
      return;
    }
    this.#taken += chunk.length;
    // Few large grants are cheaper than many small ones.
    if (this.#taken >= STREAM_WINDOW_BYTES / 4) {
      this.grant(this.#taken);
      this.#taken = 0;
    }
  }
}

/** The sending side: waits until the receiver has room. */
export class OutgoingWindow {
  #room = STREAM_WINDOW_BYTES;
  #waiting: (() => void) | undefined;
  #cancelled = false;

  extend(bytes: number): void {
    if (Number.isFinite(bytes) && bytes > 0) this.#room += bytes;
    this.#waiting?.();
  }

  cancel(): void {
    this.#cancelled = true;
    this.#waiting?.();
  }

  /** Sends a chunk in pieces. Returns false if the receiver has cancelled. */
  async send(chunk: Uint8Array, emit: (data: string) => void): Promise<boolean> {
    for (let start = 0; start < chunk.length; ) {
      while (this.#room <= 0 && !this.#cancelled) {
        await new Promise<void>((resolve) => {
          this.#waiting = resolve;
        });
      }
      if (this.#cancelled) return false;
      const piece = chunk.subarray(start, start + Math.min(STREAM_CHUNK_BYTES, this.#room));
      this.#room -= piece.length;
      start += piece.length;
      emit(Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString("base64"));
    }
    return !this.#cancelled;
  }
}
