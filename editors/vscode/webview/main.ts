// The chat. It gets the state of the active session once and then the events that change it, and draws the entries that
// changed before the next frame.
import type { ChangedFile, FromView, Phase, SessionTab, ToView } from "../src/messages"
import { apply, type Item, type Session } from "../src/transcript"
import { Composer } from "./composer"
import { button, h, icon, iconButton } from "./dom"
import { renderItem, renderRequest, type Actions } from "./items"

declare function acquireVsCodeApi(): {
  postMessage(message: FromView): void
  getState(): unknown
  setState(state: unknown): void
}

const host = acquireVsCodeApi()
/** How close to the end counts as the end, in pixels. */
const NEAR_END = 40
/** Long texts are drawn less often: a text of this many characters at most every 16 ms. */
const CHARACTERS_PER_FRAME = 8000

const actions: Actions = {
  link: (url) => host.postMessage({ type: "link", url }),
  copy: (text) => void navigator.clipboard.writeText(text),
  open: (path, line) => host.postMessage({ type: "open", path, line }),
  showCall: (call) => host.postMessage({ type: "showCall", call }),
  showRequest: (request) => host.postMessage({ type: "showRequest", request }),
  answer: (request, choice) => host.postMessage({ type: "answer", request, choice }),
  signIn: () => host.postMessage({ type: "command", name: "signIn" }),
}

let session: Session | null = null
let phase: Phase = { name: "starting" }
let tabs: SessionTab[] = []
let files: ChangedFile[] = []

const tabStrip = h("nav", { class: "tabs", label: "Sessions" })
const transcript = h("main", { class: "transcript", role: "log", label: "Conversation" })
const plan = h("section", { class: "plan", label: "Plan" })
const changes = h("section", { class: "changes", label: "Changed files" })
const requests = h("section", { class: "requests", label: "Requests" })
const working = h(
  "div",
  { class: "working", hidden: true },
  h("span", { class: "dot" }),
  h("span", { class: "dot" }),
  h("span", { class: "dot" }),
)

const composer = new Composer(
  {
    send: (text, images) => {
      host.postMessage({ type: "prompt", text, images })
      isFollowing = true
    },
    cancel: () => host.postMessage({ type: "cancel" }),
    option: (id, value) => host.postMessage({ type: "option", id, value }),
    selectModel: () => host.postMessage({ type: "command", name: "selectModel" }),
    mentions: (query) => host.postMessage({ type: "mentions", query }),
    save: (draft) => host.setState({ draft }),
  },
  savedDraft(),
)

document.getElementById("app")?.append(tabStrip, transcript, plan, changes, requests, composer.root)

function savedDraft(): string {
  const state = host.getState()
  const draft = typeof state === "object" && state !== null && "draft" in state ? state.draft : ""
  return typeof draft === "string" ? draft : ""
}

// Drawing.

const nodes = new Map<Item, HTMLElement>()
const dirty = new Set<Item>()
const drawnAt = new WeakMap<Item, number>()
let isScheduled = false
let isFollowing = true

let lastTop = 0

// Only scrolling up ends the following, because growing content also moves the end away.
transcript.addEventListener("scroll", () => {
  const top = transcript.scrollTop
  if (transcript.scrollHeight - top - transcript.clientHeight < NEAR_END) isFollowing = true
  else if (top < lastTop) isFollowing = false
  lastTop = top
})

function schedule(): void {
  if (isScheduled) return
  isScheduled = true
  requestAnimationFrame(draw)
}

function draw(now: number): void {
  isScheduled = false
  for (const item of dirty) {
    const length = item.kind === "agent" || item.kind === "thought" ? item.text.length : 0
    const rest = ((length / CHARACTERS_PER_FRAME) | 0) * 16
    if (session?.isRunning === true && now - (drawnAt.get(item) ?? 0) < rest) {
      schedule()
      continue
    }
    dirty.delete(item)
    drawnAt.set(item, now)
    drawItem(item)
  }
  if (isFollowing) transcript.scrollTop = transcript.scrollHeight
}

function drawItem(item: Item): void {
  const previous = nodes.get(item)
  const node = renderItem(item, actions, previous)
  nodes.set(item, node)
  if (previous === undefined) transcript.insertBefore(node, working)
  else previous.replaceWith(node)
}

/** Removes the entries that the session has dropped. */
function prune(): void {
  if (session === null || nodes.size <= session.items.length) return
  const kept = new Set(session.items)
  for (const [item, node] of nodes) {
    if (kept.has(item)) continue
    node.remove()
    nodes.delete(item)
    dirty.delete(item)
  }
}

function drawAll(): void {
  nodes.clear()
  dirty.clear()
  transcript.replaceChildren(...notices(), working)
  for (const item of session?.items ?? []) drawItem(item)
  drawRest()
  isFollowing = true
  schedule()
}

function drawRest(): void {
  tabStrip.replaceChildren(...(tabs.length > 1 ? tabs.map(tab) : []))
  tabStrip.hidden = tabs.length <= 1
  working.hidden = session?.isRunning !== true || session.requests.length > 0
  drawPlan()
  drawChanges()
  drawRequests()
  composer.update(session)
}

/** Draws the requests only if they have changed, so that a button keeps the focus. */
function drawRequests(): void {
  const waiting = session?.requests ?? []
  const key = JSON.stringify([session?.id, waiting.map((request) => request.id)])
  if (requests.dataset["key"] === key) return
  requests.dataset["key"] = key
  requests.replaceChildren(...waiting.map((request) => renderRequest(request, actions)))
}

function tab({ id, title, isRunning, isWaiting }: SessionTab): HTMLElement {
  const state = isWaiting ? "waiting" : isRunning ? "running" : "idle"
  const look = id === session?.id ? "tab active" : "tab"
  const shown = h("button", {
    class: "tab-name",
    type: "button",
    title,
    click: () => host.postMessage({ type: "switch", session: id }),
  })
  shown.append(h("span", { class: `tab-state ${state}`, title: state }), title)
  return h(
    "div",
    { class: look },
    shown,
    iconButton("close", `Close ${title}`, () => host.postMessage({ type: "close", session: id }), "tab-close"),
  )
}

function notices(): HTMLElement[] {
  const command = (name: Extract<FromView, { type: "command" }>["name"]): (() => void) => {
    return () => host.postMessage({ type: "command", name })
  }
  const card = (title: string, text: string, ...buttons: HTMLElement[]): HTMLElement =>
    h(
      "div",
      { class: "card notice" },
      h("div", { class: "card-title" }, title),
      h("p", {}, text),
      h("div", { class: "choices" }, ...buttons),
    )
  if (phase.name === "missing") {
    return [
      card(
        "Codewright is not installed",
        "The program was not found on PATH or in ~/.cargo/bin. This extension contains no copy of it.",
        button("Find or install…", command("locate"), "button primary"),
        button("Try again", command("restart")),
      ),
    ]
  }
  if (phase.name === "failed") {
    return [
      card(
        "Codewright is not running",
        phase.reason,
        button("Restart", command("restart"), "button primary"),
        button("Show log", command("showLog")),
      ),
    ]
  }
  if (phase.name === "starting" && session === null) return [h("div", { class: "empty" }, "Starting…")]
  if (session !== null && session.items.length === 0) return [welcome()]
  if (session !== null && session.dropped > 0)
    return [h("div", { class: "empty" }, `${session.dropped} earlier entries are not shown.`)]
  return []
}

function welcome(): HTMLElement {
  const hint = (name: string, text: string): HTMLElement => h("div", { class: "hint" }, h("code", {}, name), text)
  return h(
    "div",
    { class: "empty welcome" },
    h("div", { class: "mark" }, icon("terminal")),
    h("h2", {}, "What should we work on?"),
    hint("@selection", "adds the selected code"),
    hint("@problems", "adds errors and warnings"),
    hint("@src/main.rs", "adds a file"),
    hint("/", "lists the commands"),
    button("Open an earlier session", () => host.postMessage({ type: "command", name: "sessions" }), "button link"),
  )
}

function drawPlan(): void {
  const entries = session?.plan ?? []
  const isOpen = entries.some((entry) => entry.status !== "completed")
  plan.hidden = !isOpen
  if (!isOpen) return
  const done = entries.filter((entry) => entry.status === "completed").length
  plan.replaceChildren(
    h("div", { class: "bar-title" }, `Plan · ${done} of ${entries.length}`),
    ...entries.map(({ content, status }) =>
      h(
        "div",
        { class: `step ${status}` },
        status === "completed" ? icon("check") : h("span", { class: "bullet" }),
        h("span", {}, content),
      ),
    ),
  )
}

function drawChanges(): void {
  changes.hidden = files.length === 0
  const added = files.reduce((sum, file) => sum + file.added, 0)
  const removed = files.reduce((sum, file) => sum + file.removed, 0)
  const count = (plus: number, minus: number): HTMLElement =>
    h(
      "span",
      { class: "counts" },
      h("span", { class: "added" }, `+${plus}`),
      h("span", { class: "removed" }, `−${minus}`),
    )
  changes.replaceChildren(
    h(
      "div",
      { class: "bar-title" },
      `${files.length} changed ${files.length === 1 ? "file" : "files"}`,
      count(added, removed),
      h("span", { class: "space" }),
      button("Accept all", () => host.postMessage({ type: "command", name: "acceptAll" }), "button link"),
    ),
    ...files.map((file) =>
      h(
        "button",
        {
          class: "file",
          type: "button",
          title: file.path,
          click: () => host.postMessage({ type: "review", path: file.path }),
        },
        icon("file"),
        h("span", { class: "file-name" }, file.label),
        count(file.added, file.removed),
      ),
    ),
  )
}

// Messages.

function receive(message: ToView): void {
  switch (message.type) {
    case "state":
      ;({ phase, tabs, session } = message)
      return drawAll()
    case "tabs": {
      const hasChanged = phase.name !== message.phase.name
      ;({ phase, tabs } = message)
      const own = tabs.find((it) => it.id === session?.id)
      if (session !== null && own !== undefined) session.title = own.title
      return hasChanged ? drawAll() : drawRest()
    }
    case "event": {
      if (session?.id !== message.session) return
      const wasEmpty = session.items.length === 0
      const item = apply(session, message.event)
      if (item === null) return drawRest()
      if (wasEmpty) for (const notice of transcript.querySelectorAll(".empty")) notice.remove()
      dirty.add(item)
      prune()
      return schedule()
    }
    case "changes":
      files = message.files
      return drawChanges()
    case "editor":
      return composer.showEditor(message.editor)
    case "insert":
      return composer.insert(message.text)
    case "mentions":
      return composer.showMentions(message.query, message.mentions)
  }
}

window.addEventListener("message", (event: MessageEvent<ToView>) => receive(event.data))
window.addEventListener("focus", () => composer.focus())
host.postMessage({ type: "ready" })
