// A window with the extension, for tests: the stub, a project, and a view whose messages are applied as the real one
// does.
import { mkdtempSync, mkdirSync, realpathSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { activate, type Exports } from "../src/extension"
import { fields } from "../src/read"
import { apply, type Event, type Session } from "../src/transcript"
import { StubView, stub, Uri } from "./stub/vscode"

/** How long a condition may take; long, because machines can be busy. */
export const DEADLINE_MS = 60_000

export async function until<T>(what: string, check: () => T | undefined | false | null): Promise<T> {
  const started = Date.now()
  for (;;) {
    const found = check()
    if (found !== undefined && found !== false && found !== null) return found
    if (Date.now() - started > DEADLINE_MS) throw new Error(`waited too long for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Creates a project with a file. */
export function project(): string {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), "codewright-vscode-")))
  mkdirSync(path.join(root, "src"))
  writeFileSync(
    path.join(root, "src/util.py"),
    "def add(a, b):\n    return a + b\n\n\ndef minus(a, b):\n    return a - b\n",
  )
  return root
}

export interface Window extends Exports {
  folder: string
  dispose(): void
}

export async function openWindow(folder: string): Promise<Window> {
  stub.folder = folder
  const subscriptions: { dispose(): void }[] = []
  const context = {
    extensionUri: Uri.file(process.cwd()),
    subscriptions,
    workspaceState: {
      get: (key: string) => stub.workspaceState.get(key),
      update: (key: string, value: unknown) => Promise.resolve(stub.workspaceState.set(key, value)),
    },
    environmentVariableCollection: {
      persistent: true,
      variables: {} as Record<string, string>,
      replace(name: string, value: string) {
        this.variables[name] = value
      },
    },
  }
  const exports = await activate(context as never)
  return { ...exports, folder, dispose: () => subscriptions.forEach((it) => it.dispose()) }
}

/** A chat whose state is what a user sees. */
export class Chat {
  readonly view = new StubView()
  session: Session | null = null
  phase = ""
  files: { label: string; hunks: number }[] = []
  private read = 0

  constructor(window: Window) {
    window.view.resolveWebviewView(this.view as never)
    this.view.send({ type: "ready" })
  }

  send(message: unknown): void {
    this.view.send(message)
  }

  say(text: string): void {
    this.send({ type: "prompt", text, images: [] })
  }

  update(): this {
    for (const message of this.view.received.slice(this.read).map(fields)) {
      if (message["type"] === "state") this.session = message["session"] as Session | null
      const session = this.session
      if (message["type"] === "event" && session !== null && session.id === message["session"])
        apply(session, message["event"] as Event)
      if (message["type"] === "changes") this.files = message["files"] as Chat["files"]
      if (message["phase"] !== undefined) this.phase = String(fields(message["phase"])["name"])
    }
    this.read = this.view.received.length
    return this
  }

  /** The conversation as text. */
  get text(): string {
    return (this.update().session?.items ?? [])
      .map((item) =>
        item.kind === "tool" ? `[${item.title} ${item.status}] ${item.output}` : `${item.kind}: ${item.text}`,
      )
      .join("\n")
  }

  shows(text: string): Promise<true> {
    return until(text, () => (this.text.includes(text) ? true : undefined))
  }

  /** Waits until no turn runs. */
  idle(): Promise<true> {
    return until("the end of the turn", () => (this.update().session?.isRunning === false ? true : undefined))
  }
}
