// Markdown of a model as elements. The parser yields tokens, and only the elements of a fixed list are created from
// them, so a text cannot become a script, a form, a frame, an image or a style.
import MarkdownIt from "markdown-it"
import { h, iconButton } from "./dom"

const parser = new MarkdownIt({ html: false, linkify: false, typographer: false, maxNesting: 40 })

type Token = ReturnType<typeof parser.parse>[number]

/** The longest text that is parsed, in characters. Longer texts are shown as they are. */
const MAX_PARSED = 200_000

const TAGS = new Set([
  "p",
  "h1",
  "h2",
  "h3",
  "h4",
  "h5",
  "h6",
  "ul",
  "ol",
  "li",
  "blockquote",
  "strong",
  "em",
  "s",
  "table",
  "thead",
  "tbody",
  "tr",
  "th",
  "td",
])

export interface Actions {
  link(url: string): void
  copy(text: string): void
}

export function markdown(source: string, actions: Actions): DocumentFragment {
  const root = document.createDocumentFragment()
  if (source.length > MAX_PARSED) root.append(h("pre", { class: "plain" }, source))
  else render(parser.parse(source, {}), root, actions)
  return root
}

function render(tokens: Token[], root: Node, actions: Actions): void {
  const open: Node[] = [root]
  const top = (): Node => open.at(-1) ?? root
  for (const token of tokens) {
    if (token.nesting === -1) {
      if (open.length > 1) open.pop()
    } else if (token.nesting === 1) {
      const element = opened(token, actions)
      top().appendChild(element)
      open.push(element)
    } else {
      leaf(token, top(), actions)
    }
  }
}

function opened(token: Token, actions: Actions): HTMLElement {
  if (token.type === "link_open") return link(String(token.attrGet("href") ?? ""), actions)
  // The paragraphs of a tight list are hidden.
  if (token.hidden || !TAGS.has(token.tag)) return h("span")
  const element = document.createElement(token.tag)
  const start = token.tag === "ol" ? Number(token.attrGet("start") ?? 1) : 1
  if (Number.isInteger(start) && start !== 1) element.setAttribute("start", String(start))
  return element
}

function leaf(token: Token, parent: Node, actions: Actions): void {
  switch (token.type) {
    case "inline":
      return render(token.children ?? [], parent, actions)
    case "text":
      parent.appendChild(document.createTextNode(token.content))
      return
    case "code_inline":
      parent.appendChild(h("code", {}, token.content))
      return
    case "fence":
    case "code_block":
      parent.appendChild(codeBlock(token.content, token.info.trim().split(/\s/)[0] ?? "", actions))
      return
    case "softbreak":
      parent.appendChild(document.createTextNode("\n"))
      return
    case "hardbreak":
      parent.appendChild(h("br"))
      return
    case "hr":
      parent.appendChild(h("hr"))
      return
    case "image": {
      // An image would tell its server that the answer was read, so it is a link.
      const shown = link(String(token.attrGet("src") ?? ""), actions)
      shown.append(token.content === "" ? "image" : token.content)
      parent.appendChild(shown)
      return
    }
    default:
      parent.appendChild(document.createTextNode(token.content))
  }
}

/** A link without an address, so that only the extension host opens it, after its own check. */
function link(url: string, actions: Actions): HTMLElement {
  const element = h("a", { title: url, role: "link", click: () => actions.link(url) })
  element.tabIndex = 0
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter") actions.link(url)
  })
  return element
}

function codeBlock(code: string, language: string, actions: Actions): HTMLElement {
  const copy = iconButton("copy", "Copy", () => actions.copy(code), "icon-button copy")
  const name = h("span", { class: "language" }, language.slice(0, 40))
  return h("div", { class: "code" }, h("div", { class: "code-head" }, name, copy), h("pre", {}, h("code", {}, code)))
}
