import { createRoot } from "solid-js";
import { describe, expect, test } from "vitest";
import { createHeights, lastBefore } from "../src/ui/virtual/heights";
import { Position } from "../src/ui/virtual/position";
import { createRange } from "../src/ui/virtual/range";

const KEYS = ["a", "b", "c", "d"];

/** A view of 100 pixels at a position, after a head of 20 pixels. */
function positionAt(scrollTop: number, scrollHeight = 420): Position {
  const scroller = { scrollTop, scrollHeight, clientHeight: 100 } as HTMLElement;
  return new Position(() => ({ scroller, head: { offsetHeight: 20 } as HTMLElement }));
}

describe("heights", () => {
  test("an item begins where the one before it ends", () => {
    createRoot((dispose) => {
      const heights = createHeights(
        () => KEYS,
        () => 100,
      );
      expect([...heights.starts()]).toEqual([0, 100, 200, 300, 400]);
      expect(heights.startOf(2)).toBe(200);
      expect(heights.indexOf("c")).toBe(2);
      expect(heights.indexOf("x")).toBeUndefined();
      dispose();
    });
  });

  test("only a new height counts, and none that is not measured", () => {
    createRoot((dispose) => {
      const heights = createHeights(
        () => KEYS,
        () => 100,
      );
      expect([heights.set("a", 0), heights.set("a", 30), heights.set("a", 30), heights.set("a", 31)]).toEqual([
        false,
        true,
        false,
        true,
      ]);
      dispose();
    });
  });

  test("the item at a position is found", () => {
    const starts = Float64Array.of(0, 10, 30, 60);
    const positions = [-5, 0, 9, 10, 29, 30, 59, 60, 1_000];
    expect(positions.map((position) => lastBefore(starts, position))).toEqual([0, 0, 0, 1, 1, 2, 2, 2, 2]);
    expect(lastBefore(Float64Array.of(0), 5)).toBe(0);
  });
});

describe("position", () => {
  test("it is that in the items, which follow the head", () => {
    const position = positionAt(50);
    expect(position.top).toBe(30);
    position.top = 100;
    expect(position.element.scrollTop).toBe(120);
    expect([position.isMoved, position.isScrolled]).toEqual([false, true]);
  });

  test("a list that the user scrolled has moved", () => {
    const position = positionAt(50);
    position.note();
    position.element.scrollTop = 52;
    expect(position.isMoved).toBe(true);
  });

  test("the end counts from 48 pixels before it", () => {
    expect([positionAt(272).isAtEnd, positionAt(273).isAtEnd, positionAt(320).isAtEnd]).toEqual([false, true, true]);
  });

  test("both edges are near in a short list, and none in a hidden one", () => {
    expect([positionAt(0).isNearStart, positionAt(0).isNearEnd]).toEqual([true, true]);
    expect([positionAt(2_000, 9_000).isNearStart, positionAt(2_000, 9_000).isNearEnd]).toEqual([false, false]);
    const hidden = { scrollTop: 0, scrollHeight: 0, clientHeight: 0 } as HTMLElement;
    const position = new Position(() => ({ scroller: hidden, head: hidden }));
    expect([position.isNearStart, position.isNearEnd]).toEqual([false, false]);
  });
});

describe("range", () => {
  const many = Array.from({ length: 100 }, (_, at) => `item ${at}`);
  const made = (position: Position, keys = many) =>
    createRange(
      () => keys,
      () => 10,
      createHeights(
        () => keys,
        () => 10,
      ),
      position,
    );

  test("only visible items exist at first, and more around them later", () => {
    createRoot((dispose) => {
      const visible = made(positionAt(320, 1_020));
      visible.look();
      expect(visible.range()).toEqual({ from: 30, to: 41 });
      visible.widen();
      visible.look();
      expect(visible.range()).toEqual({ from: 0, to: 100 });
      dispose();
    });
  });

  test("an empty list has no items", () => {
    createRoot((dispose) => {
      const visible = made(positionAt(0), []);
      visible.look();
      expect(visible.range()).toEqual({ from: 0, to: 0 });
      dispose();
    });
  });
});
