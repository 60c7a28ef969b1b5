// The scroll position of a virtual list.

/** The distance from the end at which the list still counts as being there. */
const NEAR_END = 48;
/** The distance from the start and the end at which more items are asked for. */
const NEAR_EDGE = 1_200;

export interface Elements {
  scroller: HTMLElement;
  /** What precedes the items. */
  head: HTMLElement;
}

/** An item that must stay where it is on the screen. */
export interface Anchor {
  key: string;
  /** The distance of the top of the view from the start of the item. */
  by: number;
}

export class Position {
  readonly #elements: () => Elements;
  /** The position that the list or the last event has set, to tell the user's scrolling from ours. */
  #known = -1;

  constructor(elements: () => Elements) {
    this.#elements = elements;
  }

  get #scroller(): HTMLElement {
    return this.#elements().scroller;
  }

  get element(): HTMLElement {
    return this.#scroller;
  }

  /** The height of the view. */
  get height(): number {
    return this.#scroller.clientHeight;
  }

  /** The position in the items, which follow the head. */
  get top(): number {
    return this.#scroller.scrollTop - this.#elements().head.offsetHeight;
  }

  set top(position: number) {
    this.#scroller.scrollTop = position + this.#elements().head.offsetHeight;
    this.note();
  }

  toEnd(): void {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.note();
  }

  /** Takes the present position as known. */
  note(): void {
    this.#known = this.#scroller.scrollTop;
  }

  /** Whether the list was scrolled. */
  get isScrolled(): boolean {
    return this.#known > 0;
  }

  /** Whether the position differs from the known one. */
  get isMoved(): boolean {
    return Math.abs(this.#scroller.scrollTop - this.#known) > 1;
  }

  get isAtEnd(): boolean {
    return this.#toEnd < NEAR_END;
  }

  get #toEnd(): number {
    return this.#scroller.scrollHeight - this.#scroller.scrollTop - this.height;
  }

  get isNearStart(): boolean {
    return this.height > 0 && this.#scroller.scrollTop < NEAR_EDGE;
  }

  get isNearEnd(): boolean {
    return this.height > 0 && this.#toEnd < NEAR_EDGE;
  }

  /** Returns the first visible item by its element, because the offsets may be those of other items already. */
  firstVisible(): Anchor | null {
    const edge = this.#scroller.getBoundingClientRect().top;
    for (const element of this.#scroller.querySelectorAll<HTMLElement>(":scope > .virtual-window > [data-key]")) {
      const at = element.getBoundingClientRect();
      if (at.bottom > edge) return { key: element.dataset["key"] ?? "", by: edge - at.top };
    }
    return null;
  }
}
