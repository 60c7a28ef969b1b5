// Addresses and places in texts of the stub.
import * as path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

export class Uri {
  private constructor(
    readonly scheme: string,
    readonly authority: string,
    readonly path: string,
    readonly query: string,
    readonly fragment: string,
  ) {}
  static file(file: string): Uri {
    return new Uri("file", "", file, "", "")
  }
  static parse(text: string, _strict?: boolean): Uri {
    const url = new URL(text)
    return new Uri(url.protocol.slice(0, -1), url.host, url.pathname, url.search.slice(1), url.hash.slice(1))
  }
  static from(parts: { scheme: string; path: string; query?: string }): Uri {
    return new Uri(parts.scheme, "", parts.path, parts.query ?? "", "")
  }
  static joinPath(base: Uri, ...parts: string[]): Uri {
    return new Uri(base.scheme, base.authority, path.posix.join(base.path, ...parts), "", "")
  }
  get fsPath(): string {
    return this.scheme === "file" ? fileURLToPath(pathToFileURL(this.path)) : this.path
  }
  toString(): string {
    return this.scheme === "file"
      ? pathToFileURL(this.path).href
      : `${this.scheme}:${this.path}${this.query && `?${this.query}`}`
  }
}

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
}

export class Range {
  readonly start: Position
  readonly end: Position
  constructor(a: Position | number, b: Position | number, c?: number, d?: number) {
    this.start = a instanceof Position ? a : new Position(a, b as number)
    this.end = b instanceof Position ? b : new Position(c ?? 0, d ?? 0)
  }
  get isEmpty(): boolean {
    return this.start.line === this.end.line && this.start.character === this.end.character
  }
}

export class Selection extends Range {
  get active(): Position {
    return this.end
  }
}
