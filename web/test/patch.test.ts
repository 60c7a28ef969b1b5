import { expect, test } from "vitest";
import { pairs, parsePatch, words, wordsOf, type Hunk } from "../src/ui/patch";

/** Returns the first hunk of a patch. */
function firstHunk(patch: string): Hunk {
  const hunk = parsePatch(patch)[0]?.hunks[0];
  if (!hunk) throw new Error("the patch has no hunk");
  return hunk;
}

const PATCH = `diff --git a/a.ts b/a.ts
--- a/a.ts
+++ b/a.ts
@@ -1,3 +1,4 @@ function a
 one
-two
+2
+two and a half
 three
@@ -10,1 +11,1 @@
-ten
+TEN
\\ No newline at end of file
--- a/gone.ts
+++ /dev/null
@@ -1 +0,0 @@
-gone
`;

test("a patch is taken apart into files, hunks and lines", () => {
  const files = parsePatch(PATCH);
  expect(files.map((file) => [file.old, file.new, file.hunks.length])).toEqual([
    ["a.ts", "a.ts", 2],
    ["gone.ts", "/dev/null", 1],
  ]);
  expect(files[0]?.hunks[0]?.lines).toEqual([
    { kind: "same", text: "one", old: 1, new: 1 },
    { kind: "del", text: "two", old: 2, new: null },
    { kind: "add", text: "2", old: null, new: 2 },
    { kind: "add", text: "two and a half", old: null, new: 3 },
    { kind: "same", text: "three", old: 3, new: 4 },
  ]);
  expect(files[0]?.hunks[1]?.skipped).toBe(6);
});

test("lines that look like heads are content while a hunk has lines left", () => {
  const [file] = parsePatch("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n");
  expect(file?.hunks[0]?.lines.map((line) => [line.kind, line.text])).toEqual([
    ["del", "-- old"],
    ["add", "++ new"],
    ["same", "same"],
  ]);
});

test("deleted and added lines are next to each other", () => {
  const hunk = firstHunk(PATCH);
  expect(pairs(hunk).map((pair) => [pair.left?.text ?? null, pair.right?.text ?? null])).toEqual([
    ["one", "one"],
    ["two", "2"],
    [null, "two and a half"],
    ["three", "three"],
  ]);
});

test("the words that differ are found, unless the lines have little in common", () => {
  const found = words("let total = 1;", "let total = 0;");
  expect(found?.old.filter((piece) => piece.changed).map((piece) => piece.text)).toEqual(["1"]);
  expect(found?.new.map((piece) => piece.text).join("")).toBe("let total = 0;");
  expect(words("completely different", "xyz")).toBeNull();
  expect(words("a".repeat(1_000), "a")).toBeNull();
  expect(wordsOf(firstHunk("--- a\n+++ b\n@@ -1 +1 @@\n-let a = 1\n+let a = 2\n")).size).toBe(2);
});

test("text that is no patch has no files", () => {
  for (const text of ["", "hello", "@@ broken @@", "+added\n-deleted"]) expect(parsePatch(text)).toEqual([]);
});
