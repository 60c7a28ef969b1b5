// Elements for the tokens of Markdown. Text is inserted as text: markup in it is displayed, not interpreted.
import type { Token, Tokens } from "marked";
import { copy } from "./code";
import { highlight } from "./highlight";
import { formula, type MathToken } from "./math";
import { code as cleanCode, prose } from "./text";
import { t } from "../text";

const SCHEMES = /^(https?:|mailto:)/i;
/** A path in a link or in code: `src/add.rs`, `add.rs:3`, `src/add.rs#L3`. */
const FILE = /^(?:\.{0,2}\/)?[\w@.+-]+(?:\/[\w@.+-]+)*\.\w{1,8}(?:(?::|#L)\d+(?::\d+)?)?$/;
/** Nested tokens below this depth are displayed as their source. */
const MAX_DEPTH = 16;

export interface Options {
  /** The level of the last heading. */
  headings: { last: number };
  /** Opens a file that the text names. */
  onFile?: ((path: string, line: number | undefined) => void) | undefined;
}

function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  element.append(...children);
  return element;
}

/** Returns the elements of tokens. */
export function render(tokens: Token[] | undefined, options: Options, depth = 0): Node[] {
  if (!tokens) return [];
  if (depth > MAX_DEPTH) return [document.createTextNode(prose(tokens.map((token) => token.raw).join("")))];
  return tokens.flatMap((token) => one(token, options, depth + 1));
}

function one(token: Token, options: Options, depth: number): Node[] {
  const inside = () => render((token as { tokens?: Token[] }).tokens, options, depth);
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "heading": {
      const depth = Math.min(Math.max((token as Tokens.Heading).depth, 1), 6);
      // The page has the first level, and readers of headings expect that no level is skipped.
      const level = Math.min(depth + 1, options.headings.last + 1, 6);
      options.headings.last = level;
      const heading = make(`h${level}` as "h2", ...inside());
      heading.className = `h${depth}`;
      return [heading];
    }
    case "paragraph":
      return [make("p", ...inside())];
    case "blockquote":
      return [make("blockquote", ...inside())];
    case "strong":
      return [make("strong", ...inside())];
    case "em":
      return [make("em", ...inside())];
    case "del":
      return [make("del", ...inside())];
    case "br":
      return [make("br")];
    case "hr":
      return [make("hr")];
    case "code":
      return [codeBlock(token as Tokens.Code)];
    case "codespan":
      return [codeSpan((token as Tokens.Codespan).text, options)];
    case "list":
      return [list(token as Tokens.List, options, depth)];
    case "table":
      return [table(token as Tokens.Table, options, depth)];
    case "link":
      return [link(token as Tokens.Link, inside(), options)];
    case "image":
      return [image(token as Tokens.Image)];
    case "checkbox":
      return [];
    case "math":
      return [formula(token as MathToken)];
    case "html": {
      const raw = make("span", prose(token.raw));
      raw.className = "raw";
      return [raw];
    }
    case "text": {
      const text = token as Tokens.Text;
      return text.tokens ? inside() : [document.createTextNode(prose(entities(text.text)))];
    }
    case "escape":
      return [document.createTextNode(prose((token as Tokens.Escape).text))];
    default:
      return [document.createTextNode(prose(token.raw))];
  }
}

const ENTITIES: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "©",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  rarr: "→",
  larr: "←",
};

/** Replaces the references of characters that models write. */
function entities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(#x[0-9a-f]{1,6}|#\d{1,7}|\w{2,8});/gi, (all, name: string) => {
    if (!name.startsWith("#")) return ENTITIES[name] ?? all;
    const point = name[1] === "x" || name[1] === "X" ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
    return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : all;
  });
}

function list(token: Tokens.List, options: Options, depth: number): Node {
  const items = token.items.map((item) => {
    const element = make("li");
    if (item.task) {
      const box = make("input");
      box.type = "checkbox";
      box.checked = item.checked === true;
      box.disabled = true;
      box.ariaLabel = box.checked ? t.done : t.open;
      element.className = "check";
      element.append(box);
    }
    // Items of tight lists are text without paragraphs.
    element.append(...render(item.tokens, options, depth));
    return element;
  });
  if (!token.ordered) return make("ul", ...items);
  const ordered = make("ol", ...items);
  if (typeof token.start === "number" && token.start !== 1) ordered.start = token.start;
  return ordered;
}

function table(token: Tokens.Table, options: Options, depth: number): Node {
  const row = (cells: Tokens.TableCell[], name: "th" | "td") =>
    make(
      "tr",
      ...cells.map((cell) => {
        const element = make(name, ...render(cell.tokens, options, depth));
        if (cell.align) element.dataset["align"] = cell.align;
        if (name === "th") (element as HTMLTableCellElement).scope = "col";
        return element;
      }),
    );
  const frame = make(
    "div",
    make(
      "table",
      make("thead", row(token.header, "th")),
      make("tbody", ...token.rows.map((cells) => row(cells, "td"))),
    ),
  );
  frame.className = "table";
  frame.tabIndex = 0;
  frame.role = "group";
  frame.ariaLabel = t.table;
  return frame;
}

/** Returns whether an address may be opened from a text that a model wrote. */
export function isSafeAddress(href: string): boolean {
  return SCHEMES.test(href.trim());
}

function link(token: Tokens.Link, inside: Node[], options: Options): Node {
  const href = token.href.trim();
  if (isSafeAddress(href)) {
    const element = make("a", ...inside);
    element.href = href;
    element.target = "_blank";
    element.rel = "noopener noreferrer nofollow";
    // The text of a link can differ from its target.
    element.title = prose(href);
    return element;
  }
  const file = fileLink(href, inside, options);
  return file ?? make("span", ...inside);
}

function image(token: Tokens.Image): Node {
  // Pictures of other servers are not loaded: the request would tell them that the text was read.
  const label = `${t.image}: ${prose(token.text || token.href)}`;
  if (!isSafeAddress(token.href)) return make("span", label);
  const element = make("a", label);
  element.href = token.href;
  element.target = "_blank";
  element.rel = "noopener noreferrer nofollow";
  element.title = prose(token.href);
  return element;
}

function codeSpan(text: string, options: Options): Node {
  const element = make("code", cleanCode(text));
  return fileLink(text, [element], options) ?? element;
}

/** Returns a link that opens a file in the app, if the text is a path. */
function fileLink(text: string, inside: Node[], options: Options): Node | null {
  if (!options.onFile || !FILE.test(text) || !/[/:#]/.test(text)) return null;
  const [, path = "", line] = /^(.*?)(?:(?::|#L)(\d+)(?::\d+)?)?$/.exec(text) ?? [];
  const element = make("a", ...inside);
  element.href = "#";
  element.className = "file-link";
  element.addEventListener("click", (event) => {
    event.preventDefault();
    options.onFile?.(path, line ? Number(line) : undefined);
  });
  return element;
}

/** Returns a block of code. `data-code` marks the element whose text grows while the code streams. */
export function codeBlock(token: Tokens.Code, isOpen = false): HTMLElement {
  const text = cleanCode(token.text);
  const language = (token.lang ?? "").split(/[\s,{]/, 1)[0] ?? "";
  const name = make("span", prose(language));
  name.className = "mono";
  const button = make("button", t.copy);
  button.type = "button";
  button.className = "button small quiet copy";
  const code = make("code", text);
  code.dataset["code"] = language;
  button.addEventListener("click", () => {
    void copy(code.textContent ?? "").then((done) => {
      button.textContent = done ? t.copied : t.copy;
      setTimeout(() => (button.textContent = t.copy), 1_500);
    });
  });
  const head = make("div", name, button);
  head.className = "code-head";
  const pre = make("pre", code);
  pre.tabIndex = 0;
  pre.dir = "ltr";
  const block = make("div", head, pre);
  block.className = "code";
  if (!isOpen) highlight(code, text, language);
  return block;
}
