// Which items of a virtual list exist as elements.
import { createSignal, untrack, type Accessor } from "solid-js";
import type { Heights } from "./heights";
import type { Position } from "./position";

/** Items outside of the view that exist, in pixels of height. */
const OVERSCAN = 600;

export interface Range {
  from: number;
  to: number;
}

export interface VisibleRange {
  range: Accessor<Range>;
  /** Makes the items that are visible now. */
  look: () => void;
  /**
   * Makes the items that are visible if all have the estimated height, at the end or at the start of the list, without
   * asking the browser for a layout.
   */
  guess: (at: "start" | "end") => void;
  /** Makes items outside of the view, too, from now on. Nothing outside of it exists in the first frame. */
  widen: () => void;
}

export function createRange(
  keys: Accessor<string[]>,
  estimate: () => number,
  heights: Heights,
  position: Position,
): VisibleRange {
  const isEqual = (a: Range, b: Range) => a.from === b.from && a.to === b.to;
  const [range, setRange] = createSignal<Range>({ from: 0, to: 0 }, { equals: isEqual });
  let overscan = 0;
  const look = () => {
    const count = untrack(keys).length;
    if (count === 0) {
      setRange({ from: 0, to: 0 });
      return;
    }
    const { top, height } = position;
    const to = Math.min(count, heights.indexAt(top + height + overscan) + 1);
    setRange({ from: heights.indexAt(top - overscan), to });
  };
  const guess = (at: "start" | "end") => {
    const count = untrack(keys).length;
    const some = Math.min(count, Math.ceil((innerHeight + overscan) / estimate()));
    setRange(at === "end" ? { from: count - some, to: count } : { from: 0, to: some });
  };
  const widen = () => {
    overscan = OVERSCAN;
  };
  return { range, look, guess, widen };
}
