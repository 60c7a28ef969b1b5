import { beforeEach, describe, expect, it, vi } from "vitest";

async function load(): Promise<typeof import("../src/ui/idle")> {
  vi.resetModules();
  return import("../src/ui/idle");
}

describe("work after the first view", () => {
  let frames: (() => void)[] = [];
  beforeEach(() => {
    frames = [];
    vi.useFakeTimers();
    vi.stubGlobal("requestAnimationFrame", (run: () => void) => frames.push(run));
  });

  it("waits for the frame, and runs in its order, once", async () => {
    const { afterFirstView, firstViewExists, isDrawn } = await load();
    const done: string[] = [];
    afterFirstView(() => {
      done.push("a");
      afterFirstView(() => done.push("within a"));
    });
    afterFirstView(() => done.push("b"));
    firstViewExists();
    vi.advanceTimersByTime(100);
    expect(done).toEqual([]);
    frames.forEach((run) => run());
    // The frame is drawn after its callbacks.
    expect(isDrawn()).toBe(false);
    vi.runAllTimers();
    expect(done).toEqual(["a", "within a", "b"]);
    expect(isDrawn()).toBe(true);
  });

  it("runs at once when the view is drawn", async () => {
    const { afterFirstView, firstViewExists } = await load();
    firstViewExists();
    frames.forEach((run) => run());
    vi.runAllTimers();
    const run = vi.fn();
    afterFirstView(run);
    expect(run).toHaveBeenCalledOnce();
  });

  it("does not wait for frames that a hidden page does not have", async () => {
    const { afterFirstView, firstViewExists } = await load();
    const run = vi.fn();
    afterFirstView(run);
    firstViewExists();
    vi.advanceTimersByTime(1_000);
    expect(run).toHaveBeenCalledOnce();
  });

  it("goes on when one of the works fails", async () => {
    const { afterFirstView, firstViewExists } = await load();
    const [run, report] = [vi.fn(), vi.fn()];
    vi.stubGlobal("reportError", report);
    afterFirstView(() => {
      throw new Error("broken");
    });
    afterFirstView(run);
    firstViewExists();
    vi.runAllTimers();
    expect(report).toHaveBeenCalledOnce();
    expect(run).toHaveBeenCalledOnce();
  });
});
