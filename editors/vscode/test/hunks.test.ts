// Tables for the pure parts: hunks, changes, references, messages, lines.
import assert from "node:assert/strict"
import { test } from "node:test"
import { createTwoFilesPatch } from "diff"
import { Changes, readSteps } from "../src/changes"
import { fenced, mentions } from "../src/context"
import { accept, hunkAt, hunks, lines, reject, replacement } from "../src/hunks"
import { readFromView } from "../src/messages"
import { candidates } from "../src/program"
import { clipped } from "../src/read"
import { Lines } from "../src/rpc"
import { apply, MAX_ITEMS, newSession, readRequest } from "../src/transcript"

const TEXTS: [before: string, after: string, count: number][] = [
  ["", "", 0],
  ["", "a\n", 1],
  ["a\n", "", 1],
  ["a\nb\nc\n", "a\nB\nc\n", 1],
  ["a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", 2],
  ["a\nb", "a\nb\n", 1],
  ["a\r\nb\r\n", "a\r\nc\r\n", 1],
  ["x\ny\nz\n", "y\nz\nw\n", 2],
  ["one\ntwo\n", "one\nnew\ntwo\nlast", 2],
]

test("rejecting every hunk restores the text before, and accepting every hunk reaches the text after", () => {
  for (const [before, after, count] of TEXTS) {
    const found = hunks(before, after)
    assert.equal(found.length, count, JSON.stringify([before, after]))
    let current = after
    for (const hunk of found.toReversed()) current = reject(before, current, hunk)
    assert.equal(current, before)
    let base = before
    for (const hunk of found.toReversed()) base = accept(base, after, hunk)
    assert.equal(base, after)
  }
})

test("one hunk is rejected without the others", () => {
  const [before, after] = ["a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n"]
  const [first, second] = hunks(before, after)
  assert.ok(first !== undefined && second !== undefined)
  assert.equal(reject(before, after, first), "a\nb\nc\nd\nE\n")
  assert.equal(reject(before, after, second), "A\nb\nc\nd\ne\n")
  const base = accept(before, after, first)
  assert.deepEqual(
    hunks(base, after).map((hunk) => hunk.after.line),
    [4],
  )
})

test("a hunk is found at its lines, and one that only removed at the line that follows", () => {
  const found = hunks("a\nb\nc\n", "a\nX\nY\nc\n")
  assert.deepEqual(
    [0, 1, 2, 3].map((line) => hunkAt(found, line) !== undefined),
    [false, true, true, false],
  )
  assert.ok(hunkAt(hunks("a\nb\nc\n", "a\nc\n"), 1))
})

test("a replacement is small and splits no character", () => {
  for (const [before, after] of [...TEXTS, ["a😀b", "a😁b"], ["😀", "😀😀"], ["abab", "ab"]] as [string, string][]) {
    const { start, end, text } = replacement(before, after)
    assert.equal(before.slice(0, start) + text + before.slice(end), after)
    assert.doesNotMatch(text, /[\ud800-\udbff]$|^[\udc00-\udfff]/)
  }
})

test("the text before is computed from patches, newest first", () => {
  const texts = ["a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n"]
  const patches = [0, 1].map((at) => createTwoFilesPatch("f", "f", texts[at] ?? "", texts[at + 1] ?? ""))
  const changes = new Changes()
  // Both edits are on the disk before the first result is read.
  for (const patch of patches) changes.stepped({ kind: "patch", path: "/f", patch }, "a\nB\nc\nd\n")
  assert.equal(changes.before("/f"), "a\nb\nc\n")
})

test("a patch that does not fit yields a file without hunks, and the editor's own text counts most", () => {
  const changes = new Changes()
  changes.stepped({ kind: "patch", path: "/f", patch: "@@ -1 +1 @@\n-x\n+y\n" }, "something else\n")
  assert.deepEqual(changes.entries(), [["/f", undefined]])
  changes.stepped({ kind: "patch", path: "/g", patch: "not a patch" }, "text\n")
  assert.equal(changes.has("/g"), true)
  changes.written("/h", "before\n")
  changes.stepped({ kind: "created", path: "/h" }, "after\n")
  assert.equal(changes.before("/h"), "before\n")
  changes.stepped({ kind: "fragment", path: "/i", before: "old", after: "new" }, "a new b")
  assert.equal(changes.before("/i"), "a old b")
})

test("the number of remembered files is bounded", () => {
  const changes = new Changes()
  for (let at = 0; at < 1000; at += 1) changes.written(`/f${at}`, "")
  assert.equal(changes.entries().length, 300)
})

test("steps are read from results of all shapes, and from nothing else", () => {
  const done = (metadata: object, content: object[] = []): object => ({
    status: "completed",
    rawOutput: { metadata },
    content,
  })
  const cases: [unknown, string[]][] = [
    [done({ filediff: { file: "/a", patch: "p" } }), ["patch /a"]],
    [
      done({
        files: [
          { filePath: "/a", patch: "p" },
          { filePath: "/b", movePath: "/c", patch: "q" },
        ],
      }),
      ["patch /a", "created /c", "patch /b"],
    ],
    [done({ exists: false, filepath: "/n" }), ["created /n"]],
    [done({}, [{ type: "diff", path: "/d", oldText: "x", newText: "y" }]), ["fragment /d"]],
    [{ status: "failed", rawOutput: { metadata: { filediff: { file: "/a", patch: "p" } } } }, []],
    [done({ files: "no list", filediff: 3 }), []],
    [null, []],
  ]
  for (const [update, expected] of cases) {
    assert.deepEqual(
      readSteps(update).map((step) => `${step.kind} ${step.path}`),
      expected,
    )
  }
})

test("files that commands changed are listed with the text before", () => {
  const cases: [before: string | null, after: string | null][] = [
    ["a\nb\n", "a\nB\n"],
    [null, "new\n"],
    ["gone\n", null],
  ]
  for (const [before, after] of cases) {
    // The names in the differences are relative to the worktree.
    const patch = createTwoFilesPatch(
      before === null ? "/dev/null" : "a/x.txt",
      after === null ? "/dev/null" : "b/x.txt",
      before ?? "",
      after ?? "",
    )
    const rawOutput = { output: "", metadata: { files: [{ filePath: "/p/x.txt", patch }] } }
    const steps = readSteps({ toolCallId: "changes-1", status: "completed", rawOutput, content: [] })
    assert.deepEqual(
      steps.map((step) => `${step.kind} ${step.path}`),
      ["patch /p/x.txt"],
    )
    const changes = new Changes()
    for (const step of steps) changes.stepped(step, after)
    assert.deepEqual(changes.entries(), [["/p/x.txt", before]])
  }
})

test("references are found at the beginning of words", () => {
  const cases: [string, string[]][] = [
    ["fix @selection, please", ["selection"]],
    ["@src/a.ts#L3-9 and (@b.rs) and @b.rs.", ["src/a.ts#L3-9", "b.rs"]],
    ["mail me@example.org", []],
    ["@", []],
  ]
  for (const [prompt, expected] of cases) assert.deepEqual(mentions(prompt), expected, prompt)
  assert.equal(mentions(Array.from({ length: 100 }, (_, at) => `@f${at}`).join(" ")).length, 20)
})

test("code cannot close its fence", () => {
  assert.equal(fenced("a", "rust"), "```rust\na\n```")
  assert.equal(fenced("```\nx", "x\ny"), "````\n```\nx\n````")
})

test("messages of the view are checked", () => {
  const image = { mime: "image/png", data: "AAAA" }
  const valid: unknown[] = [
    { type: "ready" },
    { type: "prompt", text: "hi", images: [image] },
    { type: "command", name: "newSession" },
    { type: "open", path: "/a", line: 3 },
  ]
  for (const message of valid) assert.notEqual(readFromView(message), null, JSON.stringify(message))
  const invalid: unknown[] = [
    null,
    7,
    [],
    { type: "none" },
    { type: "prompt", text: 3 },
    { type: "prompt", text: "x".repeat((1 << 20) + 1) },
    { type: "prompt", text: "", images: [{ mime: "image/svg+xml", data: "AAAA" }] },
    { type: "prompt", text: "", images: [{ mime: "image/png", data: "not base64!" }] },
    { type: "command", name: "workbench.action.terminal.sendSequence" },
  ]
  for (const message of invalid) assert.equal(readFromView(message), null)
})

test("the program is looked for in absolute directories only", () => {
  assert.deepEqual(candidates("", "/usr/bin:.:rel:/opt", "/home/u"), [
    "/usr/bin/codewright",
    "/opt/codewright",
    "/home/u/.cargo/bin/codewright",
    "/home/u/.local/bin/codewright",
  ])
  assert.deepEqual(candidates("/own/cw", "/usr/bin", "/home/u"), ["/own/cw"])
  assert.deepEqual(candidates("./cw", "/usr/bin", "/home/u"), [])
})

test("lines arrive in any pieces, and long ones are refused", () => {
  const found: string[] = []
  const reader = new Lines(10)
  for (const byte of Buffer.from("ab\n\ncdé\n")) found.push(...reader.push(Buffer.from([byte])))
  assert.deepEqual(found, ["ab", "", "cdé"])
  assert.throws(() => new Lines(10).push(Buffer.from("x".repeat(11))), /longer/)
})

test("a conversation is bounded, and broken updates change nothing", () => {
  const session = newSession("s", "/w")
  for (const update of [null, 3, "x", {}, { sessionUpdate: "tool_call" }, { sessionUpdate: "plan", entries: "x" }]) {
    apply(session, { kind: "update", update })
  }
  assert.equal(session.items.length, 1)
  for (let at = 0; at < MAX_ITEMS + 10; at += 1) apply(session, { kind: "user", text: `${at}`, attachments: [] })
  assert.equal(session.items.length, MAX_ITEMS)
  assert.equal(session.dropped, 11)
  assert.equal(clipped("x".repeat(100), 10).includes("left out"), true)
})

test("chunks of one message are one entry, and a tool call keeps its place", () => {
  const session = newSession("s", "/w")
  const chunk = (kind: string, id: string, text: string): void => {
    apply(session, { kind: "update", update: { sessionUpdate: kind, messageId: id, content: { type: "text", text } } })
  }
  chunk("user_message_chunk", "m1", "do")
  chunk("agent_message_chunk", "m2", "Hel")
  chunk("agent_message_chunk", "m2", "lo")
  apply(session, {
    kind: "update",
    update: { sessionUpdate: "tool_call", toolCallId: "c", title: "bash", kind: "execute" },
  })
  chunk("agent_message_chunk", "m3", "Done")
  apply(session, {
    kind: "update",
    update: { sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" },
  })
  const seen = session.items.map((item) => (item.kind === "tool" ? `${item.title} ${item.status}` : item.text))
  assert.deepEqual(seen, ["do", "Hello", "bash completed", "Done"])
})

test("a request with other options than those of a permission is a question", () => {
  const option = (optionId: string, kind: string): object => ({ optionId, name: optionId, kind })
  const permission = readRequest("r", {
    toolCall: { title: "ls", kind: "execute", rawInput: { command: "ls" } },
    options: [option("once", "allow_once"), option("reject", "reject_once")],
  })
  assert.deepEqual([permission.isQuestion, permission.details, permission.choices[1]?.role], [false, "", "reject"])
  assert.equal(readRequest("r", { toolCall: { title: "?" }, options: [option("0", "allow_once")] }).isQuestion, true)
  assert.equal(lines("a\nb").length, 2)
})
