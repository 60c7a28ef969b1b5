// Formulas in Markdown: where they begin and end, and their elements. The library that draws them is loaded with the
// first formula; until then, and if a formula is not valid, its source is displayed.
import { Marked, type Token, type TokenizerAndRendererExtension, type Tokens } from "marked";
import { prose } from "./text";

/** A longer formula is displayed as its source. */
const MAX_SOURCE = 4_000;
/** Formulas that are kept, because a growing text displays its last block again and again. */
const MAX_KEPT = 200;

export interface MathToken extends Tokens.Generic {
  type: "math";
  raw: string;
  text: string;
  isBlock: boolean;
}

/** A block of its own: `$$ … $$` or `\[ … \]`. */
const BLOCK = /^ {0,3}(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n+|$)/;
/** In a line: `$$ … $$`, `\( … \)`, `\[ … \]`, and `$ … $` unless it is an amount of money or a variable of a shell. */
const INLINE =
  /^(?:\$\$([^$]+?)\$\$|\\\(([\s\S]+?)\\\)|\\\[([\s\S]+?)\\\]|\$((?![\s$])(?:\\[\s\S]|[^$\\\n])*?(?<=\S))\$(?![\w$]))/;

function token(match: RegExpExecArray | null, isBlock: boolean): MathToken | undefined {
  const text = match
    ?.slice(1)
    .find((one) => one !== undefined)
    ?.trim();
  return match && text && text.length <= MAX_SOURCE && !/\n\s*\n/.test(text)
    ? { type: "math", raw: match[0], text, isBlock }
    : undefined;
}

const block: TokenizerAndRendererExtension = {
  name: "mathBlock",
  level: "block",
  start: (source) => /(?:^|\n) {0,3}(?:\$\$|\\\[)/.exec(source)?.index,
  tokenizer: (source) => token(BLOCK.exec(source), true),
};
const inline: TokenizerAndRendererExtension = {
  name: "mathInline",
  level: "inline",
  start: (source) => {
    const at = source.search(/\$|\\[([]/);
    return at < 0 ? undefined : at;
  },
  tokenizer: (source) => {
    const match = INLINE.exec(source);
    return token(match, match?.[0].startsWith("$$") === true || match?.[0].startsWith("\\[") === true);
  },
};

const marked = new Marked({ extensions: [block, inline] });
/** The start of a line with so many nested quotes and lists that the parser, which is recursive, fails. */
const DEEP = /^(?:[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])){500}/m;

/** Returns the blocks of a text. Lines that are too deep for the parser are text. */
export function lexer(text: string): Token[] {
  const tokens: Token[] = [];
  let rest = text;
  for (let at = rest.search(DEEP); at >= 0; at = rest.search(DEEP)) {
    const end = rest.indexOf("\n", at);
    const raw = end < 0 ? rest.slice(at) : rest.slice(at, end + 1);
    tokens.push(...marked.lexer(rest.slice(0, at)), { type: "html", block: true, pre: false, raw, text: raw });
    rest = rest.slice(at + raw.length);
  }
  tokens.push(...marked.lexer(rest));
  return tokens;
}

type Library = typeof import("temml").default;
let loading: Promise<Library> | undefined;
let library: Library | undefined;
const kept = new Map<string, Element | null>();

/** Returns the element of a formula. */
export function formula({ text, isBlock, raw }: MathToken): HTMLElement {
  const element = document.createElement(isBlock ? "div" : "span");
  element.className = "math";
  element.dir = "ltr";
  element.textContent = prose(raw).trim();
  if (isBlock) {
    element.tabIndex = 0;
    element.role = "group";
  }
  if (library) draw(element, text, isBlock);
  else
    void load().then(
      () => draw(element, text, isBlock),
      () => {},
    );
  return element;
}

function load(): Promise<Library> {
  loading ??= import("temml").then((module) => (library = module.default));
  return loading;
}

/** Replaces the source in an element by the formula, if it is valid. */
function draw(element: HTMLElement, text: string, isBlock: boolean): void {
  const key = `${isBlock ? "block" : "inline"} ${text}`;
  let found = kept.get(key);
  if (found === undefined) {
    found = typeset(text, isBlock);
    kept.set(key, found);
    if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value ?? "");
  }
  if (found) element.replaceChildren(found.cloneNode(true));
}

/** The attributes that layout needs. Links, names and classes are not among them. */
const ATTRIBUTES = new Set([
  "accent",
  "accentunder",
  "columnalign",
  "columnlines",
  "columnspacing",
  "columnspan",
  "depth",
  "display",
  "displaystyle",
  "fence",
  "form",
  "height",
  "largeop",
  "linethickness",
  "lspace",
  "mathvariant",
  "maxsize",
  "minsize",
  "movablelimits",
  "notation",
  "rowalign",
  "rowlines",
  "rowspacing",
  "rowspan",
  "rspace",
  "scriptlevel",
  "separator",
  "stretchy",
  "style",
  "symmetric",
  "voffset",
  "width",
]);
const MATH = "http://www.w3.org/1998/Math/MathML";

function typeset(text: string, isBlock: boolean): Element | null {
  const holder = document.createElement("div");
  try {
    library?.render(text, holder, {
      displayMode: isBlock,
      throwOnError: true,
      trust: false,
      maxSize: [12, 24],
      maxExpand: 200,
    });
  } catch {
    return null;
  }
  const root = holder.firstElementChild;
  if (
    root?.localName !== "math" ||
    [...holder.querySelectorAll("*")].some(
      (one) => one.namespaceURI !== MATH || /^(?:maction|semantics|annotation.*)$/.test(one.localName),
    )
  )
    return null;
  for (const one of holder.querySelectorAll("*")) {
    for (const { name } of [...one.attributes]) if (!ATTRIBUTES.has(name)) one.removeAttribute(name);
  }
  return root;
}
