// Drives the program as an editor does, with the official package of the Agent Client Protocol. The package checks every
// message with the published schema.
// argv: the directory of the package, the program, the project, and the agent of its sessions. `other` is an agent of the
// protocol in place of a model.
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Readable, Writable } from "node:stream"
import { pathToFileURL } from "node:url"

const [dir, program, project, mode = "build"] = process.argv.slice(2)
const isOther = mode === "other"
const acp = await import(pathToFileURL(join(dir, "dist/v1/unstable/acp.js")).href)
const { agent, client } = acp.methods
let count = 0
const ok = (what, value) => {
  assert.ok(value, what)
  count += 1
  console.log(`ok  ${what}`)
}

const child = spawn(program, ["acp"], { cwd: project, stdio: ["pipe", "pipe", "inherit"] })
const ended = new Promise((done) => child.once("exit", (code, signal) => done({ code, signal })))
const updates = []
const requests = []
let choice = "once"
const app = acp
  .client({ name: "driver" })
  .onRequest(client.session.requestPermission, ({ params }) => {
    requests.push(params)
    return { outcome: { outcome: "selected", optionId: choice } }
  })
  .onNotification(client.session.update, ({ params }) => {
    updates.push(params)
  })
const of = (kind) => updates.map((it) => it.update).filter((it) => it.sessionUpdate === kind)
const text = (kind) => of(kind).map((it) => it.content.text ?? "").join("")
const until = async (what, holds) => {
  for (let tries = 0; !holds(); tries += 1) {
    assert.ok(tries < 600, `waited too long for ${what}`)
    await new Promise((done) => setTimeout(done, 50))
  }
}
const fails = async (what, call, code) => {
  try {
    await call()
  } catch (error) {
    return ok(what, error.code === code)
  }
  assert.fail(`${what}: it succeeded`)
}

const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout))
await app.connectWith(stream, async (editor) => {
  const started = await editor.request(agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
    clientInfo: { name: "driver", version: "1" },
  })
  const able = started.agentCapabilities
  ok("initialize", started.protocolVersion === 1 && able.loadSession && able.promptCapabilities.image)
  await editor.request(agent.authenticate, { methodId: started.authMethods[0].id })
  ok("authenticate", true)

  const made = await editor.request(agent.session.new, { cwd: project, mcpServers: [] })
  const sessionId = made.sessionId
  ok("session/new", made.configOptions.some((option) => option.id === "mode"))
  const say = (prompt) => editor.request(agent.session.prompt, { sessionId, prompt })
  const word = (words) => say([{ type: "text", text: words }])

  const first = await word("say hello")
  ok("session/prompt", first.stopReason === "end_turn" && text("agent_message_chunk").includes("Hello"))
  await until("commands", () => of("available_commands_update").length > 0)
  ok("commands", of("available_commands_update")[0].availableCommands.some((it) => it.name === "compact"))
  ok("usage", of("usage_update").length === 1)

  await word("EDIT it")
  const edit = of("tool_call_update").find((it) => it.content?.some((part) => part.type === "diff"))
  ok("an edit with its change", edit?.status === "completed")
  ok("the file", readFileSync(join(project, "src/util.py"), "utf8").includes("b + 0"))

  await word("RUN it")
  ok("a permission request", requests.at(-1).options.length === 3)
  ok("a command", of("tool_call_update").some((it) => JSON.stringify(it).includes("from-bash")))
  choice = "reject"
  await word("DENY it")
  ok("a rejection", of("tool_call_update").at(-1).status === "failed")
  if (!isOther) {
    // Another agent asks by a permission request, which the rules answer.
    choice = "0"
    await word("QUIZ me")
    ok("a question", requests.some((it) => it.toolCall.title === "Which color?"))
  }

  const image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
  const uri = pathToFileURL(join(project, "src/util.py")).href
  await say([
    { type: "text", text: "look at these" },
    { type: "image", mimeType: "image/png", data: image },
    { type: "resource_link", name: "util.py", uri },
    { type: "resource", resource: { uri: "file:///buffer.txt", text: "not saved", mimeType: "text/plain" } },
  ])
  ok("images, files and buffers", true)
  await fails("audio", () => say([{ type: "audio", mimeType: "audio/wav", data: "AAAA" }]), -32602)

  await editor.request(agent.session.setMode, { sessionId, modeId: "plan" })
  ok("session/set_mode", true)
  const option = { sessionId, configId: "mode", value: mode }
  const chosen = await editor.request(agent.session.setConfigOption, option)
  ok("session/set_config_option", chosen.configOptions.find((it) => it.id === "mode").currentValue === mode)
  ok("config_option_update", of("config_option_update").length === 1)

  const before = updates.length
  const waiting = word("WAIT for it")
  await until("the first words", () => updates.slice(before).some((it) => it.update.content?.text?.includes("one")))
  await editor.notify(agent.session.cancel, { sessionId })
  ok("session/cancel", (await waiting).stopReason === "cancelled")

  const listed = await editor.request(agent.session.list, { cwd: project })
  ok("session/list", listed.sessions.some((it) => it.sessionId === sessionId))
  const again = { sessionId, cwd: project, mcpServers: [] }
  updates.length = 0
  await editor.request(agent.session.load, again)
  ok("session/load", text("user_message_chunk").startsWith("say hello") && of("tool_call").length > 2)
  await editor.request(agent.session.resume, again)
  ok("session/resume", true)
  const fork = await editor.request("session/fork", again)
  ok("session/fork", fork.sessionId !== sessionId)
  await editor.request(agent.session.close, { sessionId: fork.sessionId })
  await fails("session/close", () => editor.request(agent.session.setMode, { sessionId: fork.sessionId, modeId: "plan" }), -32602)
  await editor.request(agent.session.delete, { sessionId: fork.sessionId })
  const left = await editor.request(agent.session.list, { cwd: project })
  ok("session/delete", left.sessions.every((it) => it.sessionId !== fork.sessionId))
  await fails("an unknown method", () => editor.request("session/none", {}), -32601)
  await fails("an unknown session", () => editor.request(agent.session.load, { ...again, sessionId: "ses_none" }), -32002)
})
child.stdin.end()
const { code } = await ended
ok("the program ends with its input", code === 0)
console.log(`${count} of ${count}`)
