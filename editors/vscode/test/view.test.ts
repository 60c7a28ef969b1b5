// The chat in a headless Chromium: first alone, with hostile texts, and then with the extension and the real program.
import assert from "node:assert/strict"
import { mkdirSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { after, before, test } from "node:test"
import type { Browser } from "playwright-core"
import { newSession, type Session } from "../src/transcript"
import { connect, launch, missing, open, type Shown } from "./browser"
import { StubView, stub } from "./stub/vscode"
import { openWindow, until } from "./window"

const SIZE = { width: 420, height: 800 }
let browser: Browser

before(async () => {
  if (missing === false) browser = await launch()
})
after(() => browser?.close())

const HOSTILE = [
  "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script><b>bold</b>",
  "[click](javascript:document.title='owned') [data](data:text/html,<script>1</script>) " +
    "[cmd](command:workbench.action.quit)",
  "![pixel](https://example.org/pixel.png) <iframe src=https://example.org></iframe> <style>body{display:none}</style>",
  "```html\n</code></pre><script>document.title='owned'</script>\n```",
  "| <u>a</u> |\n|---|\n| `<u>b</u>` |\n\n> <form action=https://example.org><input></form>",
]

function state(session: Session): object {
  return {
    type: "state",
    phase: { name: "ready" },
    tabs: [
      { id: session.id, title: HOSTILE[0], isRunning: false, isWaiting: true },
      { id: "b", title: "b", isRunning: false, isWaiting: false },
    ],
    session,
  }
}

test("hostile texts are shown as text, everywhere", { skip: missing }, async () => {
  const shown = await open(browser, SIZE)
  const session = newSession("s", "/w")
  const text = HOSTILE.join("\n\n")
  const difference = { path: "/w/<b>x</b>", before: HOSTILE[0] ?? "", after: HOSTILE[3] ?? "" }
  session.items = [
    { kind: "user", id: "", text, attachments: [text] },
    { kind: "agent", id: "a", text },
    { kind: "thought", id: "t", text },
    { kind: "error", text, signIn: true },
    {
      kind: "tool",
      id: "c",
      title: text,
      tool: text,
      status: "completed",
      output: text,
      places: [],
      differences: [difference],
    },
  ]
  const choice = { id: "x", label: text, role: "allow" as const }
  session.requests = [
    {
      id: "r",
      title: text,
      tool: "edit",
      details: text,
      choices: [choice],
      differences: [difference],
      places: [],
      isQuestion: false,
    },
    {
      id: "q",
      title: text,
      tool: "other",
      details: text,
      choices: [choice],
      differences: [],
      places: [],
      isQuestion: true,
    },
  ]
  session.plan = [{ content: text, status: "pending" }]
  session.options = [{ id: "mode", name: text, current: text, values: [{ value: text, name: text }] }]
  session.commands = [{ name: "<b>c</b>", description: text }]
  await shown.post(state(session))
  await shown.post({ type: "changes", files: [{ path: text, label: text, hunks: 1, added: 1, removed: 1 }] })
  await shown.post({ type: "editor", editor: { file: text, lines: text, problems: 3 } })
  await shown.page.locator(".item.agent").waitFor()
  const counts = await shown.page.evaluate(() => {
    const foreign =
      "#app img, #app iframe, #app form, #app input, #app script, #app style, #app object, #app u, #app b, [href], " +
      "[src]:not(script)"
    const found = [...document.querySelectorAll(foreign)].map((it) => it.tagName)
    return { found, title: document.title, links: [...document.querySelectorAll("a")].map((it) => it.title) }
  })
  assert.deepEqual(
    counts.found.filter((tag) => tag !== "LINK"),
    [],
  )
  assert.equal(counts.title, "Codewright")
  // Only addresses that the parser accepts become links, and only the extension host opens them.
  assert.ok(
    counts.links.every((url) => !/^(javascript|data|vbscript):/i.test(url)),
    counts.links.join(" "),
  )
  await shown.page.locator(".item.agent a").first().click()
  assert.deepEqual(shown.sent.at(-1), { type: "link", url: "command:workbench.action.quit" })
  assert.deepEqual(shown.troubles, [])
  await shown.page.context().close()
})

test("a long answer is drawn while it grows, and the view follows its end", { skip: missing }, async () => {
  const shown = await open(browser, SIZE)
  const session = newSession("s", "/w")
  session.isRunning = true
  await shown.post(state(session))
  for (let at = 0; at < 300; at += 1) {
    const content = { type: "text", text: `- line ${at} with \`code\` and **weight**\n` }
    const update = { sessionUpdate: "agent_message_chunk", messageId: "m", content }
    await shown.post({ type: "event", session: "s", event: { kind: "update", update } })
  }
  await shown.page.getByText("line 299").waitFor({ state: "visible" })
  assert.equal(await shown.page.locator(".item").count(), 1)
  const rest = await shown.page.evaluate(() => {
    const it = document.querySelector(".transcript") as HTMLElement
    return it.scrollHeight - it.scrollTop - it.clientHeight
  })
  assert.ok(rest < 40, `${rest} pixels below`)
  assert.deepEqual(shown.troubles, [])
  await shown.page.context().close()
})

const stage = process.env["CODEWRIGHT_STAGE"]
const noProgram = stage === undefined ? "the program is missing; run editors/test/stage.sh" : missing

test("a user works in the chat, from the prompt to the review", { skip: noProgram }, async () => {
  const folder = path.join(stage ?? "", "view")
  mkdirSync(path.join(folder, "src"), { recursive: true })
  writeFileSync(
    path.join(folder, "src/util.py"),
    "def add(a, b):\n    return a + b\n\n\ndef minus(a, b):\n    return a - b\n",
  )
  stub.settings.set("codewright.path", process.env["CODEWRIGHT_BIN"])
  const window = await openWindow(folder)
  const view = new StubView()
  window.view.resolveWebviewView(view as never)
  const shown = await open(browser, SIZE)
  try {
    await connect(shown, view)
    await work(shown)
    assert.deepEqual(shown.troubles, [])
  } finally {
    await shown.page.context().close()
    window.dispose()
  }
})

async function work({ page }: Shown): Promise<void> {
  const input = page.getByLabel("Prompt")
  const say = async (text: string): Promise<void> => {
    await input.fill(text)
    await input.press("Enter")
  }
  const shows = (text: string): Promise<void> => page.getByText(text).last().waitFor({ state: "visible" })
  await shows("What should we work on?")

  await say("say hello")
  await shows("Hello from the model")
  await page.locator(".meter", { hasText: "of 200k tokens" }).waitFor()

  await input.pressSequentially("look at @ut")
  await page.locator(".entry", { hasText: "@src/util.py" }).waitFor()
  await input.press("Enter")
  assert.equal(await input.inputValue(), "look at @src/util.py ")
  await input.fill("")
  await input.pressSequentially("/comp")
  await page.locator(".entry", { hasText: "/compact" }).waitFor()
  await input.press("Tab")
  assert.equal(await input.inputValue(), "/compact ")
  await input.fill("")
  await input.press("ArrowUp")
  assert.equal(await input.inputValue(), "say hello")

  await say("RUN it")
  await shows("Run this command?")
  await page.getByRole("button", { name: "Allow once" }).click()
  await shows("Ran it.")

  await startSession(page)
  await say("QUIZ me")
  await shows("Which color?")
  await page.getByRole("button", { name: "Blue" }).click()
  await shows("Quizzed.")

  await startSession(page)
  await say("EDIT it")
  await shows("Edited it.")
  await page.locator(".item.tool .line.added", { hasText: "return a + b + 0" }).waitFor()
  await page.locator(".changes", { hasText: "1 changed file" }).waitFor()
  await page.locator(".file", { hasText: "src/util.py" }).click()
  await until("the native difference", () => stub.executed.some((it) => it[0] === "vscode.diff"))
  await page.getByRole("button", { name: "Accept all" }).click()
  await page.locator(".changes").waitFor({ state: "hidden" })

  await startSession(page)
  await say("MARK it")
  await shows("<img src=x onerror=")
  assert.equal(await page.title(), "Codewright")

  await startSession(page)
  await say("WAIT for it")
  await shows("one")
  await page.getByRole("button", { name: "Cancel (Escape)" }).click()
  await shows("Cancelled.")
  assert.ok((await page.locator(".tab").count()) >= 4)
  await page.locator(".tab-name").first().click()
  await shows("Hello from the model")
}

async function startSession(page: Shown["page"]): Promise<void> {
  await stub.commands.get("codewright.newSession")?.()
  await page.getByText("What should we work on?").waitFor()
}
