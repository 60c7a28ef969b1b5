// Events that wait for the next frame, or for a fetch of the state that they change.
import { batch } from "solid-js";
import type { Event, GlobalEvent } from "../api";
import { coalesce } from "./transcript";

/** The time of a frame that events may use. The rest waits for the next frame. */
const BUDGET_MS = 9;
/** A hidden page has no frames. */
const HIDDEN_MS = 200;

export class EventQueue {
  readonly #apply: (event: Event, directory: string | undefined) => void;
  #waiting: GlobalEvent[] = [];
  #isScheduled = false;
  /** The fetches that are under way. */
  #holds = 0;

  constructor(apply: (event: Event, directory: string | undefined) => void) {
    this.#apply = apply;
  }

  push(event: GlobalEvent): void {
    this.#waiting.push(event);
    this.#schedule();
  }

  /** Holds the events back until `release`. */
  hold(): void {
    this.#holds += 1;
  }

  release(): void {
    this.#holds -= 1;
    if (this.#waiting.length > 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#holds > 0) return;
    this.#isScheduled = true;
    if (document.hidden) setTimeout(() => this.#flush(), HIDDEN_MS);
    else requestAnimationFrame(() => this.#flush());
  }

  #flush(): void {
    this.#isScheduled = false;
    if (this.#holds > 0) return;
    const start = performance.now();
    const events = this.#waiting;
    this.#waiting = [];
    const directories = new Map<Event, string | undefined>();
    const payloads: Event[] = [];
    for (const { payload, directory } of events) {
      // Copies of events for programs that copy sessions.
      if (payload.type === "sync") continue;
      payloads.push(payload as Event);
      directories.set(payload as Event, directory);
    }
    const joined = coalesce(payloads);
    let at = 0;
    batch(() => {
      for (; at < joined.length; at += 1) {
        const event = joined[at];
        if (event) this.#apply(event, directories.get(event));
        if (at % 16 === 15 && performance.now() - start > BUDGET_MS) {
          at += 1;
          break;
        }
      }
    });
    if (at < joined.length) {
      const rest = joined.slice(at).map((payload) => ({ payload, directory: directories.get(payload) }) as GlobalEvent);
      this.#waiting = [...rest, ...this.#waiting];
      this.#schedule();
    }
  }
}
