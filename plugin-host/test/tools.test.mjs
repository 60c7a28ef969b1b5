// Tools, sign-ins, providers, custom fetch functions and the client.
import assert from "node:assert/strict";
import test from "node:test";
import { runtimes, withHost } from "./harness.mjs";

const CONTEXT = { sessionID: "ses_1", messageID: "msg_1", callID: "call_1", agent: "build" };
const DRAFT = "https://json-schema.org/draft/2020-12/schema";

/** A plugin that uses the clients of both versions, and returns what they answer as an environment. */
const CLIENT_PLUGIN = `import { createOpencodeClient } from "@opencode-ai/sdk";
import { createOpencodeClient as createV2 } from "@opencode-ai/sdk/v2";
export const P = async ({ client, serverUrl }) => ({ "shell.env": async (input, output) => {
  const out = output.env;
  const got = await client.session.get({ path: { id: "ses/1" } });
  out.data = got.data; out.ok = got.response.ok; out.error = got.error === undefined; out.url = got.request.url;
  const failed = await client.session.prompt({ path: { id: "no" }, body: { parts: [{ type: "text", text: "ä" }] } });
  out.failed = failed.error; out.status = failed.response.status;
  const describe = (error) => [error instanceof Error, error.message];
  out.thrown = await client.session.delete({ path: { id: "no" }, throwOnError: true }).then(() => "none", describe);
  const query = { list: ["a", "b"], deep: { c: 2 }, none: undefined };
  out.raw = (await client._client.post({ url: "/x/{a}", path: { a: 1 }, query, body: [1] })).data;
  out.plain = await client.path.get({ responseStyle: "data" });
  const events = await client.event.subscribe();
  out.events = [];
  for await (const event of events.stream) { out.events.push(event); if (out.events.length === 2) break; }
  out.own = (await createOpencodeClient({ baseUrl: serverUrl.origin }).project.current()).data;
  const v2 = createV2({ baseUrl: serverUrl.origin, directory: "/d" });
  out.v2 = (await v2.session.promptAsync({ sessionID: "s", parts: [] })).data;
  out.fetched = await (await fetch(new URL("/text", serverUrl))).text();
  out.keys = Object.keys(client).sort().join(" ");
} });`;

/** Answers the requests of the clients, and returns the list of them. */
function serveClient(host) {
  const requests = [];
  host.handlers.set("http", (request) => {
    requests.push(request);
    const { id, method, path } = request;
    const send = (text) => host.notify("http.data", { id, data: Buffer.from(text).toString("base64") });
    const json = (value, status = 200) => {
      setTimeout(() => {
        send(JSON.stringify(value));
        host.notify("http.end", { id });
      });
      return { status, headers: [["content-type", "application/json"]] };
    };
    if (path.startsWith("/event")) {
      setTimeout(() => {
        send('data: {"type":"server.connected"}\n\nid: 5\nda');
        send('ta: {"type":"a",\ndata: "b":1}\n\n');
      });
      return { status: 200, headers: [["content-type", "text/event-stream"]] };
    }
    if (path === "/text") {
      setTimeout(() => {
        send("plain");
        host.notify("http.end", { id });
      });
      return { status: 200, headers: [] };
    }
    if (path.includes("/no")) return json({ name: "NotFoundError", data: { message: "Session not found: no" } }, 404);
    return json({ method, path });
  });
  return requests;
}

/** What `auth.ts` asks before a sign-in. */
const PROMPTS = [
  { type: "text", key: "domain", message: "Domain", placeholder: "example.com", hasValidate: true },
  {
    type: "select",
    key: "plan",
    message: "Plan",
    options: [{ label: "Pro", value: "pro" }],
    when: { key: "domain", op: "eq", value: "a.b" },
  },
  { type: "text", key: "old", message: "Old", hasCondition: true },
];

for (const runtime of runtimes()) {
  test(
    `${runtime.name}: a zod 4 tool`,
    withHost(runtime, async (host) => {
      host.handlers.set("tool.ask", (request) => {
        if (request.patterns[0] === "ft")
          throw Object.assign(new Error("the user rejected it"), { data: { kind: "rejected" } });
        return {};
      });
      const { plugins } = await host.initialize(["tools-zod4.ts"]);
      const convert = plugins[0].tools.find((tool) => tool.name === "convert");
      assert.deepEqual(convert.parameters, {
        $schema: DRAFT,
        type: "object",
        properties: {
          value: { type: "number", minimum: 0, description: "The length" },
          unit: { type: "string", enum: ["m", "ft"], default: "m", description: "The unit" },
          labels: { type: "array", items: { type: "string" } },
          nested: {
            type: "object",
            properties: { deep: { anyOf: [{ type: "string", description: "Deep" }, { type: "null" }] } },
            required: ["deep"],
          },
        },
        required: ["value"],
      });
      const call = (args, id = "c1") =>
        host.request("tool.execute", { index: 0, tool: "convert", args, call: id, context: CONTEXT });
      assert.deepEqual(await call({ value: 2, unit: "m", unknown: 1 }), {
        title: "Converted",
        output: JSON.stringify({ args: { value: 2, unit: "m", unknown: 1 }, next: 41 }),
        metadata: { unit: "m" },
        attachments: [{ type: "file", mime: "text/plain", url: "data:text/plain,x" }],
      });
      const metadata = host.notifications.find((message) => message.method === "tool.metadata").params;
      assert.deepEqual(metadata, { call: "c1", title: "converting", metadata: { step: 1 } });
      const ask = host.requests.find((request) => request.method === "tool.ask").params;
      assert.deepEqual(ask, { call: "c1", permission: "convert", patterns: ["m"], always: ["*"], metadata: {} });
      await assert.rejects(
        call({ value: 2, unit: "ft" }),
        (error) => error.data.kind === "rejected" && error.message === "the user rejected it",
      );
      const lenient = await call({ value: -2, unit: "x" });
      assert.deepEqual(
        JSON.parse(lenient.output).args,
        { value: -2, unit: "x" },
        "arguments are not checked, as in OpenCode",
      );
      await assert.rejects(
        host.request("tool.execute", { index: 0, tool: "nope", args: {}, call: "c", context: CONTEXT }),
        { code: -32602 },
      );

      const waiting = host.request("tool.execute", { index: 0, tool: "wait", args: {}, call: "c2", context: CONTEXT });
      await host.request("hook", { name: "x", input: {}, output: {} });
      host.notify("tool.abort", { call: "c2" });
      assert.deepEqual(await waiting, { output: "aborted: true" });
    }),
  );

  test(
    `${runtime.name}: a zod 3 tool`,
    withHost(runtime, async (host) => {
      const { plugins } = await host.initialize(["tools-zod3.ts"]);
      assert.equal(plugins[0].error, undefined, JSON.stringify(plugins[0]));
      assert.deepEqual(plugins[0].tools[0].parameters, {
        $schema: DRAFT,
        type: "object",
        properties: {
          pattern: { type: "string", minLength: 1, description: "The pattern" },
          limit: { type: "integer", maximum: 100, default: 10 },
          mode: { type: "string", enum: ["fast", "exact"], description: "The mode" },
          range: { type: "array", prefixItems: [{ type: "number" }, { type: "number" }], minItems: 2, items: false },
          options: {
            anyOf: [
              {
                type: "object",
                properties: {
                  hidden: { type: "boolean" },
                  tags: { type: "object", propertyNames: { type: "string" }, additionalProperties: { type: "string" } },
                },
                required: ["hidden"],
                additionalProperties: false,
              },
              { type: "null" },
            ],
          },
          either: { anyOf: [{ type: "string" }, { type: "number", const: 3 }] },
        },
        required: ["pattern"],
      });
      const call = (args) =>
        host.request("tool.execute", { index: 0, tool: "search", args, call: "c", context: CONTEXT });
      assert.deepEqual(
        JSON.parse((await call({ pattern: "a" })).output),
        { pattern: "a" },
        "defaults are not applied, as in OpenCode",
      );
      assert.deepEqual(JSON.parse((await call({ pattern: "", options: { hidden: 1 } })).output), {
        pattern: "",
        options: { hidden: 1 },
      });
    }),
  );

  test(
    `${runtime.name}: tools with JSON Schema, Standard Schema and strange results`,
    withHost(runtime, async (host) => {
      const file = host.file(
        "tools.js",
        `const issues = [{ message: "not a text", path: [{ key: "k" }] }];
const results = { nothing: () => undefined, number: () => 5, object: () => ({ a: 1 }),
  throws: () => { throw new Error("bad tool"); }, late: () => new Promise(() => {}),
  cycle: () => { const o = { output: "x", metadata: {} }; o.metadata.self = o; return o; },
  huge: () => "x".repeat(20 * 1024 * 1024) };
const validate = (v) => (typeof v === "string" ? { value: v + "!" } : { issues });
const standard = { "~standard": { version: 1, vendor: "x", validate } };
const echo = async (args) => JSON.stringify(args);
const tool = {
  schema: { description: "S", args: { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
    execute: echo },
  parts: { description: "P", args: { a: { type: "string" }, s: standard }, execute: echo },
  noArgs: { description: "N", execute: async () => "none" },
  broken: { description: "B" },
};
for (const [name, execute] of Object.entries(results)) {
  tool[name] = { description: name, args: {}, execute: async () => execute() };
}
export const P = async () => ({ tool });`,
      );
      const { plugins } = await host.initialize([file], {
        deadlines: { load: 5000, hook: 500, tool: 500, dispose: 500 },
      });
      const tools = Object.fromEntries(plugins[0].tools.map((tool) => [tool.name, tool.parameters]));
      assert.deepEqual(tools.schema, {
        $schema: DRAFT,
        type: "object",
        properties: { a: { type: "string" } },
        required: ["a"],
      });
      assert.deepEqual(tools.parts, {
        $schema: DRAFT,
        type: "object",
        properties: { a: { type: "string" }, s: {} },
        required: ["a", "s"],
      });
      assert.equal(tools.broken, undefined);
      const call = (tool, args = {}) =>
        host.request("tool.execute", { index: 0, tool, args, call: tool, context: CONTEXT });
      assert.deepEqual(await call("schema", { a: "x", b: 1 }), { output: '{"a":"x","b":1}' });
      assert.deepEqual(await call("parts", { a: "x", s: "y" }), { output: '{"a":"x","s":"y"}' });
      assert.deepEqual(await call("parts", { s: 5 }), { output: '{"s":5}' });
      assert.deepEqual(tools.noArgs, { $schema: DRAFT, type: "object", properties: {} });
      assert.deepEqual(await call("noArgs"), { output: "none" });
      assert.deepEqual(await call("nothing"), { output: "" });
      assert.deepEqual(await call("number"), { output: "5" });
      assert.deepEqual(await call("object"), { output: '{"a":1}' });
      assert.deepEqual(await call("cycle"), { output: "x", metadata: {} });
      await assert.rejects(call("huge"), { code: -32001 });
      await assert.rejects(
        call("throws"),
        (error) => error.message === "bad tool" && error.data.plugin === "tools" && error.data.line === 3,
      );
      await assert.rejects(call("late"), (error) => error.data.kind === "timeout");
    }),
  );

  test(
    `${runtime.name}: a sign-in gets only what the client passed`,
    withHost(runtime, async (host) => {
      const file = host.file(
        "auth.js",
        `const callback = async (...code) => ({ type: "success", key: JSON.stringify(code) });
const text = (inputs) => JSON.stringify(inputs.map((value) => value ?? "nothing"));
const authorize = async (...inputs) => ({ url: "https://a.b", instructions: text(inputs), method: "auto", callback });
export const P = async () => ({ auth: { provider: "p", methods: [{ type: "oauth", label: "A", authorize }] } });`,
      );
      await host.initialize([file]);
      for (const [inputs, expected] of [
        [undefined, '["nothing"]'],
        [{}, "[{}]"],
        [{ a: "1" }, '[{"a":"1"}]'],
      ]) {
        const { instructions, handle } = await host.request("auth.authorize", { index: 0, method: 0, inputs });
        assert.equal(instructions, expected);
        assert.equal((await host.request("auth.callback", { handle })).key, "[]");
      }
    }),
  );

  test(
    `${runtime.name}: sign-in, loader, custom fetch and provider models`,
    withHost(runtime, async (host) => {
      host.handlers.set("auth.get", ({ provider }) => ({ type: "api", key: `stored for ${provider}` }));
      const { plugins } = await host.initialize(["auth.ts"]);
      const { auth, provider } = plugins[0];
      assert.deepEqual(provider, { id: "example" });
      assert.equal(auth.provider, "example");
      assert.equal(auth.loader, true);
      assert.deepEqual(auth.methods[0].prompts, PROMPTS);
      const prompt = (key, inputs, value) =>
        host.request("auth.prompt", { index: 0, method: 0, key, inputs, ...(value === undefined ? {} : { value }) });
      assert.deepEqual(await prompt("domain", {}, "nodot"), { visible: true, error: "not a domain" });
      assert.deepEqual(await prompt("domain", {}, "a.b"), { visible: true });
      assert.deepEqual(await prompt("plan", { domain: "c.d" }), { visible: false });
      assert.deepEqual(await prompt("plan", { domain: "a.b" }), { visible: true });
      assert.deepEqual(await prompt("old", { domain: "old.example" }), { visible: true });

      const started = await host.request("auth.authorize", { index: 0, method: 0, inputs: { domain: "a.b" } });
      const { handle, ...rest } = started;
      assert.deepEqual(rest, { url: "https://a.b/authorize", instructions: "Paste the code", method: "code" });
      assert.deepEqual(await host.request("auth.callback", { handle, code: "right" }), {
        type: "success",
        refresh: "r",
        access: "a",
        expires: 5,
      });
      await assert.rejects(host.request("auth.callback", { handle, code: "right" }), /expired/);
      assert.deepEqual(await host.request("auth.authorize", { index: 0, method: 1, inputs: { name: "n" } }), {
        type: "success",
        key: "key-n",
      });

      const model = { id: "m", cost: { input: 3, output: 4, cache: { read: 1, write: 1 } } };
      const loaded = await host.request("auth.loader", { index: 0, provider: { id: "example", models: { m: model } } });
      assert.deepEqual(loaded.options, { apiKey: "stored for example", baseURL: "https://example.invalid/v1" });
      assert.deepEqual(loaded.provider.models.m.cost, { input: 0, output: 0, cache: { read: 0, write: 0 } });
      assert.deepEqual(
        await host.request("provider.models", { index: 0, provider: { models: { m: model } }, auth: { type: "api" } }),
        {
          models: { extra: { ...model, id: "extra", name: "api" } },
        },
      );

      const received = (id) =>
        host.notifications.filter((message) => message.method === "fetch.data" && message.params.id === id);
      const bytes = (id) => Buffer.concat(received(id).map((message) => Buffer.from(message.params.data, "base64")));
      const ended = (id) =>
        host.notifications.find((message) => message.method === "fetch.end" && message.params.id === id);
      const body = Buffer.from('{"stream":true}').toString("base64");
      const fetch = (id, size) =>
        host.request("fetch", {
          handle: loaded.fetch,
          id,
          url: `https://example.invalid/v1/chat?size=${size}`,
          method: "POST",
          headers: [["content-type", "application/json"]],
          body,
        });
      const answer = await fetch("f1", 0);
      assert.equal(answer.status, 201);
      assert.deepEqual(
        answer.headers.filter(([name]) => name !== "content-type"),
        [["x-key", "stored for example"]],
      );
      await host.until(() => ended("f1"), "the end of the body");
      assert.equal(bytes("f1").toString(), 'POST string {"stream":true}\n');

      // The body is larger than the window, so it stops until the receiver extends it.
      await fetch("f2", 1_000_000);
      await host.until(() => bytes("f2").length >= 256 * 1024, "the first window");
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.equal(bytes("f2").length, 256 * 1024);
      assert.equal(ended("f2"), undefined);
      host.notify("fetch.credit", { id: "f2", bytes: 10_000_000 });
      await host.until(() => ended("f2"), "the end of the body");
      assert.equal(bytes("f2").length, 1_000_028);
      assert.equal(ended("f2").params.error, undefined);

      await fetch("f3", 1_000_000);
      host.notify("fetch.cancel", { id: "f3" });
      await host.until(() => ended("f3"), "the end after a cancel");
      await assert.rejects(
        host.request("fetch", { handle: "none", id: "f4", url: "https://x/", method: "GET", headers: [] }),
        { code: -32602 },
      );
    }),
  );

  test(
    `${runtime.name}: the client`,
    withHost(runtime, async (host) => {
      const file = host.file("client.js", CLIENT_PLUGIN);
      const requests = serveClient(host);
      await host.initialize([file]);
      const { output, failures } = await host.request("hook", { name: "shell.env", input: {}, output: { env: {} } });
      assert.deepEqual(failures, []);
      const directory = encodeURIComponent(host.directory);
      const { env } = output;
      assert.deepEqual(env.data, { method: "GET", path: `/session/ses%2F1?directory=${directory}` });
      assert.equal(env.ok, true);
      assert.equal(env.error, true);
      assert.equal(env.url, `http://localhost:4096/session/ses%2F1?directory=${directory}`);
      assert.deepEqual(env.failed, { name: "NotFoundError", data: { message: "Session not found: no" } });
      assert.equal(env.status, 404);
      assert.deepEqual(env.thrown, [true, "Session not found: no"]);
      assert.deepEqual(env.raw, { method: "POST", path: "/x/1?list=a&list=b&deep%5Bc%5D=2" });
      assert.deepEqual(env.plain, { method: "GET", path: `/path?directory=${directory}` });
      assert.deepEqual(env.events, [{ type: "server.connected" }, { type: "a", b: 1 }]);
      assert.deepEqual(env.own, { method: "GET", path: "/project/current" });
      assert.deepEqual(env.v2, { method: "POST", path: "/session/s/prompt_async" });
      assert.equal(env.fetched, "plain");
      assert.equal(
        env.keys,
        "app auth command config event file find formatter global instance lsp mcp path " +
          "postSessionIdPermissionsPermissionId project provider pty session tool tui vcs",
      );
      const prompt = requests.find((request) => request.path === "/session/no/message");
      assert.deepEqual(JSON.parse(Buffer.from(prompt.body, "base64")), { parts: [{ type: "text", text: "ä" }] });
      assert.equal(Object.fromEntries(prompt.headers)["x-opencode-directory"], directory);
      await host.until(
        () => host.notifications.some((message) => message.method === "http.cancel"),
        "the cancel of the event stream",
      );
    }),
  );
}
