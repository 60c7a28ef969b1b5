// Highlighting: the grammars of highlight.js, which are loaded when the first code is displayed. Its output is a tree
// of scopes that becomes elements, because the content policy forbids text as markup.
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import elixir from "highlight.js/lib/languages/elixir";
import go from "highlight.js/lib/languages/go";
import haskell from "highlight.js/lib/languages/haskell";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lua from "highlight.js/lib/languages/lua";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import nix from "highlight.js/lib/languages/nix";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import scala from "highlight.js/lib/languages/scala";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const LANGUAGES = {
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  elixir,
  go,
  haskell,
  ini,
  java,
  javascript,
  json,
  kotlin,
  lua,
  makefile,
  markdown,
  nix,
  php,
  python,
  ruby,
  rust,
  scala,
  sql,
  swift,
  typescript,
  xml,
  yaml,
};
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);
hljs.registerAliases(["zsh", "fish", "console", "shellsession", "shell"], { languageName: "bash" });
hljs.registerAliases(["vue", "svelte"], { languageName: "xml" });
hljs.registerAliases(["scss", "less"], { languageName: "css" });
hljs.registerAliases(["jsonl"], { languageName: "json" });

/** Builds elements from the scopes that the highlighter reports. */
class Elements {
  readonly root = document.createElement("span");
  #open: HTMLElement[] = [this.root];

  #top(): HTMLElement {
    return this.#open.at(-1) ?? this.root;
  }
  addText(text: string): void {
    if (text) this.#top().append(text);
  }
  startScope(name: string): void {
    const element = document.createElement("span");
    // `title.function` is a title.
    element.className = `hl-${name.split(".", 1)[0]}`;
    this.#top().append(element);
    this.#open.push(element);
  }
  endScope(): void {
    if (this.#open.length > 1) this.#open.pop();
  }
  openNode(name: string): void {
    this.startScope(name);
  }
  closeNode(): void {
    this.endScope();
  }
  __addSublanguage(other: Elements): void {
    this.#top().append(...other.root.childNodes);
  }
  finalize(): void {
    this.#open = [this.root];
  }
  toHTML(): string {
    return "";
  }
}
hljs.configure({ __emitter: Elements as never });

/** Returns the highlighted code, or null for an unknown language. */
export function elements(code: string, language: string): Node[] | null {
  if (!hljs.getLanguage(language)) return null;
  const result = hljs.highlight(code, { language, ignoreIllegals: true });
  return [...(result._emitter as unknown as Elements).root.childNodes];
}
