// The test helper with plugins.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startHost } from "../dist/test.js";

const directory = mkdtempSync(join(tmpdir(), "codewright-plugin-test-"));
after(() => rmSync(directory, { recursive: true, force: true }));

/** Writes a plugin and starts a host with it. */
async function host(name, code, options = {}) {
  const file = join(directory, name);
  writeFileSync(file, code);
  return startHost({ plugins: [file], ...options });
}

test("a tool with JSON Schema, one with zod, and permission", async (t) => {
  const asked = [];
  const ask = (request) => {
    asked.push(request.permission);
    if (request.patterns[0] === "no") throw new Error("refused");
  };
  const code = `
    import { type Plugin, tool } from "@codewright/plugin";
    export const P: Plugin = async () => ({ tool: {
      json: tool<{ a: number }>({ description: "J", args: { type: "object", properties: { a: { type: "number" } } }, execute: async ({ a }) => ({ title: "T", output: String(a + 1) }) }),
      zod: tool({ description: "Z", args: { a: tool.schema.string() }, execute: async ({ a }, context) => {
        await context.ask({ permission: "zod", patterns: [a], always: [], metadata: {} });
        return a;
      } }),
    } });`;
  const running = await host("tools.ts", code, { ask });
  t.after(() => running.close());
  const [plugin] = running.plugins;
  assert.deepEqual(plugin.tools.map((tool) => [tool.name, tool.parameters.properties.a.type]), [["json", "number"], ["zod", "string"]]);
  assert.deepEqual(await running.tool("json", { a: 1 }), { title: "T", output: "2" });
  assert.equal((await running.tool("zod", { a: "yes" })).output, "yes");
  await assert.rejects(running.tool("zod", { a: "no" }), /refused/);
  assert.deepEqual(asked, ["zod", "zod"]);
  assert.throws(() => running.tool("other", {}), /there is no tool `other`/);
});

test("events, configuration, requests of the client, and dispose", async () => {
  const requests = [];
  const api = (request) => {
    requests.push(`${request.method} ${request.path.split("?")[0]}`);
    return { body: { id: "ses_1", title: "From the test" } };
  };
  const code = `
    export const P = async ({ client }) => {
      const seen = [];
      return {
        event: async ({ event }) => { seen.push(event.type); },
        config: async (config) => { config.username = "plugin"; },
        dispose: async () => { console.log("disposed"); },
        "shell.env": async (input, output) => {
          output.env.TITLE = (await client.session.get({ path: { id: "ses_1" } })).data.title;
          output.env.SEEN = seen.join(" ");
        },
      };
    };`;
  const running = await host("hooks.js", code, { api });
  await running.event("session.idle", { sessionID: "ses_1" });
  assert.deepEqual(await running.hook("shell.env", {}, { env: {} }), { env: { TITLE: "From the test", SEEN: "session.idle" } });
  assert.equal((await running.config({ model: "a/b" })).username, "plugin");
  assert.ok(requests.includes("GET /session/ses_1"), String(requests));
  await running.close();
  assert.ok(running.log.some((line) => line.message.includes("disposed")), JSON.stringify(running.log));
});

test("failures name the plugin", async (t) => {
  await assert.rejects(host("broken.js", "export const P = async () => { throw new Error('no start'); };"), /broken\.js` cannot be loaded.*no start/);
  await assert.rejects(startHost({ plugins: [join(directory, "missing.js")] }), /missing\.js` cannot be loaded/);
  const running = await host("throws.js", "export const P = async () => ({ 'shell.env': async () => { throw new Error('no hook'); } });");
  t.after(() => running.close());
  await assert.rejects(running.hook("shell.env", {}, { env: {} }), /no hook/);
  assert.equal((await running.tryHook("shell.env", {}, { env: {} })).failures[0].thrown, true);
});
