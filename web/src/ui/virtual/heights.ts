// The heights of the items of a virtual list: measured ones, and an estimate for the others.
import { createMemo, createSignal, untrack, type Accessor } from "solid-js";

/** Heights of items that have gone are kept up to this number and twice the number of items. */
const SPARE = 1_000;

export interface Heights {
  /** The start of each item in pixels, and the end of the last one. */
  starts: Accessor<Float64Array>;
  /** Returns the start of an item, without a subscription. */
  startOf: (at: number) => number;
  /** Returns the item at a position in pixels, without a subscription. */
  indexAt: (position: number) => number;
  indexOf: (key: string) => number | undefined;
  /** Stores a measured height. Returns whether it changed. */
  set: (key: string, height: number) => boolean;
  /** Forgets all heights, because the width changed. */
  clear: () => void;
  /** Forgets heights of items that have gone, if there are many. */
  prune: () => void;
  /** Computes the starts again after heights changed. */
  update: () => void;
}

/** Returns the last item that starts at a position or before it. The starts ascend, and the last end follows them. */
export function lastBefore(starts: Float64Array, position: number): number {
  let [low, high] = [0, Math.max(0, starts.length - 2)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

export function createHeights(keys: Accessor<string[]>, estimate: () => number): Heights {
  const known = new Map<string, number>();
  const [version, setVersion] = createSignal(0);
  const starts = createMemo(() => {
    version();
    const all = keys();
    const sums = new Float64Array(all.length + 1);
    for (let at = 0; at < all.length; at += 1) {
      sums[at + 1] = (sums[at] ?? 0) + (known.get(all[at] ?? "") ?? estimate());
    }
    return sums;
  });
  const places = createMemo(() => new Map(keys().map((key, at) => [key, at])));
  return {
    starts,
    startOf: (at) => untrack(starts)[at] ?? 0,
    indexAt: (position) => lastBefore(untrack(starts), position),
    indexOf: (key) => untrack(places).get(key),
    set: (key, height) => {
      if (height === 0 || known.get(key) === height) return false;
      known.set(key, height);
      return true;
    },
    clear: () => known.clear(),
    prune: () => {
      const all = untrack(keys);
      if (known.size <= all.length * 2 + SPARE) return;
      const present = new Set(all);
      for (const key of known.keys()) if (!present.has(key)) known.delete(key);
    },
    update: () => setVersion((one) => one + 1),
  };
}
