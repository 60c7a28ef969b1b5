import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startHost } from "@codewright/plugin/test";

let host;
before(async () => (host = await startHost({ plugins: [fileURLToPath(new URL("../src/index.ts", import.meta.url))] })));
after(() => host?.close());

test("commands know the project", async () => {
  const { env } = await host.hook("shell.env", { cwd: "/" }, { env: {} });
  assert.equal(env.PROJECT, host.directory);
});

test("secrets are not read", async () => {
  const call = { tool: "read", sessionID: "ses_1", callID: "call_1" };
  await assert.rejects(host.hook("tool.execute.before", call, { args: { filePath: "/a/.env" } }), /Do not read/);
  await host.hook("tool.execute.before", call, { args: { filePath: "/a/main.rs" } });
});

test("words are counted", async () => {
  assert.equal((await host.tool("count_words", { text: "one two  three" })).output, "3");
});
