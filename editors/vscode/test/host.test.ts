// The extension with a stub of the editor, without the program.
import assert from "node:assert/strict"
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { createConnection, type Socket } from "node:net"
import * as path from "node:path"
import { after, before, test } from "node:test"
import { build } from "../src/context"
import { readTextFile, writeTextFile } from "../src/files"
import { page } from "../src/view"
import { Diagnostic, DiagnosticSeverity, Position, Range, stub, Uri, type CodeAction } from "./stub/vscode"
import { Chat, openWindow, project, until, type Window } from "./window"

const folder = project()
let window: Window

before(async () => {
  process.env["PATH"] = "/nowhere"
  process.env["HOME"] = folder
  window = await openWindow(folder)
})
after(() => window.dispose())

const manifest = JSON.parse(readFileSync("package.json", "utf8"))

test("every contributed command exists, and everything named in the manifest is contributed", () => {
  const contributed: string[] = manifest.contributes.commands.map((it: { command: string }) => it.command)
  for (const name of contributed) assert.ok(stub.commands.has(name), `${name} is not registered`)
  const menus = Object.values(manifest.contributes.menus).flat() as { command?: string }[]
  const used = [...menus, ...manifest.contributes.keybindings].flatMap((it) => it.command ?? [])
  for (const name of used) assert.ok(contributed.includes(name), `${name} is not contributed`)
  // These take arguments that only the extension has.
  const inner = ["codewright.fixProblem", "codewright.explainProblem", "codewright.goToHunk"]
  const known = [...contributed, ...inner].sort()
  assert.deepEqual([...stub.commands.keys()].sort(), known)
  const views: { id: string }[] = manifest.contributes.views.codewright
  assert.deepEqual(
    views.map((it) => it.id).filter((id) => stub.providers[id] === undefined),
    [],
  )
})

test("a workspace cannot set the program, and an untrusted one gets no extension", () => {
  const settings = manifest.contributes.configuration.properties
  assert.equal(settings["codewright.path"].scope, "machine")
  assert.equal(settings["codewright.editorChannel"].scope, "machine")
  assert.equal(manifest.capabilities.untrustedWorkspaces.supported, false)
  assert.match(manifest.engines.vscode, /^\^\d+\.\d+\.\d+$/)
  for (const version of Object.values(manifest.devDependencies)) assert.match(String(version), /^\d+\.\d+\.\d+$/)
  const source = ["extension", "sessions", "review", "view", "program", "terminal"]
  const read = source.map((name) => readFileSync(`src/${name}.ts`, "utf8")).join("\n")
  for (const name of Object.keys(settings))
    assert.ok(read.includes(`"${name.replace("codewright.", "")}"`), `${name} is not used`)
})

test("the page loads one script and one style sheet, and nothing else", () => {
  const html = page({ nonce: "N", source: "S", script: "view.js", style: "view.css" })
  const policy = /Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1] ?? ""
  const expected =
    "default-src 'none'; script-src 'nonce-N'; style-src S; img-src data:; base-uri 'none'; form-action 'none'"
  assert.equal(policy, expected)
  assert.equal(html.match(/<script/g)?.length, 1)
  assert.doesNotMatch(html, / on\w+=|style=/)
  for (const name of ["dom", "items", "markdown", "composer", "main"]) {
    assert.doesNotMatch(
      readFileSync(`webview/${name}.ts`, "utf8"),
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/,
    )
  }
})

test("without the program, the chat offers to find it, and the user can choose it", async () => {
  const chat = new Chat(window)
  await until("the notice", () => chat.update().phase === "missing")
  assert.match(stub.statusText, /warning/)
  const program = path.join(folder, "own-program")
  writeFileSync(program, "#!/bin/sh\nexit 3\n", { mode: 0o755 })
  stub.answer = (kind, _text, items) =>
    kind === "information" ? items[0] : kind === "dialog" ? [Uri.file(program)] : undefined
  chat.send({ type: "command", name: "locate" })
  // The program ends at once, which is reported.
  await until("the failure", () => chat.update().phase === "failed")
  assert.equal(stub.settings.get("codewright.path"), program)
  stub.settings.delete("codewright.path")
  stub.answer = () => undefined
})

test("the program is built only after the user has agreed to the command", async () => {
  const checkout = path.join(folder, "checkout")
  mkdirSync(path.join(checkout, "crates/codewright"), { recursive: true })
  writeFileSync(path.join(checkout, "crates/codewright/Cargo.toml"), "")
  for (const agrees of [false, true]) {
    stub.terminals = []
    stub.answer = (kind, _text, items) => {
      if (kind === "information") return items[1]
      if (kind === "dialog") return [Uri.file(checkout)]
      return agrees ? items.at(-1) : undefined
    }
    await stub.commands.get("codewright.locate")?.()
    assert.equal(stub.terminals.length, agrees ? 1 : 0)
  }
  assert.equal(stub.terminals[0]?.options["shellPath"], "cargo")
  const detail = stub.prompts.findLast((it) => it.kind === "warning")?.items[0]
  assert.match(JSON.stringify(detail), /cargo install --locked --path/)
  stub.answer = () => undefined
})

test("buffers that are not saved are read, and changes go through the editor", async () => {
  const file = path.join(folder, "src/util.py")
  const editor = await stub.open(file)
  editor.document.type("unsaved\ntext\nhere\n")
  assert.equal(await readTextFile({ path: file }), "unsaved\ntext\nhere\n")
  assert.equal(await readTextFile({ path: file, line: 2, limit: 1 }), "text\n")
  const seen: unknown[] = []
  await writeTextFile({ path: file, content: "unsaved\nTEXT\nhere\n" }, (name, before) => seen.push(name, before))
  assert.deepEqual(seen, [file, "unsaved\ntext\nhere\n"])
  assert.equal(editor.document.getText(), "unsaved\nTEXT\nhere\n")
  assert.equal(readFileSync(file, "utf8"), "unsaved\nTEXT\nhere\n")
  const fresh = path.join(folder, "deep/new.txt")
  let missing: string | null = "not called"
  await writeTextFile({ path: fresh, content: "x" }, (_name, before) => (missing = before))
  assert.deepEqual([readFileSync(fresh, "utf8"), missing], ["x", null])
})

test("links out of the workspace, directories, pipes and binary files are refused", async () => {
  const outside = path.join(project(), "outside.txt")
  writeFileSync(outside, "secret")
  symlinkSync(outside, path.join(folder, "link.txt"))
  symlinkSync(path.join(project(), "missing.txt"), path.join(folder, "dangling.txt"))
  symlinkSync(project(), path.join(folder, "linked"))
  writeFileSync(path.join(folder, "binary"), Buffer.from([0xff, 0xfe, 0x00]))
  for (const name of ["link.txt", "dangling.txt", "linked/src/util.py", "src", "binary", "missing.txt"]) {
    await assert.rejects(readTextFile({ path: path.join(folder, name) }), name)
  }
  for (const name of ["link.txt", "dangling.txt", "linked/new.txt"]) {
    await assert.rejects(
      writeTextFile({ path: path.join(folder, name), content: "x" }, () => {}),
      name,
    )
  }
  await assert.rejects(readTextFile({ path: "src/util.py" }), /absolute/)
  assert.equal(readFileSync(outside, "utf8"), "secret")
})

test("references add the selection, problems, open files and buffers", async () => {
  const file = path.join(folder, "src/util.py")
  const editor = await stub.open(file)
  stub.select(editor, new Range(0, 0, 1, 4))
  const problem = new Diagnostic(new Range(1, 0, 1, 4), "bad `text`", DiagnosticSeverity.Error)
  problem.source = "lint"
  stub.diagnose(file, [new Diagnostic(new Range(0, 0, 0, 1), "a hint", DiagnosticSeverity.Hint), problem])
  const built = await build("see @selection @problems @open @src/util.py @../../etc/passwd @nobody", [], folder)
  const texts: string[] = built.blocks.map((block) => (block.type === "text" ? block.text : block.type))
  assert.equal(texts[1], "Selection in the editor, src/util.py:1-2:\n```python\nunsaved\nTEXT\n```")
  assert.match(texts[2] ?? "", /src\/util\.py:2:1: error: bad `text` \[lint\]\nsrc\/util\.py:1:1: hint: a hint/)
  assert.match(texts[3] ?? "", /- src\/util\.py/)
  assert.equal(texts[4], "resource_link")
  assert.deepEqual(built.missing, ["../../etc/passwd", "nobody"])
  editor.document.type("dirty\n")
  const dirty = await build("@src/util.py#L1", [{ mime: "image/png", data: "AAAA" }], folder)
  assert.deepEqual(
    dirty.blocks.map((block) => block.type),
    ["text", "text", "resource", "image"],
  )
})

test("a problem has actions in the light bulb", async () => {
  const file = path.join(folder, "src/util.py")
  const editor = await stub.open(file)
  const diagnostics = stub.diagnostics.get(file)?.list ?? []
  const provider = stub.providers["actions"] as { provideCodeActions(...args: unknown[]): CodeAction[] }
  const actions = provider.provideCodeActions(editor.document, new Range(0, 0, 0, 0), { diagnostics })
  assert.deepEqual(
    actions.map((action) => action.title),
    ["Fix with Codewright", "Explain with Codewright"],
  )
  assert.ok(actions.every((action) => stub.commands.has(action.command?.command ?? "")))
  assert.deepEqual(provider.provideCodeActions(editor.document, new Range(0, 0, 0, 0), { diagnostics: [] }), [])
})

test("the terminal client gets a port, a password and the channel, without a shell", async () => {
  const program = path.join(folder, "codewright")
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 })
  stub.settings.set("codewright.path", program)
  stub.terminals = []
  await stub.commands.get("codewright.openTerminal")?.()
  await stub.commands.get("codewright.openTerminal")?.()
  assert.equal(stub.terminals.length, 1, "the second call shows the first client")
  await stub.commands.get("codewright.newTerminal")?.()
  assert.equal(stub.terminals.length, 2)
  const options = stub.terminals[0]?.options ?? {}
  assert.equal(options["shellPath"], program)
  assert.match((options["shellArgs"] as string[]).join(" "), /^--port \d+ --hostname 127\.0\.0\.1$/)
  const env = options["env"] as Record<string, string>
  assert.match(env["OPENCODE_SERVER_PASSWORD"] ?? "", /^[0-9a-f]{48}$/)
  assert.equal(env["CODEWRIGHT_EDITOR"], window.channel?.value)
  assert.deepEqual((options["location"] as { viewColumn: number }).viewColumn, -2)
  for (const terminal of stub.terminals) stub.closeTerminal(terminal)
  stub.settings.delete("codewright.path")
})

// The editor channel.

/** A client of the channel. */
class Client {
  private received = ""
  isClosed = false
  private constructor(private readonly socket: Socket) {
    socket.setEncoding("utf8")
    socket.on("data", (chunk: string) => (this.received += chunk))
    socket.on("close", () => (this.isClosed = true))
    socket.on("error", () => {})
  }
  static connect(port: number): Promise<Client> {
    return new Promise((resolve) => {
      const socket = createConnection({ host: "127.0.0.1", port }, () => resolve(new Client(socket)))
    })
  }
  write(text: string): void {
    this.socket.write(text)
  }
  // biome-ignore lint/suspicious/noExplicitAny: each test knows the reply to its request.
  async call(method: string, params: object = {}): Promise<{ id?: number; result?: any; error?: { message: string } }> {
    const count = this.received.split("\n").length
    this.write(`${JSON.stringify({ id: 7, method, params })}\n`)
    await until(method, () => this.isClosed || this.received.split("\n").length > count)
    return this.isClosed ? {} : JSON.parse(this.received.split("\n").at(-2) ?? "")
  }
  close(): void {
    this.socket.destroy()
  }
}

function endpoint(): { port: number; token: string } {
  const [editor, port, token] = window.channel?.value.split(":") ?? []
  assert.equal(editor, "vscode")
  return { port: Number(port), token: token ?? "" }
}

test("the channel opens files, shows differences, and reports the selection and the problems", async () => {
  const { port, token } = endpoint()
  const client = await Client.connect(port)
  const hello = await client.call("hello", { token })
  assert.deepEqual(hello, { id: 7, result: { editor: "vscode", version: 1 } })
  const file = path.join(folder, "src/util.py")
  assert.deepEqual((await client.call("open", { path: file, line: 2, character: 3 })).result, {})
  assert.equal(stub.opened.at(-1), `${file}:1`)
  const editor = await stub.open(file)
  stub.select(editor, new Range(new Position(0, 1), new Position(0, 3)))
  const selection = (await client.call("selection")).result
  assert.deepEqual(selection, {
    path: file,
    start: { line: 0, character: 1 },
    end: { line: 0, character: 3 },
    text: "ir",
  })
  const found = (await client.call("problems")).result.problems
  assert.deepEqual([found[0].severity, found[0].message, found[0].path], ["error", "bad `text`", file])
  assert.deepEqual((await client.call("diff", { path: file, before: "a", after: "b" })).result, {})
  const [command, left, right] = stub.executed.findLast((it) => it[0] === "vscode.diff") as [string, Uri, Uri]
  const provider = stub.providers["codewright-text"] as { provideTextDocumentContent(uri: Uri): string }
  assert.equal(command, "vscode.diff")
  assert.deepEqual(
    [left, right].map((uri) => provider.provideTextDocumentContent(uri)),
    ["a", "b"],
  )
  client.close()
})

test("the channel opens files only, and answers errors", async () => {
  const { port, token } = endpoint()
  const client = await Client.connect(port)
  await client.call("hello", { token })
  const before = stub.opened.length
  for (const name of ["/dev/null", folder, path.join(folder, "missing"), "relative", "http://example.org/", ""]) {
    assert.ok((await client.call("open", { path: name })).error, name)
  }
  assert.equal(stub.opened.length, before)
  assert.match((await client.call("run", { command: "ls" })).error?.message ?? "", /no method/)
  client.close()
})

test("the channel refuses wrong tokens, other first lines, broken or long lines, and many connections", async () => {
  const { port, token } = endpoint()
  const first: string[] = [
    `{"method":"hello","params":{"token":"${"0".repeat(token.length)}"}}\n`,
    `{"method":"hello","params":{"token":"${token.slice(1)}"}}\n`,
    `{"method":"hello","params":{"token":["${token}"]}}\n`,
    '{"method":"selection"}\n',
    "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "not json\n",
    "x".repeat(9 << 20),
  ]
  for (const line of first) {
    const client = await Client.connect(port)
    client.write(line)
    await until(`the end of ${line.slice(0, 30)}`, () => client.isClosed)
  }
  const clients = await Promise.all(Array.from({ length: 12 }, () => Client.connect(port)))
  await until("the refusals", () => clients.filter((client) => client.isClosed).length === 4)
  clients.forEach((client) => client.close())
})
