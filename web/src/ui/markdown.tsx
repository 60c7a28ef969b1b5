// Markdown that grows while a model writes it. Only the growing end is parsed again.
import type { Token, Tokens } from "marked";
import { createEffect, onCleanup, type JSX } from "solid-js";
import { lexer } from "./math";
import { codeBlock, render, type Options } from "./markdown-tokens";
import { code as cleanCode, prose } from "./text";

/** A frame parses at most this much of a text. */
const MAX_SLICE = 24 * 1024;
/** A block that grows beyond this length is closed, so that it is not parsed again and again. */
const MAX_BLOCK = 32 * 1024;

/** The blocks of a growing text. */
export class MarkdownBlocks {
  #root: HTMLElement;
  #options: Options;
  #headings = { last: 1 };
  #text = "";
  /** The blocks before this position do not change any more. */
  #stable = 0;
  #tail: HTMLElement | null = null;
  /** The code block that is still open, with its source so far. */
  #openCode: { element: HTMLElement; length: number } | null = null;
  #isComplete = false;
  #frame = 0;

  constructor(root: HTMLElement, options: Omit<Options, "headings">) {
    this.#root = root;
    this.#options = { ...options, headings: this.#headings };
  }

  /** Displays a text. A text that begins with the one before continues it. */
  update(given: string, isComplete: boolean): void {
    const text = given.includes("\r") ? given.replace(/\r\n?/g, "\n") : given;
    const continues = text.length >= this.#stable && text.startsWith(this.#text.slice(0, this.#stable));
    if (!continues) this.#reset();
    this.#text = text;
    this.#isComplete = isComplete;
    if (this.#frame === 0) this.#work();
  }

  /** Stops work that waits for the next frame. */
  dispose(): void {
    cancelAnimationFrame(this.#frame);
  }

  #reset(): void {
    this.#root.replaceChildren();
    this.#stable = 0;
    this.#headings.last = 1;
    this.#tail = null;
    this.#openCode = null;
  }

  #work(): void {
    this.#frame = 0;
    const rest = this.#text.length - this.#stable;
    let slice = this.#text.slice(this.#stable, this.#stable + MAX_SLICE);
    const isCut = rest > slice.length;
    if (isCut) {
      // Cut at the end of a line, if there is one.
      const end = slice.lastIndexOf("\n");
      if (end > 0) slice = slice.slice(0, end + 1);
    }
    const isLast = this.#isComplete && !isCut;
    if (this.#openCode && this.#growCode(slice, isLast)) return;
    const tokens = lexer(slice).filter((token) => token.raw.length > 0);
    const closed = isLast ? tokens.length : lastBlock(tokens);
    for (const token of tokens.slice(0, closed)) this.#close(token);
    const open = tokens.slice(closed);
    const source = open.reduce((length, token) => length + token.raw.length, 0);
    if (isCut || source > MAX_BLOCK) {
      this.#showCut(open, isCut);
    } else {
      this.#showTail(open);
    }
    if (this.#stable < this.#text.length && isCut) this.#frame = requestAnimationFrame(() => this.#work());
  }

  /** Adds a block that does not change any more. */
  #close(token: Token): void {
    this.#stable += token.raw.length;
    if (token.type === "space" || token.type === "def") return;
    const block = this.#block(render([token], this.#options));
    this.#tail?.remove();
    this.#tail = null;
    this.#openCode = null;
    this.#root.append(block);
  }

  /** Displays the block that still grows. */
  #showTail(tokens: Token[]): void {
    this.#openCode = null;
    const token = tokens.find((one) => one.type !== "space");
    if (!token) {
      this.#tail?.remove();
      this.#tail = null;
      return;
    }
    const isCode =
      token.type === "code" && (token as Tokens.Code).codeBlockStyle !== "indented" && !isClosed(token.raw);
    let nodes: Node[];
    if (isCode) {
      const block = codeBlock(token as Tokens.Code, true);
      this.#openCode = { element: block, length: this.#text.length };
      nodes = [block];
    } else {
      // The headings of a block that is not complete do not count.
      nodes = render(tokens, { ...this.#options, headings: { ...this.#headings } });
    }
    if (this.#tail) {
      this.#tail.replaceChildren(...nodes);
      return;
    }
    this.#tail = this.#block(nodes);
    this.#root.append(this.#tail);
  }

  /** Closes the open block although it may go on, because it is too long to be parsed again. */
  #showCut(tokens: Token[], isCut: boolean): void {
    const token = tokens.find((one) => one.type !== "space");
    if (token?.type === "code" && !isClosed(token.raw)) {
      this.#showTail(tokens);
      if (this.#openCode) {
        // The slice ends inside of the code: go on behind it.
        const shown = tokens.reduce((length, one) => length + one.raw.length, 0);
        this.#openCode.length = this.#stable + shown;
        if (isCut) this.#frame = requestAnimationFrame(() => this.#continueCode());
      }
      return;
    }
    for (const one of tokens) this.#close(one);
  }

  #continueCode(): void {
    this.#frame = 0;
    if (this.#openCode) this.#growCode("", this.#isComplete);
  }

  /** Appends the new lines of an open code block. Returns false if it has been closed. */
  #growCode(_slice: string, isLast: boolean): boolean {
    const open = this.#openCode;
    if (!open) return false;
    const start = this.#stable;
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(this.#text.slice(start, start + 80).replace(/^\n+/, ""))?.[1];
    // Look for the closing fence in the new text and the line before it.
    const from = Math.max(start, this.#text.lastIndexOf("\n", open.length - 1));
    const added = this.#text.slice(from);
    const closing =
      fence && new RegExp(`\\n {0,3}${fence[0] === "~" ? "~" : "`"}{${fence.length},}[ \\t]*(?:\\n|$)`).exec(added);
    const code = open.element.querySelector<HTMLElement>("[data-code]");
    if (!code || closing || isLast) {
      if (!closing || !code) return this.#endCode(this.#text.length);
      const end = from + (closing.index ?? 0) + closing[0].length;
      // A line that could still become another text is not the end of the code.
      if (end === this.#text.length && !closing[0].endsWith("\n") && !isLast) return true;
      return this.#endCode(end);
    }
    const text = cleanCode(this.#text.slice(open.length));
    open.length = this.#text.length;
    const last = code.lastChild;
    if (last instanceof Text) last.appendData(text);
    else code.append(text);
    return true;
  }

  /** Displays the finished code block, and parses what follows. */
  #endCode(end: number): boolean {
    const source = this.#text.slice(this.#stable, end);
    this.#openCode = null;
    if (source.length <= MAX_SLICE) return false;
    // Too long for the parser: take it apart here.
    const lines = source.replace(/^\n+/, "").split("\n");
    const lang = (lines.shift() ?? "").replace(/^ {0,3}[`~]+/, "").trim();
    while (lines.length > 0 && /^\s*([`~]{3,})?\s*$/.test(lines.at(-1) ?? "")) lines.pop();
    const token: Tokens.Code = { type: "code", raw: source, lang, text: lines.join("\n") };
    this.#close(token);
    if (this.#stable < this.#text.length) this.#frame = requestAnimationFrame(() => this.#work());
    return true;
  }

  #block(nodes: Node[]): HTMLElement {
    const block = document.createElement("div");
    block.className = "markdown-block";
    block.append(...nodes);
    return block;
  }
}

/** Returns the number of tokens before the last block, which may still grow. */
function lastBlock(tokens: Token[]): number {
  let at = tokens.length - 1;
  while (at > 0 && tokens[at]?.type === "space") at -= 1;
  return Math.max(at, 0);
}

/** Returns whether a fenced code block has its closing fence. */
function isClosed(raw: string): boolean {
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1];
  if (!fence) return true;
  const last = raw.trimEnd().split("\n").at(-1)?.trim() ?? "";
  return raw.trimEnd().includes("\n") && last.length >= fence.length && last.replaceAll(fence[0] ?? "`", "") === "";
}

interface Props {
  text: string;
  /** Whether the text is complete. */
  done?: boolean;
  onFile?: ((path: string, line: number | undefined) => void) | undefined;
}

export function Markdown(props: Props): JSX.Element {
  let root!: HTMLDivElement;
  let blocks: MarkdownBlocks | undefined;
  createEffect(() => {
    blocks ??= new MarkdownBlocks(root, { onFile: props.onFile });
    blocks.update(props.text, props.done ?? true);
  });
  onCleanup(() => blocks?.dispose());
  return <div ref={root} class="markdown" dir="auto" />;
}

/** Returns a text without its Markdown, on one line, for lists. */
export function firstLine(text: string, length = 120): string {
  const line = prose(text).trim().split("\n", 1)[0] ?? "";
  return line
    .replace(/[*_`#>]+/g, "")
    .trim()
    .slice(0, length);
}
