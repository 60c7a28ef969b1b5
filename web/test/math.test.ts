// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { MarkdownBlocks } from "../src/ui/markdown";
import { formula, lexer, type MathToken } from "../src/ui/math";

// The library refuses documents without a document type, and the one of the tests reports none.
Object.defineProperty(document, "compatMode", { value: "CSS1Compat" });

// Elements of MathML have styles in browsers.
const create = document.createElementNS.bind(document) as (space: string, name: string) => Element;
document.createElementNS = ((space: string, name: string) => {
  const element = create(space, name);
  return "style" in element && element.style ? element : Object.defineProperty(element, "style", { value: {} });
}) as never;

function tokens(text: string): string[] {
  const found: string[] = [];
  const visit = (list: readonly { type: string; text?: string; isBlock?: boolean; tokens?: unknown }[]) => {
    for (const one of list) {
      if (one.type === "math") found.push(`${one.isBlock ? "block" : "inline"} ${one.text}`);
      else if (Array.isArray(one.tokens)) visit(one.tokens as never);
    }
  };
  visit(lexer(text) as never);
  return found;
}

async function drawn(text: string, isBlock = false): Promise<HTMLElement> {
  const element = formula({ type: "math", raw: text, text, isBlock } as MathToken);
  await import("temml");
  await new Promise((resolve) => setTimeout(resolve, 20));
  return element;
}

test("formulas are found by their marks", () => {
  for (const [text, expected] of [
    ["a $x^2$ b", ["inline x^2"]],
    ["\\(a+b\\) and \\[c\\]", ["inline a+b", "block c"]],
    ["$$\n\\frac{a}{b}\n$$", ["block \\frac{a}{b}"]],
    ["text\n\\[\nx\n\\]\nmore", ["block x"]],
    ["**bold $y$**", ["inline y"]],
  ] as const)
    expect(tokens(text), text).toEqual(expected);
});

test("money, variables of a shell and code are not formulas", () => {
  for (const text of [
    "It costs $5 and $10.",
    "from $5-$10",
    "`$x$`",
    "```sh\necho $A$B\n```",
    "$HOME/bin:$PATH",
    "a $ b $ c",
    "$$\n\n$$",
    "\\$5 and \\$6",
    "$x",
    "\\(a\n\nb\\)",
  ]) {
    expect(tokens(text), text).toEqual([]);
  }
});

test("a formula becomes MathML", async () => {
  const element = await drawn("\\frac{a}{b}", true);
  expect(element.querySelector("math mfrac")).not.toBeNull();
  expect(element.querySelector("[class]")).toBeNull();
});

test("a formula that is not valid stays text", async () => {
  for (const text of ["\\frac{a", "\\unknown{x}", "\\def\\a{\\a\\a}\\a", `${"{".repeat(1_500)}x`]) {
    const element = await drawn(text);
    expect(element.childElementCount, text).toBe(0);
    expect(element.textContent, text).toBe(text);
  }
});

test("a formula cannot link, load or name anything", async () => {
  expect((await drawn("x")).querySelector("math mi")).not.toBeNull();
  for (const text of [
    "\\href{javascript:alert(1)}{x}",
    "\\url{https://evil.example}",
    "\\includegraphics{https://evil.example/a.png}",
    "\\class{evil}{x}",
    "\\id{app}{x}",
    "\\style{position:fixed}{x}",
    "\\data{a=b}{x}",
    "\\text{<img src=x onerror=alert(1)>}",
    "x\\tag{1}\\label{a}\\ref{a}",
    "\\color{red;background:url(https://evil.example)}x",
  ]) {
    const element = await drawn(text);
    for (const one of element.querySelectorAll("*")) {
      expect(one.namespaceURI, text).toBe("http://www.w3.org/1998/Math/MathML");
      for (const { name, value } of one.attributes) {
        expect(["href", "src", "id", "class", "onerror"], `${text} ${name}`).not.toContain(name);
        expect(value, text).not.toMatch(/url\(|javascript:|position/i);
      }
    }
  }
});

test("a formula that streams looks like the whole one", async () => {
  const text = "Before $a^2$ and\n\n$$\na = b\n$$\n\nAfter.";
  const show = (size: number) => {
    const root = document.createElement("div");
    const blocks = new MarkdownBlocks(root, {});
    for (let end = size; end < text.length + size; end += size) blocks.update(text.slice(0, end), false);
    blocks.update(text, true);
    blocks.dispose();
    return root.textContent;
  };
  await drawn("a");
  expect(show(1)).toBe(show(1_000));
  expect(show(1)).not.toContain("$");
});
