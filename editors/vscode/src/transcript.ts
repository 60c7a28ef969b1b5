// The state of a session as a value, and the events that change it. The extension host and the view run the same
// function, so the view needs the whole state only once.
import { clipped, fields, list, number, optionalText, position, text } from "./read"

/** The most entries of a conversation that are kept. Older ones are dropped and counted. */
export const MAX_ITEMS = 2000
/** The longest text of an entry, in characters. */
export const MAX_TEXT = 1 << 20
/** The longest output of a tool that is kept, in characters. */
export const MAX_OUTPUT = 64 << 10
/** The longest side of a difference that is kept, in characters. */
export const MAX_DIFF_TEXT = 256 << 10

export interface Place {
  path: string
  line?: number
}

export interface Difference {
  path: string
  before: string
  after: string
}

export interface ToolItem {
  kind: "tool"
  id: string
  title: string
  tool: string
  status: "pending" | "in_progress" | "completed" | "failed"
  output: string
  places: Place[]
  differences: Difference[]
}

export type Item =
  | { kind: "user"; id: string; text: string; attachments: string[] }
  | { kind: "agent"; id: string; text: string }
  | { kind: "thought"; id: string; text: string }
  | { kind: "error"; text: string; signIn: boolean }
  | ToolItem

export interface Choice {
  id: string
  label: string
  role: "allow" | "reject"
  description?: string
}

/** A permission request or a question. */
export interface Request {
  id: string
  title: string
  tool: string
  details: string
  choices: Choice[]
  differences: Difference[]
  places: Place[]
  isQuestion: boolean
}

export interface OptionValue {
  value: string
  name: string
  description?: string
}

/** Something that can be chosen for a session: the model, the effort, the mode. */
export interface Option {
  id: string
  name: string
  current: string
  values: OptionValue[]
}

export interface Command {
  name: string
  description: string
  hint?: string
}

export interface PlanEntry {
  content: string
  status: "pending" | "in_progress" | "completed"
}

export interface Usage {
  used: number
  size: number
  cost?: number
  currency?: string
}

export interface Session {
  id: string
  title: string
  directory: string
  items: Item[]
  dropped: number
  options: Option[]
  commands: Command[]
  plan: PlanEntry[]
  usage?: Usage
  isRunning: boolean
  requests: Request[]
}

export type Event =
  | { kind: "update"; update: unknown }
  | { kind: "user"; text: string; attachments: string[] }
  | { kind: "running"; isRunning: boolean }
  | { kind: "options"; options: Option[] }
  | { kind: "request"; request: Request }
  | { kind: "answered"; id: string }
  | { kind: "error"; text: string; signIn: boolean }
  | { kind: "cleared" }

export function newSession(id: string, directory: string): Session {
  return {
    id,
    title: "New session",
    directory,
    items: [],
    dropped: 0,
    options: [],
    commands: [],
    plan: [],
    isRunning: false,
    requests: [],
  }
}

/** Changes a session. Returns the entry that changed, or null if something else did. */
export function apply(session: Session, event: Event): Item | null {
  switch (event.kind) {
    case "update":
      return update(session, fields(event.update))
    case "user":
      return push(session, {
        kind: "user",
        id: "",
        text: clipped(event.text, MAX_TEXT),
        attachments: event.attachments,
      })
    case "error":
      return push(session, { kind: "error", text: clipped(event.text, MAX_OUTPUT), signIn: event.signIn })
    case "running":
      session.isRunning = event.isRunning
      if (!event.isRunning) session.requests = []
      return null
    case "options":
      session.options = event.options
      return null
    case "request":
      session.requests = [...session.requests.filter((it) => it.id !== event.request.id), event.request]
      return null
    case "answered":
      session.requests = session.requests.filter((it) => it.id !== event.id)
      return null
    case "cleared":
      session.items = []
      session.dropped = 0
      session.plan = []
      return null
  }
}

function push(session: Session, item: Item): Item {
  session.items.push(item)
  if (session.items.length > MAX_ITEMS) {
    session.dropped += session.items.length - MAX_ITEMS
    session.items.splice(0, session.items.length - MAX_ITEMS)
  }
  return item
}

function update(session: Session, it: ReturnType<typeof fields>): Item | null {
  switch (it["sessionUpdate"]) {
    case "user_message_chunk":
      return userChunk(session, fields(it["content"]), text(it["messageId"]))
    case "agent_message_chunk":
      return grow(session, "agent", text(it["messageId"]), fields(it["content"]))
    case "agent_thought_chunk":
      return grow(session, "thought", text(it["messageId"]), fields(it["content"]))
    case "tool_call":
    case "tool_call_update":
      return toolCall(session, it)
    case "plan":
      session.plan = list(it["entries"], 200).map(planEntry)
      return null
    case "available_commands_update":
      session.commands = list(it["availableCommands"])
        .map(command)
        .filter((entry) => entry.name !== "")
      return null
    case "config_option_update":
      session.options = readOptions(it["configOptions"])
      return null
    case "current_mode_update":
      for (const option of session.options) if (option.id === "mode") option.current = text(it["currentModeId"], 200)
      return null
    case "session_info_update":
      session.title = optionalText(it["title"], 200) ?? session.title
      return null
    case "usage_update":
      session.usage = usage(it)
      return null
    default:
      return null
  }
}

/** Adds a part of a prompt. Parts of one message are one entry. */
function userChunk(session: Session, content: ReturnType<typeof fields>, message: string): Item | null {
  const audience = list(fields(content["annotations"])["audience"])
  if (audience.length > 0 && !audience.includes("user")) return null
  const last = session.items.at(-1)
  const isSame = last?.kind === "user" && last.id !== "" && last.id === message
  const item = isSame ? last : push(session, { kind: "user", id: message, text: "", attachments: [] })
  if (item.kind !== "user") return null
  if (content["type"] === "text") {
    const piece = text(content["text"], MAX_TEXT)
    item.text = clipped(item.text === "" ? piece : `${item.text}\n${piece}`, MAX_TEXT)
  } else {
    item.attachments.push(text(content["name"], 200) || text(content["mimeType"], 200) || "attachment")
  }
  return item
}

function grow(
  session: Session,
  kind: "agent" | "thought",
  id: string,
  content: ReturnType<typeof fields>,
): Item | null {
  const piece =
    content["type"] === "text" ? text(content["text"], MAX_TEXT) : `[${text(content["type"], 40) || "content"}]`
  if (piece === "") return null
  const last = session.items.at(-1)
  if (last?.kind === kind && last.id === id) {
    if (last.text.length < MAX_TEXT) last.text += piece.slice(0, MAX_TEXT - last.text.length)
    return last
  }
  return push(session, { kind, id, text: piece })
}

function toolCall(session: Session, it: ReturnType<typeof fields>): Item {
  const id = text(it["toolCallId"], 200)
  const known = session.items.findLast((item): item is ToolItem => item.kind === "tool" && item.id === id)
  const item =
    known ??
    (push(session, {
      kind: "tool",
      id,
      title: "",
      tool: "other",
      status: "pending",
      output: "",
      places: [],
      differences: [],
    }) as ToolItem)
  item.title = optionalText(it["title"], 2000) ?? item.title
  item.tool = optionalText(it["kind"], 40) ?? item.tool
  item.status = status(it["status"]) ?? item.status
  if (Array.isArray(it["locations"])) item.places = readPlaces(it["locations"])
  if (Array.isArray(it["content"])) {
    item.output = readOutput(it["content"])
    item.differences = readDifferences(it["content"])
  }
  return item
}

function status(value: unknown): ToolItem["status"] | undefined {
  return value === "pending" || value === "in_progress" || value === "completed" || value === "failed"
    ? value
    : undefined
}

export function readPlaces(value: unknown): Place[] {
  return list(value, 50).map((entry) => {
    const line = position(fields(entry)["line"])
    const path = text(fields(entry)["path"], 4096)
    return line === undefined ? { path } : { path, line }
  })
}

export function readOutput(value: unknown): string {
  const pieces = list(value, 100)
    .map((entry) => fields(fields(entry)["content"]))
    .map((content) => (content["type"] === "image" ? "[image]" : text(content["text"], MAX_OUTPUT)))
  return clipped(pieces.filter((piece) => piece !== "").join("\n"), MAX_OUTPUT)
}

export function readDifferences(value: unknown): Difference[] {
  return list(value, 100)
    .map(fields)
    .filter((entry) => entry["type"] === "diff")
    .map((entry) => ({
      path: text(entry["path"], 4096),
      before: text(entry["oldText"], MAX_DIFF_TEXT),
      after: text(entry["newText"], MAX_DIFF_TEXT),
    }))
}

function planEntry(value: unknown): PlanEntry {
  const entry = fields(value)
  const state = entry["status"]
  return {
    content: text(entry["content"], 1000),
    status: state === "in_progress" || state === "completed" ? state : "pending",
  }
}

function command(value: unknown): Command {
  const entry = fields(value)
  const hint = optionalText(fields(entry["input"])["hint"], 200)
  const found = { name: text(entry["name"], 100), description: text(entry["description"], 400) }
  return hint === undefined ? found : { ...found, hint }
}

function usage(it: ReturnType<typeof fields>): Usage {
  const cost = number(fields(it["cost"])["amount"])
  const found: Usage = { used: number(it["used"]) ?? 0, size: number(it["size"]) ?? 0 }
  if (cost !== undefined) {
    found.cost = cost
    found.currency = text(fields(it["cost"])["currency"], 8) || "USD"
  }
  return found
}

/** Reads the options of a session. Groups of values become one list. */
export function readOptions(value: unknown): Option[] {
  return list(value, 20)
    .map(fields)
    .filter((entry) => Array.isArray(entry["options"]))
    .map((entry) => ({
      id: text(entry["id"], 100),
      name: text(entry["name"], 100),
      current: text(entry["currentValue"], 300),
      values: list(entry["options"], 5000).flatMap((one) => {
        const nested = fields(one)["options"]
        return (Array.isArray(nested) ? list(nested, 5000) : [one]).map(optionValue)
      }),
    }))
}

function optionValue(value: unknown): OptionValue {
  const entry = fields(value)
  const description = optionalText(entry["description"], 400)
  const found = { value: text(entry["value"], 300), name: text(entry["name"], 200) || text(entry["value"], 200) }
  return description === undefined ? found : { ...found, description }
}

/** The ids of the usual options of a permission request. A request with others is a question of the model. */
const PERMISSION_IDS = new Set(["once", "always", "reject"])

/** Reads a permission request of the agent. */
export function readRequest(id: string, params: unknown): Request {
  const call = fields(fields(params)["toolCall"])
  const input = fields(call["rawInput"])
  const choices = list(fields(params)["options"], 100)
    .map(fields)
    .map(
      (entry): Choice => ({
        id: text(entry["optionId"], 200),
        label: text(entry["name"], 300) || text(entry["optionId"], 200),
        role: text(entry["kind"], 40).startsWith("reject") ? "reject" : "allow",
      }),
    )
  const isQuestion = !choices.every((choice) => PERMISSION_IDS.has(choice.id))
  const title = text(call["title"], 4000)
  // The arguments of a call are shown as they are, because the title is only a part of them.
  const command = text(input["command"], 16_000)
  const details = isQuestion ? readOutput(call["content"]) : command !== title ? command : ""
  return {
    id,
    title,
    tool: text(call["kind"], 40) || "other",
    details: isQuestion ? withoutTitle(details, title) : details,
    choices,
    differences: readDifferences(call["content"]),
    places: readPlaces(call["locations"]),
    isQuestion,
  }
}

function withoutTitle(details: string, title: string): string {
  return details.startsWith(title) ? details.slice(title.length).trimStart() : details
}
