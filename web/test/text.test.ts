import { expect, test } from "vitest";
import { ansi, code, plain, prose } from "../src/ui/text";

test("hidden characters are removed from prose and displayed in names and code", () => {
  const hostile = "a\u202eb\u0007c\u2066d\u200fe";
  expect(prose(hostile)).toBe("abcde");
  expect(plain("a\u202eb\nc")).toBe("a‹U+202E›b‹U+000A›c");
  expect(code("a\u202eb\nc\td")).toBe("a‹U+202E›b\nc\td");
});

test("sequences of a terminal are removed from prose", () => {
  for (const sequence of [
    "\u001b[2J",
    "\u001b]0;owned\u0007",
    "\u001b]8;;javascript:x\u001b\\",
    "\u001bP1$r\u001b\\",
    "\u001b[38;5;1m",
    "\u001bc",
  ]) {
    expect(prose(`a${sequence}b`)).toBe("ab");
  }
});

test("only colours and styles of an output have an effect", () => {
  const runs = ansi("\u001b[1;31mred\u001b[0m plain\u001b]0;owned\u0007 \u001b[2Jend");
  expect(runs[0]).toEqual({ text: "red", class: "ansi-bold ansi-31" });
  expect(
    runs
      .slice(1)
      .map((run) => run.text)
      .join(""),
  ).toBe(" plain end");
  expect(runs.slice(1).every((run) => run.class === "")).toBe(true);
});

test("extended colours do not swallow other codes", () => {
  expect(ansi("\u001b[38;5;196;1mx")[0]?.class).toBe("ansi-bold");
  expect(ansi("\u001b[38;2;1;2;3;4mx")[0]?.class).toBe("ansi-underline");
  expect(ansi("\u001b[31m\u001b[39mx")[0]?.class).toBe("");
});

test("a carriage return leaves the text after it", () => {
  const shown = (text: string) =>
    ansi(text)
      .map((run) => run.text)
      .join("");
  expect(shown("10%\r50%\r100%\n")).toBe("100%\n");
  expect(shown("line\r\nnext")).toBe("line\nnext");
  expect(shown("done\r")).toBe("done");
});
