// The composer: the prompt, its completion, pictures, and the buttons below it.
import type { EditorState, Image, Mention } from "../src/messages"
import type { Command, Session, Usage } from "../src/transcript"
import { h, icon, iconButton } from "./dom"

const MAX_IMAGES = 8
const MAX_IMAGE_BYTES = 6 << 20
const MAX_ROWS_HEIGHT = 240
/** How many prompts the arrow keys bring back. */
const MAX_HISTORY = 50
/** The most entries of a completion. */
const MAX_ENTRIES = 12

export interface ComposerActions {
  send(text: string, images: Image[]): void
  cancel(): void
  option(id: string, value: string): void
  selectModel(): void
  mentions(query: string): void
  save(draft: string): void
}

interface Entry {
  insert: string
  label: string
  description: string
}

export class Composer {
  readonly root: HTMLElement
  private readonly input = document.createElement("textarea")
  private readonly popup = h("div", { class: "popup", role: "listbox", hidden: true })
  private readonly chips = h("div", { class: "chips" })
  private readonly tools = h("div", { class: "tools" })
  private readonly pickerRow = h("div", { class: "pickers" })
  private drawnOptions = ""
  private readonly meter = h("div", { class: "meter" })
  private readonly history: string[] = []
  private recalled = -1
  private entries: Entry[] = []
  private chosen = 0
  private images: (Image & { name: string })[] = []
  private session: Session | null = null
  private editor: EditorState | null = null

  constructor(
    private readonly actions: ComposerActions,
    draft: string,
  ) {
    this.input.rows = 1
    this.input.placeholder = "Ask Codewright…   @ adds context, / runs a command"
    this.input.setAttribute("aria-label", "Prompt")
    this.input.value = draft
    this.input.addEventListener("input", () => this.edited())
    this.input.addEventListener("keydown", (event) => this.pressed(event))
    this.input.addEventListener("paste", (event) => this.pasted(event))
    this.input.addEventListener("blur", () => setTimeout(() => this.closePopup(), 150))
    this.root = h(
      "div",
      { class: "composer" },
      this.popup,
      this.chips,
      h("div", { class: "box" }, this.input, this.tools),
      this.meter,
    )
    this.render()
  }

  update(session: Session | null): void {
    this.session = session
    this.render()
  }

  showEditor(editor: EditorState | null): void {
    this.editor = editor
    this.renderChips()
  }

  showMentions(query: string, mentions: Mention[]): void {
    if (this.mentionQuery() !== query) return
    this.openPopup(mentions.map(({ name, description }) => ({ insert: `@${name} `, label: `@${name}`, description })))
  }

  /** Inserts a text at the cursor. */
  insert(text: string): void {
    const at = this.input.selectionStart
    const before = this.input.value.slice(0, at)
    const gap = before !== "" && !/\s$/.test(before) ? " " : ""
    this.input.setRangeText(gap + text, at, this.input.selectionEnd, "end")
    this.input.focus()
    this.edited()
  }

  focus(): void {
    this.input.focus()
  }

  private render(): void {
    this.renderChips()
    // An open list of the pickers would close if they were drawn again.
    const key = JSON.stringify(this.session?.options ?? [])
    if (this.drawnOptions !== key) {
      this.drawnOptions = key
      this.pickerRow.replaceChildren(...this.pickers())
    }
    this.tools.replaceChildren(this.pickerRow, h("span", { class: "space" }), this.sendButton())
    this.meter.replaceChildren(...meter(this.session?.usage))
    this.resize()
  }

  private pickers(): HTMLElement[] {
    return (this.session?.options ?? []).map((option) => {
      if (option.id === "model") {
        const current = option.values.find((it) => it.value === option.current)
        const name = current?.name ?? option.current
        return h(
          "button",
          {
            class: "picker",
            type: "button",
            title: `Model: ${option.current}`,
            click: () => this.actions.selectModel(),
          },
          name,
        )
      }
      const select = h("select", { class: "picker", title: option.name, label: option.name })
      for (const { value, name } of option.values) {
        const entry = h("option", {}, name)
        entry.value = value
        entry.selected = value === option.current
        select.append(entry)
      }
      select.addEventListener("change", () => this.actions.option(option.id, select.value))
      return select
    })
  }

  private sendButton(): HTMLElement {
    const isStop = (this.session?.isRunning ?? false) && this.input.value.trim() === ""
    return isStop
      ? iconButton("stop", "Cancel (Escape)", () => this.actions.cancel(), "send stop")
      : iconButton("send", "Send (Enter)", () => this.send(), "send")
  }

  private renderChips(): void {
    const chip = (label: string, title: string, insert: string): HTMLElement =>
      h("button", { class: "chip add", type: "button", title, click: () => this.insert(insert) }, icon("plus"), label)
    const found: HTMLElement[] = this.images.map((image, at) =>
      h(
        "span",
        { class: "chip" },
        image.name,
        iconButton("close", "Remove", () => this.removeImage(at), "chip-close"),
      ),
    )
    if (this.editor !== null) {
      const { file, lines, problems } = this.editor
      const name = file.split("/").at(-1) ?? file
      if (lines !== "") found.push(chip(`${name}:${lines}`, "Add the selection", "@selection "))
      else if (!/\s/.test(file)) found.push(chip(name, `Add ${file}`, `@${file} `))
      if (problems > 0)
        found.push(chip(`${problems} ${problems === 1 ? "problem" : "problems"}`, "Add the problems", "@problems "))
    }
    this.chips.replaceChildren(...found)
  }

  private edited(): void {
    this.recalled = -1
    this.actions.save(this.input.value)
    this.tools.replaceChild(this.sendButton(), this.tools.lastElementChild as Element)
    this.resize()
    const command = /^\/(\S*)$/.exec(this.input.value.slice(0, this.input.selectionStart))
    const query = this.mentionQuery()
    if (command !== null) this.openPopup(commandEntries(this.session?.commands ?? [], command[1] ?? ""))
    else if (query !== null) this.actions.mentions(query)
    else this.closePopup()
  }

  private mentionQuery(): string | null {
    return /(?:^|\s)@([^\s@]*)$/.exec(this.input.value.slice(0, this.input.selectionStart))?.[1] ?? null
  }

  private resize(): void {
    this.input.style.height = "auto"
    this.input.style.height = `${Math.min(this.input.scrollHeight, MAX_ROWS_HEIGHT)}px`
  }

  private pressed(event: KeyboardEvent): void {
    if (event.isComposing) return
    if (!this.popup.hidden && this.pressedInPopup(event)) return event.preventDefault()
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault()
      this.send()
    } else if (event.key === "Escape" && this.session?.isRunning === true) {
      event.preventDefault()
      this.actions.cancel()
    } else if (event.key === "ArrowUp" && (this.input.value === "" || this.recalled >= 0)) {
      if (this.recall(this.recalled + 1)) event.preventDefault()
    } else if (event.key === "ArrowDown" && this.recalled >= 0) {
      if (this.recall(this.recalled - 1)) event.preventDefault()
    }
  }

  private pressedInPopup(event: KeyboardEvent): boolean {
    const count = this.entries.length
    switch (event.key) {
      case "ArrowDown":
        this.chosen = (this.chosen + 1) % count
        break
      case "ArrowUp":
        this.chosen = (this.chosen + count - 1) % count
        break
      case "Enter":
      case "Tab":
        this.complete(this.entries[this.chosen])
        return true
      case "Escape":
        this.closePopup()
        return true
      default:
        return false
    }
    this.drawPopup()
    return true
  }

  private recall(at: number): boolean {
    const text = at < 0 ? "" : this.history[at]
    if (text === undefined) return false
    this.input.value = text
    this.resize()
    this.recalled = at
    return true
  }

  private send(): void {
    const text = this.input.value
    if (text.trim() === "" && this.images.length === 0) return
    this.actions.send(
      text,
      this.images.map(({ mime, data }) => ({ mime, data })),
    )
    this.history.unshift(text)
    this.history.length = Math.min(this.history.length, MAX_HISTORY)
    this.images = []
    this.input.value = ""
    this.closePopup()
    this.edited()
    this.renderChips()
  }

  private openPopup(entries: Entry[]): void {
    this.entries = entries.slice(0, MAX_ENTRIES)
    this.chosen = 0
    this.popup.hidden = this.entries.length === 0
    this.drawPopup()
  }

  private closePopup(): void {
    this.popup.hidden = true
    this.entries = []
  }

  private drawPopup(): void {
    this.popup.replaceChildren(
      ...this.entries.map((entry, at) => {
        const row = h(
          "div",
          { class: at === this.chosen ? "entry chosen" : "entry", role: "option" },
          h("span", { class: "entry-name" }, entry.label),
        )
        row.append(h("span", { class: "entry-description" }, entry.description))
        // The composer keeps the focus.
        row.addEventListener("mousedown", (event) => {
          event.preventDefault()
          this.complete(entry)
        })
        return row
      }),
    )
  }

  private complete(entry: Entry | undefined): void {
    if (entry === undefined) return
    const at = this.input.selectionStart
    const before = this.input.value.slice(0, at)
    const start = before.length - (/[@/][^\s@]*$/.exec(before)?.[0].length ?? 0)
    this.input.setRangeText(entry.insert, start, at, "end")
    this.closePopup()
    this.actions.save(this.input.value)
  }

  private pasted(event: ClipboardEvent): void {
    for (const item of event.clipboardData?.items ?? []) {
      const file = item.kind === "file" ? item.getAsFile() : null
      if (
        file === null ||
        !file.type.startsWith("image/") ||
        file.size > MAX_IMAGE_BYTES ||
        this.images.length >= MAX_IMAGES
      )
        continue
      event.preventDefault()
      const reader = new FileReader()
      reader.addEventListener("load", () => {
        const data = String(reader.result).split(",", 2)[1] ?? ""
        this.images.push({ mime: file.type, data, name: file.name })
        this.renderChips()
      })
      reader.readAsDataURL(file)
    }
  }

  private removeImage(at: number): void {
    this.images.splice(at, 1)
    this.renderChips()
  }
}

function commandEntries(commands: Command[], query: string): Entry[] {
  return commands
    .filter(({ name }) => name.toLowerCase().includes(query.toLowerCase()))
    .map(({ name, description }) => ({ insert: `/${name} `, label: `/${name}`, description }))
}

/** The use of the context and the cost. */
function meter(usage: Usage | undefined): HTMLElement[] {
  if (usage === undefined) return []
  const share = usage.size > 0 ? Math.min(usage.used / usage.size, 1) : 0
  const bar = h("span", { class: share > 0.8 ? "bar high" : "bar" }, h("span", { class: "fill" }))
  const fill = bar.firstElementChild as HTMLElement
  fill.style.width = `${Math.round(share * 100)}%`
  const context = usage.size > 0 ? `${count(usage.used)} of ${count(usage.size)} tokens` : `${count(usage.used)} tokens`
  const cost = usage.cost === undefined || usage.cost === 0 ? "" : `$${usage.cost.toFixed(usage.cost < 0.1 ? 4 : 2)}`
  return [bar, h("span", {}, context), h("span", { class: "space" }), h("span", {}, cost)]
}

function count(tokens: number): string {
  return tokens < 1000 ? String(tokens) : `${(tokens / 1000).toFixed(tokens < 10_000 ? 1 : 0)}k`
}
