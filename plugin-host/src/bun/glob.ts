/** `Bun.Glob` on Node. */
import { readdirSync, type Dirent } from "node:fs";
import { join, resolve } from "node:path";
import { expandBraces } from "./braces.js";

interface ScanOptions {
  cwd?: string;
  dot?: boolean;
  absolute?: boolean;
  onlyFiles?: boolean;
  followSymlinks?: boolean;
}

/** Directories below the start. A deeper tree is most likely a cycle. */
const MAX_DEPTH = 64;

export class Glob {
  readonly #expressions: RegExp[];

  constructor(readonly pattern: string) {
    this.#expressions = expandBraces(pattern).map(toExpression);
  }

  match(path: string): boolean {
    return this.#expressions.some((expression) => expression.test(path));
  }

  async *scan(options: ScanOptions | string = {}): AsyncGenerator<string> {
    yield* this.scanSync(options);
  }

  *scanSync(options: ScanOptions | string = {}): Generator<string> {
    const settings = typeof options === "string" ? { cwd: options } : options;
    const root = resolve(settings.cwd ?? process.cwd());
    for (const path of this.#walk(root, "", settings, 0)) yield settings.absolute === true ? join(root, path) : path;
  }

  *#walk(root: string, below: string, options: ScanOptions, depth: number): Generator<string> {
    if (depth > MAX_DEPTH) return;
    let entries: Dirent[];
    try {
      entries = readdirSync(join(root, below), { withFileTypes: true });
    } catch {
      return;
    }
    for (const entry of entries) {
      if (entry.name.startsWith(".") && options.dot !== true && !/(^|\/)\./.test(this.pattern)) continue;
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      const isDirectory = entry.isDirectory();
      if ((!isDirectory || options.onlyFiles === false) && this.match(path)) yield path;
      if (isDirectory) yield* this.#walk(root, path, options, depth + 1);
    }
  }
}

function toExpression(pattern: string): RegExp {
  const negated = pattern.startsWith("!");
  let source = "";
  const text = negated ? pattern.slice(1) : pattern.replace(/^\.\//, "");
  for (let index = 0; index < text.length; index++) {
    const char = text[index] as string;
    if (char === "*" && text[index + 1] === "*") {
      const whole = text[index + 2] === "/";
      source += whole ? "(?:[^/]+/)*" : ".*";
      index += whole ? 2 : 1;
    } else if (char === "*") source += "[^/]*";
    else if (char === "?") source += "[^/]";
    else if (char === "[" && text.indexOf("]", index + 1) > 0) {
      const end = text.indexOf("]", index + 1);
      source += `[${text
        .slice(index + 1, end)
        .replace(/^!/, "^")
        .replace(/\\/g, "\\\\")}]`;
      index = end;
    } else source += char.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  }
  return negated ? new RegExp(`^(?!${source}$).*$`, "s") : new RegExp(`^${source}$`, "s");
}
