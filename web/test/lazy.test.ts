import { createRoot } from "solid-js";
import { expect, test } from "vitest";
import { lazy } from "../src/state/lazy";

test("a refresh that a later one overtakes waits for the value of that one", async () => {
  const answers: ((value: string) => void)[] = [];
  const value = createRoot(() => lazy(() => new Promise<string>((resolve) => answers.push(resolve))));
  const first = value.refresh().then(() => value());
  const second = value.refresh().then(() => value());
  answers[0]?.("old");
  await Promise.resolve();
  answers[1]?.("new");
  expect(await first).toBe("new");
  expect(await second).toBe("new");
});

test("a value that was set wins over an earlier request", async () => {
  const answers: ((value: string) => void)[] = [];
  const value = createRoot(() => lazy(() => new Promise<string>((resolve) => answers.push(resolve))));
  const first = value.refresh().then(() => value());
  value.set("set");
  answers[0]?.("old");
  expect(await first).toBe("set");
});
