// The entries of a conversation as elements.
import { hunks, lines } from "../src/hunks"
import type { Difference, Item, Request, ToolItem } from "../src/transcript"
import { button, h, icon, type IconName } from "./dom"
import { markdown, type Actions as MarkdownActions } from "./markdown"

/** The most lines of a difference that are shown. */
const MAX_DIFF_LINES = 200
/** Differences of at most this many lines are open from the beginning. */
const OPEN_DIFF_LINES = 24
/** The lines around a change that are shown. */
const CONTEXT = 2

export interface Actions extends MarkdownActions {
  open(path: string, line?: number): void
  showCall(id: string): void
  showRequest(id: string): void
  answer(request: string, choice: string): void
  signIn(): void
}

export function renderItem(item: Item, actions: Actions, previous?: HTMLElement): HTMLElement {
  switch (item.kind) {
    case "user":
      return h(
        "div",
        { class: "item user" },
        h("div", { class: "bubble" }, item.text),
        item.attachments.length > 0 &&
          h("div", { class: "attachments" }, ...item.attachments.map((name) => h("span", { class: "chip" }, name))),
      )
    case "agent": {
      const body = h("div", { class: "item agent" })
      body.append(markdown(item.text, actions))
      return body
    }
    case "thought": {
      const isOpen = previous instanceof HTMLDetailsElement && previous.open
      const details = h("details", { class: "item thought" }, h("summary", {}, icon("chevron"), "Thought"))
      details.open = isOpen
      const body = h("div", { class: "thought-text" })
      body.append(markdown(item.text, actions))
      details.append(body)
      return details
    }
    case "error":
      return h(
        "div",
        { class: "item error", role: "alert" },
        icon("warning"),
        h(
          "div",
          {},
          item.text,
          item.signIn && h("div", { class: "row" }, button("Sign in to a provider", actions.signIn)),
        ),
      )
    case "tool":
      return tool(item, actions, previous)
  }
}

const ICONS: Record<string, IconName> = {
  execute: "terminal",
  edit: "pencil",
  delete: "close",
  read: "file",
  fetch: "globe",
  search: "search",
}

function tool(item: ToolItem, actions: Actions, previous?: HTMLElement): HTMLElement {
  const place = item.places[0]
  const size = item.differences.reduce((sum, it) => sum + lines(it.after).length + lines(it.before).length, 0)
  const wasToggled = previous?.dataset["toggled"] === "yes"
  const isOpen = wasToggled
    ? previous instanceof HTMLDetailsElement && previous.open
    : item.differences.length > 0 && size <= OPEN_DIFF_LINES
  const title = h(
    "span",
    { class: "tool-title", title: item.title },
    item.title === "" ? item.tool : oneLine(item.title),
  )
  const summary = h(
    "summary",
    {},
    h("span", { class: `state ${item.status}`, title: item.status.replace("_", " ") }),
    icon(ICONS[item.tool] ?? "gear"),
    title,
  )
  if (item.differences.length > 0) summary.append(counts(item.differences))
  const details = h("details", { class: `item tool ${item.status}` }, summary)
  details.open = isOpen
  if (wasToggled) details.dataset["toggled"] = "yes"
  summary.addEventListener("click", () => (details.dataset["toggled"] = "yes"))
  for (const difference of item.differences) details.append(diff(difference))
  const isFile = place !== undefined && item.tool !== "execute"
  if (item.differences.length > 0 || isFile) {
    details.append(
      h(
        "div",
        { class: "row" },
        item.differences.length > 0 && button("Open diff", () => actions.showCall(item.id), "button link"),
        isFile && button("Open file", () => actions.open(place.path, place.line), "button link"),
      ),
    )
  }
  const isNoise = item.differences.length > 0 && item.status === "completed"
  if (item.output !== "" && !isNoise) details.append(h("pre", { class: "output" }, item.output))
  return details
}

function counts(differences: Difference[]): HTMLElement {
  const found = differences.flatMap((it) => hunks(it.before, it.after))
  const added = found.reduce((sum, hunk) => sum + hunk.after.count, 0)
  const removed = found.reduce((sum, hunk) => sum + hunk.before.count, 0)
  return h(
    "span",
    { class: "counts" },
    h("span", { class: "added" }, `+${added}`),
    h("span", { class: "removed" }, `−${removed}`),
  )
}

/** A difference with the changed lines and some lines around them. */
export function diff({ before, after }: Difference): HTMLElement {
  const [old, young] = [lines(before), lines(after)]
  const body = h("pre", { class: "diff" })
  let shown = 0
  const add = (kind: string, mark: string, line: string): void => {
    shown += 1
    if (shown <= MAX_DIFF_LINES) body.append(h("span", { class: `line ${kind}` }, `${mark} ${line.replace(/\n$/, "")}`))
  }
  let last = 0
  for (const hunk of hunks(before, after)) {
    const from = Math.max(last, hunk.after.line - CONTEXT)
    if (from > last && last > 0) body.append(h("span", { class: "line gap" }, "⋯"))
    for (const line of young.slice(from, hunk.after.line)) add("same", " ", line)
    for (const line of old.slice(hunk.before.line, hunk.before.line + hunk.before.count)) add("removed", "-", line)
    for (const line of young.slice(hunk.after.line, hunk.after.line + hunk.after.count)) add("added", "+", line)
    last = hunk.after.line + hunk.after.count
    for (const line of young.slice(last, last + CONTEXT)) add("same", " ", line)
    last = Math.min(last + CONTEXT, young.length)
  }
  if (shown > MAX_DIFF_LINES) body.append(h("span", { class: "line gap" }, `${shown - MAX_DIFF_LINES} more lines`))
  return body
}

const VERBS: Record<string, string> = {
  execute: "Run this command?",
  edit: "Change this file?",
  delete: "Delete this file?",
  read: "Read this?",
  fetch: "Fetch this address?",
  search: "Search this?",
}

/** A permission request or a question, as a card above the composer. */
export function renderRequest(request: Request, actions: Actions): HTMLElement {
  const card = h("div", {
    class: "card request",
    role: "group",
    label: request.isQuestion ? "Question" : "Permission request",
  })
  if (request.isQuestion) {
    card.append(h("div", { class: "card-title" }, request.title))
    const body = h("div", { class: "card-text" })
    body.append(markdown(request.details, actions))
    card.append(body)
  } else {
    card.append(h("div", { class: "card-title" }, icon("warning"), VERBS[request.tool] ?? "Allow this?"))
    card.append(h("pre", { class: "subject" }, request.title))
    if (request.details !== "") card.append(h("pre", { class: "output" }, request.details))
    for (const difference of request.differences) card.append(diff(difference))
  }
  const row = h("div", { class: request.isQuestion ? "choices column" : "choices" })
  request.choices.forEach((choice, at) => {
    const look =
      at === 0 && !request.isQuestion ? "button primary" : choice.role === "reject" ? "button quiet" : "button"
    row.append(button(choice.label, () => actions.answer(request.id, choice.id), look))
  })
  if (request.differences.length > 0)
    row.append(button("Open diff", () => actions.showRequest(request.id), "button link"))
  card.append(row)
  return card
}

function oneLine(text: string): string {
  const line = text.split("\n", 1)[0] ?? ""
  return line.length < text.trimEnd().length ? `${line} …` : line
}
