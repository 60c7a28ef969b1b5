// The messages between the extension host and the view. The host checks every message of the view, because the view
// shows texts of models, repositories and servers.
import { fields, list, position, text } from "./read"
import type { Event, Session } from "./transcript"

/** The longest prompt, in characters. */
export const MAX_PROMPT = 1 << 20
/** The most pictures of a prompt, and the largest one as base64. */
export const MAX_IMAGES = 8
export const MAX_IMAGE = 8 << 20

export interface SessionTab {
  id: string
  title: string
  isRunning: boolean
  isWaiting: boolean
}

export interface ChangedFile {
  path: string
  label: string
  hunks: number
  added: number
  removed: number
}

/** The state of the program. */
export type Phase = { name: "starting" } | { name: "ready" } | { name: "missing" } | { name: "failed"; reason: string }

/** The active editor, for the buttons of the composer. */
export interface EditorState {
  file: string
  lines: string
  problems: number
}

export interface Mention {
  name: string
  description: string
}

export type ToView =
  | { type: "state"; phase: Phase; tabs: SessionTab[]; session: Session | null }
  | { type: "tabs"; phase: Phase; tabs: SessionTab[] }
  | { type: "event"; session: string; event: Event }
  | { type: "changes"; files: ChangedFile[] }
  | { type: "editor"; editor: EditorState | null }
  | { type: "insert"; text: string }
  | { type: "mentions"; query: string; mentions: Mention[] }

export interface Image {
  mime: string
  data: string
}

export type FromView =
  | { type: "ready" }
  | { type: "prompt"; text: string; images: Image[] }
  | { type: "cancel" }
  | { type: "answer"; request: string; choice: string }
  | { type: "option"; id: string; value: string }
  | { type: "switch"; session: string }
  | { type: "close"; session: string }
  | { type: "open"; path: string; line: number | undefined }
  | { type: "review"; path: string }
  | { type: "showRequest"; request: string }
  | { type: "showCall"; call: string }
  | { type: "link"; url: string }
  | { type: "mentions"; query: string }
  | { type: "command"; name: ViewCommand }

const VIEW_COMMANDS = [
  "newSession",
  "sessions",
  "selectModel",
  "locate",
  "signIn",
  "restart",
  "showLog",
  "acceptAll",
] as const
export type ViewCommand = (typeof VIEW_COMMANDS)[number]

const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"])

/** Reads a message of the view. Returns null if it is not valid. */
export function readFromView(value: unknown): FromView | null {
  const it = fields(value)
  switch (it["type"]) {
    case "ready":
    case "cancel":
      return { type: it["type"] }
    case "prompt":
      return prompt(it)
    case "answer":
      return { type: "answer", request: text(it["request"], 200), choice: text(it["choice"], 200) }
    case "option":
      return { type: "option", id: text(it["id"], 100), value: text(it["value"], 300) }
    case "switch":
    case "close":
      return { type: it["type"], session: text(it["session"], 200) }
    case "open":
      return { type: "open", path: text(it["path"], 4096), line: position(it["line"]) }
    case "review":
      return { type: "review", path: text(it["path"], 4096) }
    case "showRequest":
      return { type: "showRequest", request: text(it["request"], 200) }
    case "showCall":
      return { type: "showCall", call: text(it["call"], 200) }
    case "link":
      return { type: "link", url: text(it["url"], 4096) }
    case "mentions":
      return { type: "mentions", query: text(it["query"], 200) }
    case "command": {
      const name = VIEW_COMMANDS.find((known) => known === it["name"])
      return name === undefined ? null : { type: "command", name }
    }
    default:
      return null
  }
}

function prompt(it: ReturnType<typeof fields>): FromView | null {
  if (typeof it["text"] !== "string" || it["text"].length > MAX_PROMPT) return null
  const images = list(it["images"], MAX_IMAGES)
    .map(fields)
    .map((image) => ({ mime: text(image["mime"], 40), data: typeof image["data"] === "string" ? image["data"] : "" }))
  const isValid = (image: Image): boolean =>
    IMAGE_TYPES.has(image.mime) && image.data.length <= MAX_IMAGE && /^[A-Za-z0-9+/]+={0,2}$/.test(image.data)
  return images.every(isValid) ? { type: "prompt", text: it["text"], images } : null
}
