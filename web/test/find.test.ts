// The search in a session, the nearest names, and the parts of a context.
import { describe, expect, it } from "vitest";
import type { Message, Part } from "../src/api";
import { contextUse, sinceSummary, type Entry } from "../src/state/context";
import { nearest, uniquePart } from "../src/ui/nearest";
import { occurrences, textsOf } from "../src/views/session/find";

const user = (text: string): Entry => ({ info: { role: "user" } as Message, parts: [{ type: "text", text } as Part] });
const answer = (
  parts: Part[],
  tokens: Partial<{ input: number; output: number; read: number }> = {},
  summary = false,
): Entry => ({
  info: {
    role: "assistant",
    summary,
    time: { created: 0, completed: 1 },
    tokens: {
      input: tokens.input ?? 0,
      output: tokens.output ?? 0,
      reasoning: 0,
      cache: { read: tokens.read ?? 0, write: 0 },
    },
  } as Message,
  parts,
});
const tool = (name: string, output: string, compacted?: number) =>
  ({
    type: "tool",
    tool: name,
    state: {
      status: "completed",
      input: {},
      output,
      title: "",
      metadata: {},
      time: { start: 0, end: 1, ...(compacted ? { compacted } : {}) },
    },
  }) as unknown as Part;

describe("nearest names", () => {
  it.each([
    ["comapct", ["compact", "copy", "connect"], "compact"],
    ["exprt", ["export", "expand"], "export"],
    ["mod", ["models", "move"], "models"],
    ["zzzzzz", ["models", "move"], undefined],
    ["x", ["y"], undefined],
  ])("%s", (text, names, expected) => expect(nearest(text, names)).toBe(expected));

  it("accepts a unique part of a name", () => {
    const names = ["mock/plain", "mock/other", "acme/other"];
    expect(uniquePart("plain", names)).toBe("mock/plain");
    expect(uniquePart("MOCK/PLAIN", names)).toBe("mock/plain");
    expect(uniquePart("other", names)).toEqual(["mock/other", "acme/other"]);
    expect(uniquePart("none", names)).toEqual([]);
    expect(uniquePart("a", ["a", "ab"])).toBe("a");
  });
});

describe("search", () => {
  it.each([
    ["one two one", "one", 2],
    ["One two", "one", 1],
    ["one two", "One", 0],
    ["aaa", "aa", 1],
    ["text", "", 0],
  ])("%s contains %s", (text, word, expected) => expect(occurrences(text, word)).toBe(expected));

  it("reads what a user can see", () => {
    expect(textsOf({ type: "text", text: "hidden", synthetic: true } as Part)).toEqual([]);
    expect(
      textsOf({
        type: "tool",
        tool: "bash",
        state: { status: "error", input: { command: "make" }, error: "failed" },
      } as unknown as Part),
    ).toEqual(["make", "failed"]);
  });
});

describe("context", () => {
  it("is unknown before the first answer", () => expect(contextUse([user("hi")], 0)).toBeUndefined());

  it("has parts that add up to the counted tokens", () => {
    const entries = [
      user("x".repeat(400)),
      answer(
        [tool("read", "f".repeat(800)), tool("bash", "o".repeat(200)), { type: "text", text: "a".repeat(40) } as Part],
        { input: 500, output: 100, read: 1_500 },
      ),
    ];
    const use = contextUse(entries, 1_200);
    const tokens = Object.fromEntries(use?.shares.map((one) => [one.name, one.tokens]) ?? []);
    expect(use?.used).toBe(2_100);
    expect(use?.cached).toBe(0.75);
    expect(tokens).toEqual({
      system: 2_100 - 300 - 100 - 200 - 50 - 11,
      tools: 300,
      prompts: 100,
      files: 200,
      outputs: 50,
      answers: 11,
    });
  });

  it("shrinks estimates that exceed the count", () => {
    const use = contextUse([user("x".repeat(40_000)), answer([], { input: 100 })], 0);
    expect(use?.shares.reduce((sum, one) => sum + one.tokens, 0)).toBe(100);
    expect(use?.shares.every((one) => one.tokens >= 0)).toBe(true);
  });

  it("begins at the last summary and leaves out old outputs", () => {
    const entries = [
      user("old"),
      answer([], {}, true),
      user("new"),
      answer([tool("bash", "o".repeat(4_000), 5)], { input: 1_000 }),
    ];
    expect(sinceSummary(entries)).toHaveLength(3);
    expect(contextUse(entries, 0)?.shares.find((one) => one.name === "outputs")?.tokens ?? 0).toBe(0);
  });
});
