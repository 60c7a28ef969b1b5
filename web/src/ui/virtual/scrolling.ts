// What keeps a virtual list in its place while items grow, come and go: it stays at its end, or the first visible item
// stays where it is.
import { untrack } from "solid-js";
import type { Heights } from "./heights";
import type { Anchor, Position } from "./position";
import type { VisibleRange } from "./range";

/** What the list does for its owner. */
export interface Callbacks {
  /** Whether the list stays at its end while items grow, as a transcript does. */
  isSticky: () => boolean;
  keys: () => string[];
  onStart: () => void;
  onEnd: () => void;
  onAtEnd: (isAtEnd: boolean) => void;
}

export class Scrolling {
  readonly #list: Callbacks;
  readonly #heights: Heights;
  readonly #position: Position;
  readonly #visible: VisibleRange;
  /** Whether the list stays at its end now. */
  #sticks: boolean;
  /** The item that must stay in its place until the next frame. */
  #kept: Anchor | null = null;
  /** The request of a frame, or 0. */
  #frame = 0;

  constructor(list: Callbacks, heights: Heights, position: Position, visible: VisibleRange) {
    this.#list = list;
    this.#heights = heights;
    this.#position = position;
    this.#visible = visible;
    this.#sticks = list.isSticky();
  }

  /** Makes the first items, or the last ones of a list that stays at its end. */
  guess(): void {
    this.#visible.guess(this.#sticks ? "end" : "start");
  }

  /** Keeps the first visible item in its place while heights change. */
  hold(): void {
    if (!this.#kept && !this.#sticks) this.#kept = this.#anchor();
  }

  #anchor(): Anchor | null {
    const { top } = this.#position;
    const at = this.#heights.indexAt(top);
    const key = untrack(this.#list.keys)[at];
    return key === undefined ? null : { key, by: top - this.#heights.startOf(at) };
  }

  /** Restores the place in the list, and makes the items that are visible there. */
  settle(): void {
    this.#frame = 0;
    if (this.#sticks) this.#position.toEnd();
    else this.#restore();
    this.#visible.look();
    this.#ask();
  }

  #restore(): void {
    if (!this.#kept) return;
    const at = this.#heights.indexOf(this.#kept.key);
    if (at !== undefined) {
      const wanted = this.#heights.startOf(at) + this.#kept.by;
      if (Math.abs(wanted - this.#position.top) > 0.5) this.#position.top = wanted;
    }
    this.#kept = null;
  }

  /** Settles in the next frame. */
  later(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.settle());
  }

  cancel(): void {
    cancelAnimationFrame(this.#frame);
  }

  /** Asks for more items if an edge is near. */
  #ask(): void {
    if (this.#position.isNearStart) this.#list.onStart();
    if (this.#position.isNearEnd) this.#list.onEnd();
  }

  /** Follows a change of the items. */
  onKeys(before: string[] | undefined): void {
    if (before?.length === 0) this.guess();
    else if (before && !this.#sticks && !this.#kept && this.#position.isScrolled) {
      this.#kept = this.#position.firstVisible();
    }
    this.#heights.prune();
    this.later();
  }

  onScroll(): void {
    if (this.#list.isSticky()) {
      // Content that grows moves the end away; only the user's scrolling leaves it.
      if (this.#position.isAtEnd) this.#sticks = true;
      else if (this.#position.isMoved) this.#sticks = false;
      this.#list.onAtEnd(this.#sticks);
    }
    this.#position.note();
    this.#visible.look();
    this.#ask();
  }

  toEnd(): void {
    this.#sticks = this.#list.isSticky();
    this.#position.toEnd();
    this.later();
    this.#list.onAtEnd(true);
  }

  /** Scrolls an item to the top. */
  to(key: string): void {
    const at = this.#heights.indexOf(key);
    if (at === undefined) return;
    this.#sticks = false;
    this.#kept = { key, by: 0 };
    this.#position.top = this.#heights.startOf(at);
    this.#visible.look();
    this.later();
    // Items in between are measured only when they appear.
    requestAnimationFrame(() => {
      this.#kept = { key, by: 0 };
      this.settle();
    });
  }
}
