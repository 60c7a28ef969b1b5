// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { MarkdownBlocks } from "../src/ui/markdown";
import { isSafeAddress } from "../src/ui/markdown-tokens";

const SAMPLE = `# Title

A **bold** and *soft* text with \`code\` and [a link](https://example.com).

1. one
2. two
   - nested

- [x] done
- [ ] open

| a | b |
|---|---|
| 1 | 2 |

\`\`\`ts
const a = 1;

const b = 2;
\`\`\`

> quoted

After the code.
`;

function shown(feed: (blocks: MarkdownBlocks) => void): string {
  const root = document.createElement("div");
  const blocks = new MarkdownBlocks(root, {});
  feed(blocks);
  blocks.dispose();
  // How the text is divided into blocks may depend on the pieces; its content may not.
  return root.innerHTML.replaceAll(/<\/?div class="markdown-block">/g, "");
}

test("a text that streams in any pieces looks like the whole text", () => {
  const whole = shown((blocks) => blocks.update(SAMPLE, true));
  expect(whole).toContain("<strong>bold</strong>");
  for (const size of [1, 2, 3, 7, 16, 50, 200]) {
    const streamed = shown((blocks) => {
      for (let end = size; end < SAMPLE.length + size; end += size) blocks.update(SAMPLE.slice(0, end), false);
      blocks.update(SAMPLE, true);
    });
    expect(streamed, `pieces of ${size}`).toBe(whole);
  }
});

test("a text that changes instead of growing is displayed anew", () => {
  const text = shown((blocks) => {
    blocks.update("one\n\ntwo\n\nthree", false);
    blocks.update("other\n\ntext", true);
  });
  expect(text).not.toContain("three");
  expect(text).toContain("other");
});

test("markup is displayed as text", () => {
  const root = document.createElement("div");
  new MarkdownBlocks(root, {}).update('<img src=x onerror=1>\n\na <script>x</script> b\n\n<iframe src="x">\n', true);
  expect(root.querySelector("img, script, iframe")).toBeNull();
  expect(root.textContent).toContain("<img src=x onerror=1>");
});

test("only addresses of the web and of mail are links", () => {
  for (const good of ["https://a.b", "http://a", "mailto:a@b", " HTTPS://a"])
    expect(isSafeAddress(good), good).toBe(true);
  for (const bad of [
    "javascript:x",
    "data:text/html,x",
    "file:///etc/passwd",
    "vbscript:x",
    "//a.b",
    "java\nscript:x",
    "blob:x",
    "",
  ])
    expect(isSafeAddress(bad), bad).toBe(false);
  const root = document.createElement("div");
  new MarkdownBlocks(root, {}).update(
    "[a](javascript:x) [b](data:x) ![c](https://evil.example/c.png) <https://good.example>",
    true,
  );
  const links = [...root.querySelectorAll("a")].map((link) => link.getAttribute("href"));
  expect(links).toEqual(["https://evil.example/c.png", "https://good.example"]);
  expect(root.querySelector("img")).toBeNull();
});

test("paths are links that open a file", () => {
  const opened: unknown[] = [];
  const root = document.createElement("div");
  new MarkdownBlocks(root, { onFile: (path, line) => opened.push([path, line]) }).update(
    "see `src/a.rs:3`, `a.rs#L7`, `word` and `a.b`",
    true,
  );
  root.querySelectorAll<HTMLElement>("a.file-link").forEach((link) => link.click());
  expect(opened).toEqual([
    ["src/a.rs", 3],
    ["a.rs", 7],
  ]);
});

test("headings skip no level", () => {
  const root = document.createElement("div");
  new MarkdownBlocks(root, {}).update("### deep first\n\n###### deeper\n\n# top\n", true);
  expect([...root.querySelectorAll("h1,h2,h3,h4,h5,h6")].map((heading) => heading.tagName)).toEqual(["H2", "H3", "H2"]);
});

test("containers that are too deep for the parser are text", () => {
  const deep = ["> ".repeat(11_000), ">".repeat(22_000), `${"1. ".repeat(7_000)}a`, `${"- ".repeat(11_000)}a`];
  for (const text of deep) {
    const root = document.createElement("div");
    const blocks = new MarkdownBlocks(root, {});
    blocks.update(`**before**\n\n${text}`, true);
    blocks.update(`**before**\n\n${text}\n\n**after**`, true);
    blocks.dispose();
    expect(root.textContent).toContain(text.trim());
  }
});
