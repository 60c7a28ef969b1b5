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
  const parser = new Parser();
  for (const line of text.split("\n")) parser.read(line);
  return parser.files;
}

/** Returns what a line of a hunk is, or null if it is none. */
function kindOf(line: string): Line["kind"] | null {
  if (line[0] === "+") return "add";
  if (line[0] === "-") return "del";
  return line[0] === " " || line === "" ? "same" : null;
}

class Parser {
  readonly files: FilePatch[] = [];
  #file: FilePatch | null = null;
  #hunk: Hunk | null = null;
  /** The numbers of the next lines, and how many lines the hunk still has, before and after the change. */
  #old = 0;
  #new = 0;
  #olds = 0;
  #news = 0;
  /** The number of the line after the hunk. */
  #end = 1;

  read(line: string): void {
    if (this.#hunk && (this.#olds > 0 || this.#news > 0) && this.#readLine(this.#hunk, line)) return;
    if (this.#readHead(line)) return;
    if (line.startsWith("--- ")) {
      this.#file = start(this.files);
      this.#file.old = name(line);
      this.#hunk = null;
      this.#end = 1;
    } else if (line.startsWith("+++ ") && this.#file) {
      this.#file.new = name(line);
    } else if (/^(Binary files|GIT binary patch)/.test(line)) {
      this.#file = start(this.files);
      this.#file.isBinary = true;
    } else if (/^(diff |Index: )/.test(line)) {
      this.#file = null;
      this.#hunk = null;
      this.#end = 1;
    }
  }

  /** Reads a line of a hunk. Returns whether it is one. */
  #readLine(hunk: Hunk, line: string): boolean {
    const kind = kindOf(line);
    if (!kind) return line.startsWith("\\");
    hunk.lines.push({
      kind,
      text: line.slice(1),
      old: kind === "add" ? null : this.#old,
      new: kind === "del" ? null : this.#new,
    });
    if (kind !== "add") {
      this.#old += 1;
      this.#olds -= 1;
    }
    if (kind !== "del") {
      this.#new += 1;
      this.#news -= 1;
    }
    return true;
  }

  /** Reads the head of a hunk. Returns whether the line is one. */
  #readHead(line: string): boolean {
    const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/.exec(line);
    if (!head) return false;
    this.#file ??= start(this.files);
    [this.#old, this.#new] = [Number(head[1]), Number(head[3])];
    [this.#olds, this.#news] = [Number(head[2] ?? 1), Number(head[4] ?? 1)];
    this.#hunk = { head: head[5] ?? "", lines: [], skipped: Math.max(0, this.#new - this.#end) };
    this.#file.hunks.push(this.#hunk);
    this.#end = this.#new + this.#news;
    return true;
  }
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
