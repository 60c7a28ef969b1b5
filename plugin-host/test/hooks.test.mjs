// Hooks, events and payloads.
import assert from "node:assert/strict";
import test from "node:test";
import { runtimes, withHost } from "./harness.mjs";

/** Hook, input, output, and the output afterwards. The shapes are those of the recorded calls. */
const MODEL = {
  id: "mock-1",
  providerID: "mock",
  api: { id: "mock-1", npm: "x", url: "u" },
  limit: { context: 1, output: 1 },
};
const PROVIDER = { source: "config", info: { id: "mock" }, options: {} };
const MESSAGE = {
  id: "msg_1",
  sessionID: "ses_1",
  role: "user",
  time: { created: 1 },
  agent: "build",
  model: { providerID: "mock", modelID: "mock-1" },
};
const CHAT = { sessionID: "ses_1", agent: "build", model: MODEL, provider: PROVIDER, message: MESSAGE };
const HOOKS = [
  [
    "chat.message",
    { sessionID: "ses_1", agent: "build", messageID: "msg_1" },
    { message: MESSAGE, parts: [] },
    {
      message: { ...MESSAGE, agent: "build seen" },
      parts: [{ id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "text", text: "added" }],
    },
  ],
  [
    "chat.params",
    CHAT,
    { temperature: 1, topP: 1, topK: 1, maxOutputTokens: 32000, options: {} },
    { temperature: 0.25, topP: 1, topK: 1, options: { model: "mock-1", source: "config" } },
  ],
  ["chat.headers", CHAT, { headers: { a: "b" } }, { headers: { a: "b", "x-plugin": "yes" } }],
  ["permission.ask", { id: "per_1", type: "bash", sessionID: "ses_1" }, { status: "ask" }, { status: "deny" }],
  [
    "command.execute.before",
    { command: "hello", sessionID: "ses_1", arguments: "world" },
    { parts: [{ type: "text", text: "Say" }] },
    { parts: [{ type: "text", text: "Say world" }] },
  ],
  [
    "tool.execute.before",
    { tool: "bash", sessionID: "ses_1", callID: "call_1" },
    { args: { command: "ls" } },
    { args: { command: "ls # call_1" } },
  ],
  ["shell.env", { cwd: "/tmp", sessionID: "ses_1", callID: "call_1" }, { env: {} }, { env: { CWD: "/tmp" } }],
  [
    "tool.execute.after",
    { tool: "bash", sessionID: "ses_1", callID: "call_1", args: { command: "ls" } },
    { title: "List", output: "x", metadata: { exit: 0 } },
    { title: "bash: List", output: "x", metadata: { exit: 0, extra: "ls" } },
  ],
  [
    "experimental.chat.messages.transform",
    {},
    {
      messages: [
        { info: MESSAGE, parts: [] },
        { info: MESSAGE, parts: [] },
      ],
    },
    { messages: [{ info: MESSAGE, parts: [] }] },
  ],
  [
    "experimental.chat.system.transform",
    { sessionID: "ses_1", model: MODEL },
    { system: ["a"] },
    { system: ["a", "for mock-1"] },
  ],
  ["experimental.provider.small_model", { provider: { models: { "mock-1": MODEL } } }, {}, { model: MODEL }],
  [
    "experimental.session.compacting",
    { sessionID: "ses_1" },
    { context: [] },
    { context: ["remember this"], prompt: "Summarize" },
  ],
  ["experimental.compaction.autocontinue", { ...CHAT, overflow: false }, { enabled: true }, { enabled: false }],
  [
    "experimental.text.complete",
    { sessionID: "ses_1", messageID: "msg_1", partID: "prt_1" },
    { text: "hello" },
    { text: "HELLO" },
  ],
  [
    "tool.definition",
    { toolID: "bash" },
    { description: "Run", parameters: { type: "object" } },
    { description: "Run (bash)", parameters: { type: "object", additionalProperties: false } },
  ],
];

for (const runtime of runtimes()) {
  test(
    `${runtime.name}: a plugin that replaces \`sort\` chooses the order of the agents`,
    withHost(runtime, async (host) => {
      const file = host.file(
        "order.js",
        `export const P = async () => ({
  config: async (config) => {
    config.agent = { a: {}, z: {}, build: {} };
    if (config.username !== "shim") return;
    const { sort } = Array.prototype;
    Array.prototype.sort = function (compare) {
      const zFirst = (a, b) => (a.name === "z" ? -1 : b.name === "z" ? 1 : compare(a, b));
      return sort.call(this, this.some((agent) => agent?.name === "z") ? zFirst : compare);
    };
  },
});`,
      );
      await host.initialize([file]);
      const config = async (username) =>
        (await host.request("hook", { name: "config", input: { username }, output: {} })).agents;
      assert.equal(await config("usual"), undefined);
      assert.deepEqual(await config("shim"), [
        "z",
        "build",
        "a",
        "compaction",
        "explore",
        "general",
        "plan",
        "summary",
        "title",
      ]);
    }),
  );

  test(
    `${runtime.name}: plugins and their programs have the environment of the user, in the directory of the project`,
    withHost(
      runtime,
      async (host) => {
        const plugin = host.file(
          "environment.js",
          `import { spawnSync, execSync, exec } from "node:child_process";
          import { promisify } from "node:util";
          export const P = async ({ $ }) => ({
            "shell.env": async (input, output) => {
              process.env.ADDED = "yes";
              const own = [
                "BUN_GC_TIMER_DISABLE", "Malloc", "npm_command", "npm_execpath", "npm_config_local_prefix", "NODE",
              ];
              const show = "pwd; echo $ADDED $USERS; env | grep -c -E '^(" + own.join("|") + ")=' || true";
              const started = Bun.spawn(["sh", "-c", show], { stdout: "pipe" });
              output.env = {
                PATH: process.env.PATH,
                own: own.filter((name) => process.env[name] !== undefined).join(),
                cwd: process.cwd(),
                spawnSync: spawnSync("sh", ["-c", show]).stdout.toString(),
                execSync: execSync(show).toString(),
                exec: (await promisify(exec)(show)).stdout,
                spawn: await new Response(started.stdout).text(),
                bunSync: Bun.spawnSync(["sh", "-c", show]).stdout.toString(),
                shell: await $\`sh -c \${show}\`.text(),
              };
            },
          });`,
        );
        await host.initialize([plugin]);
        const { output } = await host.request("hook", {
          name: "shell.env",
          input: {},
          output: { env: {} },
          plugins: [0],
        });
        const { PATH, own, cwd, ...printed } = output.env;
        assert.equal(PATH, process.env.PATH);
        assert.equal(own, "");
        assert.equal(cwd, host.directory);
        for (const [name, text] of Object.entries(printed))
          assert.equal(text, `${host.directory}\nyes kept\n0\n`, name);
      },
      {
        env: {
          USERS: "kept",
          npm_command: undefined,
          npm_execpath: undefined,
          npm_config_local_prefix: undefined,
          NODE: undefined,
        },
      },
    ),
  );

  test(
    `${runtime.name}: the port of a server is known at once`,
    withHost(runtime, async (host) => {
      const plugin = host.file(
        "server.js",
        `export const P = async () => ({ "shell.env": async (input, output) => {
          for (const hostname of ["127.0.0.1", "localhost"]) {
            const server = Bun.serve({ port: 0, hostname, fetch: () => new Response("answer") });
            output.env[hostname] = String(server.port > 0 && new URL(server.url).port === String(server.port));
            output.env[hostname] += await (await fetch("http://127.0.0.1:" + server.port)).text();
            await server.stop(true);
          }
        } });`,
      );
      await host.initialize([plugin]);
      const { output } = await host.request("hook", {
        name: "shell.env",
        input: {},
        output: { env: {} },
        plugins: [0],
      });
      assert.deepEqual(output.env, { "127.0.0.1": "trueanswer", localhost: "trueanswer" });
    }),
  );

  test(
    `${runtime.name}: an answer arrives that is larger than the socket`,
    withHost(runtime, async (host) => {
      const plugin = host.file(
        "large.js",
        "export const P = async () => ({ 'shell.env': async (i, o) => { o.env.LARGE = 'é'.repeat(1_000_000); } });",
      );
      await host.initialize([plugin]);
      host.socket.pause();
      const calls = [1, 2, 3].map(() =>
        host.request("hook", { name: "shell.env", input: {}, output: { env: {} }, plugins: [0] }),
      );
      await new Promise((resolve) => setTimeout(resolve, 300));
      host.socket.resume();
      for (const { output } of await Promise.all(calls)) assert.equal(output.env.LARGE.length, 1_000_000);
    }),
  );

  test(
    `${runtime.name}: every hook gets its payload and changes its output`,
    withHost(runtime, async (host) => {
      host.handlers.set("http", ({ id }) => {
        setTimeout(() => {
          host.notify("http.data", { id, data: Buffer.from("true").toString("base64") });
          host.notify("http.end", { id });
        });
        return { status: 200, headers: [["content-type", "application/json"]] };
      });
      const { plugins, runtime: reported } = await host.initialize([
        { spec: "every-hook", entry: fixture("every-hook.ts"), options: { greeting: "hi" } },
      ]);
      assert.equal(reported.name, runtime.name.replace(/\d+$/, ""));
      assert.deepEqual(plugins[0].error, undefined);
      assert.deepEqual(
        [...plugins[0].hooks].sort(),
        ["config", "dispose", "event", ...HOOKS.map(([name]) => name)].sort(),
      );
      for (const [name, input, output, expected] of HOOKS) {
        const result = await host.request("hook", { name, input, output });
        assert.deepEqual(result, { output: expected, failures: [] }, name);
      }
      const config = await host.request("hook", { name: "config", input: { model: "a/b" }, output: {} });
      assert.deepEqual(config.input, {
        model: "a/b",
        username: "global hi",
        command: { hello: { template: "Say hello" } },
      });
      const at = host.notifications.filter((message) => message.method === "at");
      assert.equal(at.length, HOOKS.length + 1);
      const log = host.requests.find((request) => request.method === "http").params;
      assert.equal(log.method, "POST");
      assert.equal(log.path, "/log");
      assert.deepEqual(JSON.parse(Buffer.from(log.body, "base64")), {
        service: "fixture",
        level: "info",
        message: "bash",
      });
      const headers = Object.fromEntries(log.headers);
      assert.equal(headers["x-opencode-directory"], encodeURIComponent(host.directory));
      assert.equal(headers["content-type"], "application/json");

      for (const type of ["session.idle", "message.updated"])
        host.notify("event", { event: { id: "evt_1", type, properties: {} } });
      const call = {
        index: 0,
        tool: "describe",
        args: {},
        call: "c",
        context: { sessionID: "s", messageID: "m", callID: "c", agent: "build" },
      };
      const described = JSON.parse((await host.request("tool.execute", call)).output);
      assert.deepEqual(described.seen, ["session.idle", "message.updated"]);
      assert.equal(described.text, host.directory);
      assert.equal(described.url, "http://localhost:4096/");
      const keys = [
        "abort",
        "agent",
        "ask",
        "callID",
        "directory",
        "extra",
        "messageID",
        "messages",
        "metadata",
        "sessionID",
        "worktree",
      ];
      assert.deepEqual(described.keys, keys);

      assert.deepEqual(await host.request("dispose"), {});
      assert.deepEqual(await host.exited, [0, null]);
      assert.ok(host.log.some((line) => line.message === "disposed" && line.index === 0));
    }),
  );

  test(
    `${runtime.name}: several plugins change one output in order, and failures are reported`,
    withHost(runtime, async (host) => {
      const plugin = (name, body) =>
        host.file(
          `${name}.js`,
          `export const P = async () => ({ "shell.env": async (input, output) => { ${body} } });\n`,
        );
      const { plugins } = await host.initialize([
        plugin("one", `output.env.ORDER = "1";`),
        plugin("two", `output.env.ORDER += "2";\nthrow new Error("broken");`),
        plugin("three", `output.env.ORDER += "3"; await new Promise(() => {});`),
        plugin(
          "four",
          `output.env.ORDER += "4"; output.env.fn = () => {}; output.env.big = 10n; output.env.self = output;`,
        ),
        plugin("five", `output.env.ORDER += "5";`),
      ]);
      assert.deepEqual(
        plugins.map((loaded) => loaded.error),
        [undefined, undefined, undefined, undefined, undefined],
      );
      const { output, failures } = await host.request("hook", { name: "shell.env", input: {}, output: { env: {} } });
      assert.deepEqual(output, { env: { ORDER: "12345" } });
      assert.equal(failures.length, 3);
      assert.deepEqual(failures[0], {
        index: 1,
        message: "broken",
        thrown: true,
        file: `${host.directory}/two.js`,
        line: 2,
      });
      assert.equal(failures[1].index, 2);
      assert.equal(failures[1].timeout, true);
      assert.equal(failures[2].index, 3);
      for (const part of ["env.fn is a function", "env.big is a BigInt", "env.self is part of a cycle"])
        assert.ok(failures[2].message.includes(part), part);
      const skipped = await host.request("hook", {
        name: "shell.env",
        input: {},
        output: { env: {} },
        skip: [1, 2, 3],
      });
      assert.deepEqual(skipped, { output: { env: { ORDER: "15" } }, failures: [] });
    }),
  );

  test(
    `${runtime.name}: a value that is too large fails its plugin and keeps the changes of the others`,
    withHost(runtime, async (host) => {
      const small = host.file(
        "small.js",
        `export const P = async () => ({ "experimental.text.complete": async (i, o) => { o.text += "!"; } });`,
      );
      const huge = host.file(
        "huge.js",
        `const text = "x".repeat(20 * 1024 * 1024);
export const P = async () => ({ "experimental.text.complete": async (i, o) => { o.text = text; } });`,
      );
      await host.initialize([small, huge, small.replace("small", "./small")]);
      const { output, failures } = await host.request("hook", {
        name: "experimental.text.complete",
        input: {},
        output: { text: "a" },
      });
      assert.deepEqual(output, { text: "a!!" });
      assert.equal(failures.length, 1);
      assert.equal(failures[0].index, 1);
      assert.match(failures[0].message, /larger than \d+ bytes/);
    }),
  );

  test(
    `${runtime.name}: unknown methods, long lines and a second initialize are refused`,
    withHost(runtime, async (host) => {
      await host.initialize([]);
      await assert.rejects(host.request("nonsense"), { code: -32601 });
      await assert.rejects(host.request("hook", { name: "x", output: "x".repeat(17 * 1024 * 1024) }), { code: -32001 });
      await assert.rejects(host.initialize([]), { code: -32600 });
      assert.deepEqual(await host.request("hook", { name: "x", input: {}, output: { a: 1 } }), {
        output: { a: 1 },
        failures: [],
      });
    }),
  );
}

function fixture(name) {
  return new URL(`fixtures/${name}`, import.meta.url).pathname;
}
