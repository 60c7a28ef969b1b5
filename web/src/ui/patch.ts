// Unified diffs as values, and the words that differ between two lines.
import { diffWordsWithSpace } from "diff";

export interface Line {
  kind: "add" | "del" | "same";
  text: string;
  /** The line number before and after the change. */
  old: number | null;
  new: number | null;
}

export interface Hunk {
  head: string;
  lines: Line[];
  /** The number of unchanged lines before the hunk that the patch omits. */
  skipped: number;
}

export interface FilePatch {
  old: string;
  new: string;
  hunks: Hunk[];
  isBinary: boolean;
}

/** Returns the files of a unified diff. Lines that are not part of one are ignored. */
export function parsePatch(text: string): FilePatch[] {
  const files: FilePatch[] = [];
  let file: FilePatch | null = null;
  let hunk: Hunk | null = null;
  let [old, now, olds, news] = [0, 0, 0, 0];
  let end = 1;
  for (const line of text.split("\n")) {
    if (hunk && (olds > 0 || news > 0)) {
      const kind = line[0] === "+" ? "add" : line[0] === "-" ? "del" : line[0] === " " || line === "" ? "same" : null;
      if (kind) {
        hunk.lines.push({
          kind,
          text: line.slice(1),
          old: kind === "add" ? null : old,
          new: kind === "del" ? null : now,
        });
        if (kind !== "add") (old += 1), (olds -= 1);
        if (kind !== "del") (now += 1), (news -= 1);
        continue;
      }
      if (line.startsWith("\\")) continue;
    }
    const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/.exec(line);
    if (head) {
      file ??= start(files);
      [old, now] = [Number(head[1]), Number(head[3])];
      [olds, news] = [Number(head[2] ?? 1), Number(head[4] ?? 1)];
      hunk = { head: head[5] ?? "", lines: [], skipped: Math.max(0, now - end) };
      file.hunks.push(hunk);
      end = now + news;
    } else if (line.startsWith("--- ")) {
      file = start(files);
      file.old = name(line);
      [hunk, end] = [null, 1];
    } else if (line.startsWith("+++ ") && file) {
      file.new = name(line);
    } else if (/^(Binary files|GIT binary patch)/.test(line)) {
      file = start(files);
      file.isBinary = true;
    } else if (/^(diff |Index: )/.test(line)) {
      [file, hunk, end] = [null, null, 1];
    }
  }
  return files;
}

function start(files: FilePatch[]): FilePatch {
  const file = { old: "", new: "", hunks: [], isBinary: false };
  files.push(file);
  return file;
}

function name(line: string): string {
  return (line.slice(4).split("\t", 1)[0] ?? "").replace(/^[ab]\//, "");
}

/** A row of a diff with two columns. */
export interface Pair {
  left: Line | null;
  right: Line | null;
}

/** Returns the rows of a hunk side by side: deleted and added lines next to each other. */
export function pairs(hunk: Hunk): Pair[] {
  const rows: Pair[] = [];
  let [dels, adds]: [Line[], Line[]] = [[], []];
  const flush = () => {
    for (let at = 0; at < Math.max(dels.length, adds.length); at += 1) {
      rows.push({ left: dels[at] ?? null, right: adds[at] ?? null });
    }
    [dels, adds] = [[], []];
  };
  for (const line of hunk.lines) {
    if (line.kind === "del") dels.push(line);
    else if (line.kind === "add") adds.push(line);
    else {
      flush();
      rows.push({ left: line, right: line });
    }
  }
  flush();
  return rows;
}

export interface Piece {
  text: string;
  changed: boolean;
}

/** Longer lines are compared as a whole. */
const MAX_WORDS = 600;

/** Returns the pieces of two lines that replace each other, with the words that differ. */
export function words(before: string, after: string): { old: Piece[]; new: Piece[] } | null {
  if (before.length > MAX_WORDS || after.length > MAX_WORDS) return null;
  const parts = diffWordsWithSpace(before, after, { maxEditLength: 80 });
  if (!parts) return null;
  const same = parts
    .filter((part) => !part.added && !part.removed)
    .reduce((sum, part) => sum + part.value.trim().length, 0);
  // Lines with little in common are different lines.
  if (same * 3 < Math.max(before.trim().length, after.trim().length)) return null;
  const pieces = (without: "added" | "removed") =>
    parts
      .filter((part) => !part[without])
      .map((part) => ({ text: part.value, changed: Boolean(part.added || part.removed) }));
  return { old: pieces("added"), new: pieces("removed") };
}

/** Returns the changed words of each line of a hunk that has a counterpart. */
export function wordsOf(hunk: Hunk): Map<Line, Piece[]> {
  const found = new Map<Line, Piece[]>();
  for (const { left, right } of pairs(hunk)) {
    if (!left || !right || left.kind !== "del" || right.kind !== "add") continue;
    const both = words(left.text, right.text);
    if (!both) continue;
    found.set(left, both.old);
    found.set(right, both.new);
  }
  return found;
}
