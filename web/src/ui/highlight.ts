// Highlights code when it becomes visible, after the grammars are loaded, and never longer than a part of a frame.

/** Longer code is displayed without colours. */
const MAX_BYTES = 60_000;

type Languages = typeof import("./languages");
let loaded: Languages | null = null;
let loading: Promise<Languages> | null = null;

const BY_EXTENSION: Record<string, string> = {
  rs: "rust",
  ts: "typescript",
  tsx: "typescript",
  mts: "typescript",
  cts: "typescript",
  js: "javascript",
  jsx: "javascript",
  mjs: "javascript",
  cjs: "javascript",
  py: "python",
  rb: "ruby",
  sh: "bash",
  bash: "bash",
  zsh: "bash",
  h: "c",
  c: "c",
  cc: "cpp",
  cpp: "cpp",
  hpp: "cpp",
  cs: "csharp",
  kt: "kotlin",
  kts: "kotlin",
  md: "markdown",
  yml: "yaml",
  yaml: "yaml",
  toml: "ini",
  ini: "ini",
  cfg: "ini",
  html: "xml",
  svg: "xml",
  xml: "xml",
  vue: "xml",
  svelte: "xml",
  css: "css",
  scss: "css",
  less: "css",
  json: "json",
  jsonc: "json",
  jsonl: "json",
  go: "go",
  java: "java",
  lua: "lua",
  mk: "makefile",
  makefile: "makefile",
  php: "php",
  scala: "scala",
  sql: "sql",
  swift: "swift",
  diff: "diff",
  patch: "diff",
  ex: "elixir",
  exs: "elixir",
  hs: "haskell",
  nix: "nix",
  dockerfile: "dockerfile",
};

/** Returns the language of a file, by its name. */
export function languageOf(path: string): string {
  const name = path.split("/").at(-1)?.toLowerCase() ?? "";
  return BY_EXTENSION[name] ?? BY_EXTENSION[name.split(".").at(-1) ?? ""] ?? "";
}

async function languages(): Promise<Languages> {
  loading ??= import("./languages");
  loaded = await loading;
  return loaded;
}

const waiting = new Map<Element, () => void>();
const observer =
  typeof IntersectionObserver === "undefined"
    ? null
    : new IntersectionObserver(
        (entries) => {
          for (const entry of entries) {
            if (!entry.isIntersecting) continue;
            const work = waiting.get(entry.target);
            waiting.delete(entry.target);
            observer?.unobserve(entry.target);
            work?.();
          }
        },
        { rootMargin: "200px" },
      );

/** Colours the code of an element when it is visible. */
export function highlight(target: HTMLElement, code: string, language: string): void {
  if (!language || code.length > MAX_BYTES) return;
  const work = async () => {
    const { elements } = loaded ?? (await languages());
    // The element may display other code by now.
    if (target.textContent !== code) return;
    const nodes = elements(code, language);
    if (nodes) target.replaceChildren(...nodes);
  };
  waiting.set(target, () => void work());
  observer?.observe(target);
}

/** Returns highlighted lines, each as its own nodes, or null while the grammars are unknown. */
export async function highlightLines(code: string, language: string): Promise<Node[][] | null> {
  if (!language || code.length > MAX_BYTES) return null;
  const nodes = (await languages()).elements(code, language);
  return nodes && splitLines(nodes);
}

function splitLines(nodes: Node[]): Node[][] {
  const lines: Node[][] = [[]];
  const add = (node: Node, wrap: (text: string) => Node) => {
    if (node instanceof Text) {
      node.data.split("\n").forEach((text, at) => {
        if (at > 0) lines.push([]);
        if (text) lines.at(-1)?.push(wrap(text));
      });
      return;
    }
    const name = (node as HTMLElement).className;
    for (const child of [...node.childNodes]) {
      add(child, (text) => {
        const span = document.createElement("span");
        span.className = name;
        span.append(text);
        return child instanceof Text ? span : wrapInner(span, child as HTMLElement, text);
      });
    }
  };
  for (const node of nodes) add(node, (text) => document.createTextNode(text));
  return lines;
}

function wrapInner(outer: HTMLElement, inner: HTMLElement, text: string): Node {
  const span = document.createElement("span");
  span.className = inner.className;
  span.append(text);
  outer.replaceChildren(span);
  return outer;
}
