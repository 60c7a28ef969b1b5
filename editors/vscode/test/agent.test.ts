// The extension with a stub of the editor and the real program, which a scripted model drives. `editors/test/stage.sh`
// provides both.
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { after, before, beforeEach, test } from "node:test"
import type { Hunk } from "../src/hunks"
import { Diagnostic, DiagnosticSeverity, Range, stub, type CodeLens } from "./stub/vscode"
import { Chat, openWindow, until, type Window } from "./window"

const stage = process.env["CODEWRIGHT_STAGE"]
const program = process.env["CODEWRIGHT_BIN"] ?? ""
const skip = stage === undefined ? "the program is missing; run editors/test/stage.sh" : false
const folder = path.join(stage ?? "/nowhere", "vscode")
const file = path.join(folder, "src/util.py")
const ORIGINAL = "def add(a, b):\n    return a + b\n\n\ndef minus(a, b):\n    return a - b\n"
const EDITED = "def add(a, b):\n    return a + b + 0\n\n\ndef minus(a, b):\n    # Careful.\n    return a - b\n"

let window: Window
let chat: Chat

before(async () => {
  if (stage === undefined) return
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, ORIGINAL)
  stub.settings.set("codewright.path", program)
  window = await openWindow(folder)
  chat = new Chat(window)
  await until("the first session", () => chat.update().session !== null)
})
after(() => window?.dispose())

beforeEach(() => {
  stub.prompts = []
  stub.answer = () => undefined
})

async function fresh(): Promise<void> {
  const old = chat.session?.id
  await stub.commands.get("codewright.newSession")?.()
  await until("a new session", () => chat.update().session?.id !== old)
}

test("a prompt is answered, with the thought, the title, the cost and the state", { skip }, async () => {
  chat.say("say hello")
  await chat.shows("agent: Hello from the model")
  await chat.idle()
  assert.match(chat.text, /^user: say hello\nthought: hmm\nagent: /)
  await until("the title", () => chat.update().session?.title === "Scripted title")
  assert.ok((chat.session?.usage?.cost ?? 0) > 0)
  await until("the status", () => stub.statusText.includes("$0.00") && stub.statusTooltip.includes("Scripted title"))
  assert.ok(chat.session?.commands.some((command) => command.name === "compact"))
  assert.deepEqual(chat.session?.options.map((option) => option.id).slice(0, 1), ["model"])
})

test("changes are listed, shown as differences, and accepted and rejected by hunk", { skip }, async () => {
  await fresh()
  const editor = await stub.open(file)
  chat.say("EDIT it")
  await chat.shows("agent: Edited it.")
  // The editor notices changes of the disk by itself.
  if (editor.document.getText() !== EDITED) editor.document.type(EDITED)
  await until("two hunks", () => chat.update().files[0]?.hunks === 2)
  assert.equal(chat.files[0]?.label, "src/util.py")
  assert.equal(stub.context.get("codewright.hasChanges"), true)

  await stub.commands.get("codewright.reviewFile")?.()
  const shown = stub.executed.findLast((it) => it[0] === "vscode.diff") as { path: string }[]
  const provider = stub.providers["codewright-text"] as { provideTextDocumentContent(uri: unknown): string }
  assert.equal(provider.provideTextDocumentContent(shown[1]), ORIGINAL)

  const lenses = (stub.providers["lenses"] as { provideCodeLenses(it: unknown): CodeLens[] }).provideCodeLenses(
    editor.document,
  )
  assert.deepEqual(lenses.map((it) => it.command.title).slice(0, 3), [
    "$(check) Accept",
    "$(discard) Reject",
    "Codewright −1 +1",
  ])
  assert.equal(lenses.length, 6)

  // The hunk at the cursor, and then the other one.
  stub.select(editor, new Range(1, 0, 1, 0))
  await stub.commands.get("codewright.rejectHunk")?.()
  assert.equal(readFileSync(file, "utf8"), EDITED.replace(" + 0", ""))
  await until("one hunk", () => chat.update().files[0]?.hunks === 1)
  const tree = stub.providers["codewright.changes"] as { getChildren(node?: unknown): { hunk?: Hunk }[] }
  const hunk = tree.getChildren(tree.getChildren()[0])[0]
  await stub.commands.get("codewright.acceptHunk")?.(hunk)
  await until("no changes", () => chat.update().files.length === 0)
  assert.equal(readFileSync(file, "utf8"), EDITED.replace(" + 0", ""))
  assert.equal(stub.context.get("codewright.hasChanges"), false)
  writeFileSync(file, ORIGINAL)
  editor.document.type(ORIGINAL)
  await editor.document.save()
})

test("a created file is removed when it is rejected", { skip }, async () => {
  await fresh()
  chat.say("CREATE it")
  await chat.shows("agent: Created it.")
  const created = path.join(folder, "src/new.py")
  assert.ok(existsSync(created))
  await until("the change", () => chat.update().files.some((it) => it.label === "src/new.py"))
  const tree = stub.providers["codewright.changes"] as { getChildren(): { path: string }[] }
  await stub.commands.get("codewright.rejectFile")?.(tree.getChildren().find((it) => it.path === created))
  assert.equal(existsSync(created), false)
  await until("no changes", () => chat.update().files.length === 0)
})

test("a buffer that is not saved is read and changed in the editor", { skip }, async (it) => {
  await fresh()
  const editor = await stub.open(file)
  const unsaved = `${ORIGINAL}\n\ndef unsaved():\n    pass\n`
  editor.document.type(unsaved)
  chat.say("EDIT it")
  await chat.shows("agent: Edited it.")
  await chat.idle()
  try {
    // A program without files of its client changes the file on the disk.
    if (editor.document.getText() === unsaved) return it.skip("the program does not use the files of its client")
    assert.equal(editor.document.getText(), unsaved.replace(ORIGINAL, EDITED))
    await until("two hunks", () => chat.update().files[0]?.hunks === 2)
    await stub.commands.get("codewright.rejectFile")?.({ path: file })
    assert.equal(editor.document.getText(), unsaved, "the text that was not saved is back")
  } finally {
    await stub.commands.get("codewright.acceptAll")?.()
    editor.document.type(ORIGINAL)
    await editor.document.save()
  }
})

test("a permission request is answered in the chat", { skip }, async () => {
  await fresh()
  chat.say("RUN it")
  const request = await until("the request", () => chat.update().session?.requests[0])
  assert.deepEqual([request.title, request.tool, request.isQuestion], ["echo from-bash", "execute", false])
  assert.equal(stub.prompts.length, 0, "the chat is visible")
  assert.match(stub.statusText, /bell-dot/)
  chat.send({ type: "answer", request: request.id, choice: "once" })
  await chat.shows("agent: Ran it.")
  assert.match(chat.text, /\[echo from-bash completed\] from-bash/)
})

test("a permission request is a native prompt if the chat is hidden, and a rejection is obeyed", { skip }, async () => {
  await fresh()
  chat.view.visible = false
  stub.answer = (kind, _text, items) => (kind === "warning" ? items.find((it) => it === "Reject") : undefined)
  chat.say("DENY it")
  await until("the prompt", () => stub.prompts.find((it) => it.kind === "warning"))
  await chat.idle()
  assert.match(stub.prompts[0]?.text ?? "", /wants to run: printf denied/)
  assert.deepEqual(stub.prompts[0]?.items, ["Allow once", "Always allow", "Reject"])
  assert.equal(existsSync(path.join(folder, "denied.txt")), false)
  assert.deepEqual(chat.session?.requests, [])
  chat.view.visible = true
})

test("an invented choice of the view is a refusal", { skip }, async () => {
  await fresh()
  chat.say("DENY it")
  const request = await until("the request", () => chat.update().session?.requests[0])
  chat.send({ type: "answer", request: request.id, choice: "invented" })
  await chat.idle()
  assert.match(chat.text, /\[printf denied > denied.txt failed\]/)
})

test("a question is answered in the chat", { skip }, async () => {
  await fresh()
  chat.say("QUIZ me")
  const request = await until("the question", () => chat.update().session?.requests[0])
  assert.deepEqual([request.title, request.isQuestion], ["Which color?", true])
  assert.deepEqual(
    request.choices.map((it) => it.label),
    ["Red", "Blue", "Dismiss"],
  )
  chat.send({ type: "answer", request: request.id, choice: "1" })
  await chat.shows("agent: Quizzed.")
  assert.match(chat.text, /Blue/)
})

test("a plan is shown", { skip }, async () => {
  await fresh()
  chat.say("PLAN it")
  await chat.shows("agent: Planned it.")
  assert.deepEqual(
    chat.session?.plan.map((it) => it.status),
    ["completed", "in_progress"],
  )
})

test("a turn is cancelled, and a failure is shown", { skip }, async () => {
  await fresh()
  chat.say("WAIT for it")
  await chat.shows("one")
  assert.match(stub.statusText, /sync~spin/)
  chat.send({ type: "cancel" })
  await chat.shows("error: Cancelled.")
  await chat.idle()
  await fresh()
  chat.say("BREAK it")
  await chat.shows("the model is out of order")
  await chat.idle()
})

test("the model and the mode are chosen with the native pickers", { skip }, async () => {
  await fresh()
  stub.answer = (kind, _text, items) =>
    kind === "pick" ? (items as { value: string }[]).find((it) => it.value === "mock/other-model") : undefined
  await stub.commands.get("codewright.selectModel")?.()
  await until(
    "the model",
    () => chat.update().session?.options.find((it) => it.id === "model")?.current === "mock/other-model",
  )
  chat.send({ type: "option", id: "mode", value: "plan" })
  await until("the mode", () => chat.update().session?.options.find((it) => it.id === "mode")?.current === "plan")
})

test("sessions are listed and opened with their content, and another one stays open", { skip }, async () => {
  await fresh()
  chat.say("first prompt of a stored session")
  await chat.shows("agent: Hello from the model")
  await chat.idle()
  const id = chat.session?.id ?? ""
  chat.send({ type: "close", session: id })
  await until("another session", () => chat.update().session !== null && chat.session?.id !== id)
  assert.ok(!window.sessions.all.some((session) => session.id === id))
  stub.answer = (kind, _text, items) =>
    kind === "pick" ? (items as { id: string }[]).find((it) => it.id === id) : undefined
  await stub.commands.get("codewright.sessions")?.()
  await until("the session", () => chat.update().session?.id === id)
  assert.match(chat.text, /user: first prompt of a stored session[\s\S]*agent: Hello from the model/)
  assert.ok(window.sessions.all.length > 1)
  const other = window.sessions.all.find((session) => session.id !== id)
  chat.send({ type: "switch", session: other?.id })
  await until("the other session", () => chat.update().session?.id === other?.id)
})

test("the selection and a problem become prompts", { skip }, async () => {
  await fresh()
  const editor = await stub.open(file)
  stub.select(editor, new Range(0, 0, 2, 0))
  await stub.commands.get("codewright.explain")?.()
  await chat.shows("Explain the selected code.")
  await chat.idle()
  const user = chat.session?.items.find((item) => item.kind === "user")
  assert.deepEqual(user?.kind === "user" && user.attachments, ["src/util.py:1-2"])
  const problem = new Diagnostic(new Range(1, 4, 1, 10), "never returns", DiagnosticSeverity.Error)
  stub.diagnose(file, [problem])
  await stub.commands.get("codewright.fixProblem")?.(editor.document.uri, [problem])
  await chat.shows("Fix this problem in @src/util.py:\n\nsrc/util.py:2:5: error: never returns")
  await chat.idle()
  stub.diagnose(file, [])
})

test("after the program was killed, the chat says so, and a restart opens the session again", { skip }, async () => {
  await fresh()
  chat.say("say hello again")
  await chat.shows("agent: Hello from the model")
  await chat.idle()
  const id = chat.session?.id
  const children = execFileSync("ps", ["--ppid", String(process.pid), "-o", "pid=,args="], { encoding: "utf8" })
  process.kill(Number(/^\s*(\d+) .* acp$/m.exec(children)?.[1]), "SIGKILL")
  await until("the notice", () => chat.update().phase === "failed")
  await stub.commands.get("codewright.restart")?.()
  await until("the session", () => chat.update().phase === "ready" && chat.session?.id === id)
  assert.match(chat.text, /user: say hello again/)
  chat.say("and once more")
  await chat.shows("user: and once more")
  await chat.idle()
})

const tmux = ((): boolean => {
  try {
    execFileSync("tmux", ["-V"])
    return true
  } catch {
    return false
  }
})()

// The terminal client of a program that does not know the channel is not tested with it.
const knowsChannel = stage !== undefined && readFileSync(program).includes("the selected text in the editor")

test("the terminal client gets references, and reads the selection", {
  skip: skip || (tmux ? false : "tmux is not installed"),
}, async () => {
  const editor = await stub.open(file)
  stub.select(editor, new Range(0, 0, 2, 0))
  await stub.commands.get("codewright.openTerminal")?.()
  const terminal = stub.terminals.at(-1)
  assert.ok(terminal)
  const options = terminal.options as {
    shellPath: string
    shellArgs: string[]
    env: Record<string, string>
    cwd: string
  }
  // What the editor does with these options: it runs the program in a terminal.
  const server = ["-S", path.join(folder, "tmux.socket")]
  const env = Object.entries(options.env).flatMap(([name, value]) => ["-e", `${name}=${value}`])
  const size = ["-x", "100", "-y", "30", "-c", options.cwd]
  execFileSync("tmux", [...server, "new-session", "-d", ...size, ...env, options.shellPath, ...options.shellArgs])
  const screen = (): string => execFileSync("tmux", [...server, "capture-pane", "-p"], { encoding: "utf8" })
  const press = (...keys: string[]): unknown => execFileSync("tmux", [...server, "send-keys", ...keys])
  try {
    await until("the terminal client", () => screen().includes("Ask anything"))
    await stub.commands.get("codewright.sendReference")?.()
    await until("the reference", () => screen().includes("@src/util.py#L1-2"))
    if (knowsChannel) {
      press("-l", "@selec")
      await until("the completion", () => screen().includes("the selected text in the editor"))
      press("Enter")
      await until("the selection", () => screen().includes("[util.py:1-2]"))
    }
  } finally {
    execFileSync("tmux", [...server, "kill-server"])
    stub.closeTerminal(terminal)
  }
})
