// Tests both clients of the official package with a server that the package starts.
// argv: the directory of the package, and the project.
import assert from "node:assert/strict"
import { pathToFileURL } from "node:url"
import { join } from "node:path"

const [sdk, project] = process.argv.slice(2)
const load = (file) => import(pathToFileURL(join(sdk, "dist", file)).href)
const first = await load("index.js")
const second = await load("v2/index.js")
let count = 0
const ok = (what, value) => {
  assert.ok(value, what)
  count += 1
}
const data = (what, answer) => {
  assert.equal(answer.error, undefined, `${what}: ${JSON.stringify(answer.error)}`)
  count += 1
  return answer.data
}
// An event stream that is read in the background and can wait for an event.
const listen = (stream) => {
  const seen = []
  const waiting = []
  const work = (async () => {
    for await (const event of stream) {
      const notice = event.payload ?? event
      seen.push(notice)
      for (const one of [...waiting]) if (one.is(notice)) one.done(notice)
    }
  })().catch(() => {})
  const until = (what, is) =>
    new Promise((done, fail) => {
      const found = seen.find(is)
      if (found) return done(found)
      const timer = setTimeout(() => fail(new Error(`no event: ${what}`)), 30000)
      waiting.push({ is, done: (notice) => (clearTimeout(timer), done(notice)) })
    })
  return { seen, until, work }
}

async function v1() {
  const { client, server } = await first.createOpencode({ port: 0, timeout: 20000, config: { username: "driver" } })
  try {
    const at = { query: { directory: project } }
    ok("the address", server.url.startsWith("http://127.0.0.1:"))
    const path = data("path", await client.path.get(at))
    assert.equal(path.directory, project)
    const config = data("config", await client.config.get(at))
    assert.equal(config.username, "driver", "the configuration that the package passes")
    ok("agents", data("agents", await client.app.agents(at)).some((agent) => agent.name === "build"))
    ok("providers", data("providers", await client.config.providers(at)).providers.length > 0)
    ok("all providers", data("provider", await client.provider.list(at)).all.length > 0)
    data("ways to sign in", await client.provider.auth(at))
    data("projects", await client.project.list(at))
    data("project", await client.project.current(at))
    data("tools", await client.tool.ids(at))
    data("servers", await client.mcp.status(at))
    data("language servers", await client.lsp.status(at))
    data("formatters", await client.formatter.status(at))
    data("branch", await client.vcs.get(at))
    const files = data("files", await client.file.list({ query: { directory: project, path: "." } }))
    ok("README.md", files.some((file) => file.name === "README.md"))
    const read = data("read", await client.file.read({ query: { directory: project, path: "README.md" } }))
    ok("text", read.type === "text" && read.content.length > 0)
    data("changed files", await client.file.status(at))
    const found = data("find", await client.find.files({ query: { directory: project, query: "readme" } }))
    assert.deepEqual(found, ["README.md"])
    data("text", await client.find.text({ query: { directory: project, pattern: "Project" } }))
    data("symbols", await client.find.symbols({ query: { directory: project, query: "x" } }))
    data("log", await client.app.log({ body: { service: "driver", level: "info", message: "hello" } }))
    data("toast", await client.tui.showToast({ ...at, body: { message: "hi", variant: "info" } }))

    const events = listen((await client.event.subscribe(at)).stream)
    await events.until("greeting", (notice) => notice.type === "server.connected")
    const session = data("create", await client.session.create({ ...at, body: { title: "Driven" } }))
    const id = { path: { id: session.id } }
    await events.until("created", (notice) => notice.type === "session.created")
    const answer = data("prompt", await client.session.prompt({ ...id, body: { parts: [{ type: "text", text: "[[scn:hi]]" }] } }))
    assert.equal(answer.info.role, "assistant")
    ok("an answer", answer.parts.some((part) => part.type === "text" && part.text.length > 0))
    await events.until("idle", (notice) => notice.type === "session.idle")
    ok("parts", events.seen.some((notice) => notice.type === "message.part.updated"))
    assert.equal(data("messages", await client.session.messages(id)).length, 2)
    data("message", await client.session.message({ path: { id: session.id, messageID: answer.info.id } }))
    assert.equal(data("rename", await client.session.update({ ...id, body: { title: "Renamed" } })).title, "Renamed")
    ok("list", data("list", await client.session.list(at)).some((one) => one.id === session.id))
    data("status", await client.session.status(at))
    data("children", await client.session.children(id))
    data("todo", await client.session.todo(id))
    data("diff", await client.session.diff(id))
    const fork = data("fork", await client.session.fork({ ...id, body: {} }))
    data("revert", await client.session.revert({ ...id, body: { messageID: answer.info.parentID } }))
    data("unrevert", await client.session.unrevert(id))
    data("abort", await client.session.abort(id))
    data("summarize", await client.session.summarize({ ...id, body: { providerID: "mock", modelID: "plain-model" } }))
    data("async", await client.session.promptAsync({ path: { id: fork.id }, body: { noReply: true, parts: [{ type: "text", text: "x" }] } }))
    data("delete", await client.session.delete({ path: { id: fork.id } }))
    const gone = await client.session.get({ path: { id: fork.id } })
    assert.equal(gone.response.status, 404)
    assert.equal(gone.error.name, "NotFoundError")
    data("key", await client.auth.set({ path: { id: "zzz" }, body: { type: "api", key: "k" } }))
    data("dispose", await client.instance.dispose(at))
  } finally {
    server.close()
  }
}

async function v2() {
  const server = await second.createOpencodeServer({ port: 0, timeout: 20000 })
  try {
    const client = second.createOpencodeClient({ baseUrl: server.url, directory: project })
    assert.equal(data("path", await client.path.get()).directory, project)
    data("health", await client.global.health())
    data("global config", await client.global.config.get())
    data("capabilities", await client.experimental.capabilities.get())
    data("console", await client.experimental.console.get())
    data("resources", await client.experimental.resource.list())
    data("workspaces", await client.experimental.workspace.list())
    data("all sessions", await client.experimental.session.list({ limit: 5 }))
    data("worktrees", await client.worktree.list())
    data("status", await client.vcs.status())
    data("difference", await client.vcs.diff({ mode: "git" }))
    const events = listen((await client.global.event()).stream)
    await events.until("greeting", (notice) => notice.type === "server.connected")
    const session = data("create", await client.session.create({ title: "Driven again" }))
    await events.until("created", (notice) => notice.type === "session.created")
    await events.until("copied", (notice) => notice.type === "sync")
    const answer = data("prompt", await client.session.prompt({ sessionID: session.id, parts: [{ type: "text", text: "[[scn:hi]]" }] }))
    ok("an answer", answer.parts.some((part) => part.type === "text"))
    assert.equal(data("messages", await client.session.messages({ sessionID: session.id })).length, 2)
    data("permissions", await client.permission.list())
    data("location", await client.v2.location.get())
    data("agents", await client.v2.agent.list())
    data("models", await client.v2.model.list())
    data("providers", await client.v2.provider.list())
    data("integrations", await client.v2.integration.list())
    data("references", await client.v2.reference.list())
    ok("entries", data("find", await client.v2.fs.find({ query: "readme" })).data[0].path === "README.md")
    data("entries", await client.v2.fs.list({ path: "." }))
    ok("sessions", data("sessions", await client.v2.session.list({ limit: 5 })).data.length > 0)
    data("session", await client.v2.session.get({ sessionID: session.id }))
    await newer(client, session)
    const unknown = await client.session.get({ sessionID: "ses_doesnotexist00000000000000" })
    assert.equal(unknown.response.status, 404)
    data("delete", await client.session.delete({ sessionID: session.id }))
  } finally {
    server.close()
  }
}

// Sessions in the v2 API, next to the same sessions in v1.
async function newer(client, older) {
  const all = client.v2.session
  const at = { sessionID: older.id }
  const shown = data("messages", await all.messages({ ...at, order: "asc" }))
  assert.deepEqual(shown.data.map((message) => message.type), ["user", "assistant"])
  const named = { id: "ses_driven00000000000000000", agent: "build" }
  const made = data("create", await all.create(named)).data
  assert.equal(made.id, named.id)
  assert.deepEqual(data("create again", await all.create(named)).data, made)
  const own = { sessionID: made.id }
  const events = listen((await all.events(own)).stream)
  const everything = listen((await client.v2.event.subscribe()).stream)
  await everything.until("greeting", (event) => event.type === "server.connected")
  const first = data("prompt", await all.prompt({ ...own, prompt: { text: "[[scn:hi]]" } })).data
  await events.until("prompted", (event) => event.type === "session.next.prompted" && event.data.messageID === first.id)
  await events.until("ended", (event) => event.type === "session.next.step.ended")
  await everything.until("growing", (event) => event.type === "session.next.text.delta")
  data("wait", await all.wait(own))
  assert.equal(data("older", await client.session.messages(own)).length, 2)
  const page = data("page", await all.messages({ ...own, limit: 1 }))
  const rest = data("next page", await all.messages({ ...own, limit: 1, cursor: page.cursor.next }))
  assert.deepEqual([rest.data[0].id, rest.data[0].text], [first.id, "[[scn:hi]]"])
  assert.deepEqual(data("message", await all.message({ ...own, messageID: first.id })).data, rest.data[0])
  assert.equal(data("context", await all.context(own)).data.length, 2)
  const history = data("history", await all.history({ ...own, limit: 2 }))
  ok("more", history.hasMore && history.data.length === 2)
  const seq = history.data[1].durable.seq
  ok("behind", data("behind", await all.history({ ...own, after: seq })).data.every((event) => event.durable.seq > seq))
  data("active", await all.active())
  data("agent", await all.switchAgent({ ...own, agent: "plan" }))
  data("model", await all.switchModel({ ...own, model: { id: "plain-model", providerID: "mock" } }))
  assert.equal(data("stage", await all.revert.stage({ ...own, messageID: first.id })).data.messageID, first.id)
  data("clear", await all.revert.clear(own))
  data("stage", await all.revert.stage({ ...own, messageID: first.id, files: false }))
  data("commit", await all.revert.commit(own))
  assert.equal(data("nothing left", await all.messages(own)).data.length, 0)
  const leave = data("leave", await all.permission.create({ ...own, action: "bash", resources: ["ls"] })).data
  ok("an effect", ["allow", "deny", "ask"].includes(leave.effect))
  data("permissions", await all.permission.list(own))
  data("questions", await all.question.list(own))
  data("interrupt", await all.interrupt(own))
  const conflict = await all.prompt({ ...at, id: shown.data[0].id, prompt: { text: "something else" } })
  assert.deepEqual([conflict.response.status, conflict.error._tag], [409, "ConflictError"])
  const missing = await all.message({ ...own, messageID: first.id })
  assert.deepEqual([missing.response.status, missing.error._tag], [404, "MessageNotFoundError"])

  const places = client.v2.integration
  const attempt = data("sign in", await places.connect.oauth({ integrationID: "poe", methodID: "0", inputs: {} })).data
  const id = { attemptID: attempt.attemptID }
  assert.equal(data("status", await places.attempt.status(id)).data.status, "pending")
  const state = new URL(attempt.url).searchParams.get("state")
  const denied = await places.attempt.complete({ ...id, code: `error=access_denied&state=${state}` })
  assert.equal(denied.response.status, 400)
  assert.equal(data("status", await places.attempt.status(id)).data.status, "failed")
  data("cancel", await places.attempt.cancel(id))
  data("key", await places.connect.key({ integrationID: "groq", key: "k", label: "Work" }))
  data("label", await client.v2.credential.update({ credentialID: "groq", label: "Home" }))
  const groq = data("integration", await places.get({ integrationID: "groq" })).data
  assert.equal(groq.connections[0].label, "Home")
  data("forget", await client.v2.credential.remove({ credentialID: "groq" }))
}

await v1()
await v2()
console.log(`${count} calls of both clients answered`)
process.exit(0)
