// Module forms, TypeScript, packages, and plugins that cannot be loaded.
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { dirname } from "node:path";
import test from "node:test";
import { FIXTURES, runtimes, withHost } from "./harness.mjs";

const HOOK = `{ "chat.headers": async (i, o) => { o.headers.n = (o.headers.n ?? 0) + 1; } }`;

/** File, text, and a part of what is reported: `hooks` (how often it runs), `skipped` or `error`. */
const FORMS = [
  ["named.js", `export const A = async () => (${HOOK});`, { runs: 1 }],
  ["commonjs-package/package.json", `{ "type": "commonjs" }`, { runs: 0, error: { message: /./ } }],
  ["commonjs-package/named.js", `export const A = async () => (${HOOK});`, { runs: 1 }],
  ["commonjs-package/common.js", `module.exports = { A: async () => (${HOOK}) };`, { runs: 1 }],
  ["default.mjs", `export default async () => (${HOOK});`, { runs: 1 }],
  ["two.js", `export const A = async () => (${HOOK}); export const B = async () => (${HOOK});`, { runs: 2 }],
  ["twice.js", `export const A = async () => (${HOOK}); export default A;`, { runs: 1 }],
  ["server.js", `export default { id: "an-id", server: async () => (${HOOK}) };`, { runs: 1, id: "an-id" }],
  [
    "class.js",
    `export class Problem extends Error {}\nexport const VERSION = "1";\nexport const A = async () => (${HOOK});`,
    { runs: 1 },
  ],
  ["common.cjs", `module.exports = { A: async () => (${HOOK}) };`, { runs: 1 }],
  [
    "compiled.cjs",
    `Object.defineProperty(exports, "__esModule", { value: true });\nexports.default = async () => (${HOOK});`,
    { runs: 1 },
  ],
  ["tui.js", `export default { id: "x", tui: async () => {} };`, { runs: 0, skipped: /^tui$/ }],
  ["nothing-returned.js", `export const A = async () => {};`, { runs: 0 }],
  ["empty.js", `export const VERSION = 1;`, { runs: 0, error: { message: /exports no plugin/, line: 1 } }],
  [
    "throws.js",
    `\nexport const A = async () => {\n  throw new Error("no luck");\n};`,
    { runs: 0, error: { message: /no luck/, line: 3 } },
  ],
  ["throws-at-top.js", `const a = 1;\nthrow new TypeError("top");`, { runs: 0, error: { message: /top/, line: 2 } }],
  [
    "throws-text.js",
    `export const A = async () => { throw "just text"; };`,
    { runs: 0, error: { message: /just text/ } },
  ],
  ["syntax.js", `export const A = 1;\nexport const B = {;\n`, { runs: 0, error: { message: /./, line: 2 } }],
  ["syntax.ts", `export const A: number = 1;\nexport const B = (1;\n`, { runs: 0, error: { message: /./, line: 2 } }],
  [
    "missing.js",
    `const a = 1;\nimport x from "no-such-package-here";\nexport const A = async () => ({});`,
    { runs: 0, error: { message: /no-such-package-here/, line: 2 } },
  ],
  [
    "missing-file.js",
    `\n\nimport x from "./nowhere.js";\nexport const A = async () => ({});`,
    { runs: 0, error: { message: /nowhere/, line: 3 } },
  ],
  [
    "slow.js",
    `export const A = () => new Promise(() => {});`,
    { runs: 0, error: { message: /took longer than 1500 ms/ } },
  ],
  [
    "exits.js",
    `export const A = async () => { process.exit(3); };`,
    { runs: 0, error: { message: /process\.exit\(3\)/ } },
  ],
];

for (const runtime of runtimes()) {
  test(
    `${runtime.name}: module forms and broken modules`,
    withHost(runtime, async (host) => {
      const entries = FORMS.map(([name, text]) => host.file(name, text));
      const { plugins } = await host.initialize([...entries, `${host.directory}/gone.js`], {
        deadlines: { load: 1500, hook: 1000, tool: 1000, dispose: 1000 },
      });
      assert.match(plugins.at(-1).error.message, /does not exist/);
      for (const [index, [name, , expected]] of FORMS.entries()) {
        const loaded = plugins[index];
        const label = `${name}: ${JSON.stringify(loaded)}`;
        const skip = FORMS.map((_, other) => other).filter((other) => other !== index);
        const { output } = await host.request("hook", {
          name: "chat.headers",
          input: {},
          output: { headers: {} },
          skip,
        });
        assert.equal(output.headers.n ?? 0, expected.runs, label);
        if (expected.id !== undefined) assert.equal(loaded.id, expected.id, label);
        if (expected.skipped !== undefined) assert.match(loaded.skipped, expected.skipped, label);
        if (expected.error === undefined) assert.equal(loaded.error, undefined, label);
        else {
          assert.match(loaded.error.message, expected.error.message, label);
          assert.equal(loaded.error.file, entries[index], label);
          if (expected.error.line !== undefined) assert.equal(loaded.error.line, expected.error.line, label);
        }
      }
      const loading = host.notifications.filter((message) => message.method === "loading");
      assert.deepEqual(
        loading.map((message) => message.params.index),
        plugins.map((plugin) => plugin.index),
      );
    }),
  );

  test(
    `${runtime.name}: TypeScript in packages, without extensions, with enums and parameter properties`,
    withHost(runtime, async (host) => {
      const home = `${host.directory}/cache/node_modules/ts-plugin`;
      const at = (name, text) => host.file(`cache/node_modules/ts-plugin/${name}`, text);
      at(
        "package.json",
        JSON.stringify({
          name: "ts-plugin",
          version: "1.0.0",
          exports: { ".": "./src/wrong.ts", "./server": { import: "./src/main.ts" }, "./tui": "./src/tui.tsx" },
        }),
      );
      at("src/wrong.ts", `throw new Error("the wrong entry");`);
      at(
        "src/main.ts",
        `
import { tool, type Plugin } from "@opencode-ai/plugin";
import { z } from "zod";
import { where } from "./lib";
import { Level } from "./level.js";
import type { Nothing } from "./types-only";
import settings from "./settings.json";

class Box { constructor(private readonly level: Level, public label: string = "box") {}
  show(): string { return this.label + this.level; } }
const all = (): string => new Box(Level.High).show() + settings.name + where() + " " + import.meta.url;
export const P: Plugin = async () => ({
  tool: { show: tool({ description: "Shows", args: { a: z.string() }, execute: async () => all() }) },
  "chat.headers": async () => {
    const nothing: Nothing = { a: 1 } satisfies Nothing;
    throw new Error("line 16" + (nothing as unknown as string).length);
  },
});
`,
      );
      at("src/lib/index.ts", `export const where = (): string => "lib";`);
      at("src/level.ts", `export enum Level { Low = 1, High = Low + 6 }`);
      at("src/types-only.ts", `export interface Nothing { a: number }`);
      at("src/settings.json", `{"name": "settings"}`);
      const { plugins } = await host.initialize([{ spec: "ts-plugin@1.0.0", entry: home }]);
      assert.equal(plugins[0].error, undefined, JSON.stringify(plugins[0]));
      assert.equal(plugins[0].name, "ts-plugin");
      const call = {
        index: 0,
        tool: "show",
        args: { a: "x" },
        call: "c",
        context: { sessionID: "s", messageID: "m", agent: "build" },
      };
      assert.equal((await host.request("tool.execute", call)).output, `box7settingslib file://${home}/src/main.ts`);
      const { failures } = await host.request("hook", { name: "chat.headers", input: {}, output: { headers: {} } });
      assert.equal(failures[0].file, `${home}/src/main.ts`);
      if (runtime.name !== "deno") assert.equal(failures[0].line, 16);
    }),
  );

  test(
    `${runtime.name}: a plugin that is one file`,
    withHost(runtime, async (host) => {
      const tool = host.file(
        "single.ts",
        `import {
  tool,
} from "@opencode-ai/plugin";
import { basename } from "node:path";
import type { Plugin } from "@opencode-ai/plugin";
const text = 'a text', named = (path: string) => text + basename(path);
export const P: Plugin = async () => ({
  tool: { show: tool({ description: "S", args: { a: tool.schema.string() }, execute: async (args) => named(args.a) }) },
  "chat.headers": async () => {
    throw new Error("line 10" as string);
  },
});`,
      );
      const quotes = host.file(
        "quotes.ts",
        `import { tool } from "@opencode-ai/plugin";
const code = \`
import { x } from "@opencode-ai/plugin";
\`;
const shown = tool({ description: "d", args: {}, execute: async () => code as string });
export default async () => ({ tool: { code: shown } });`,
      );
      const wrong = host.file(
        "wrong.ts",
        `import { nothing } from "@opencode-ai/plugin";\nexport const P = async () => nothing() as object;`,
      );
      const broken = host.file("broken.ts", `const a: number = 1;\nexport const P = (1;\n`);
      const { plugins } = await host.initialize([tool, quotes, wrong, broken]);
      const call = (index, name, args) =>
        host.request("tool.execute", {
          index,
          tool: name,
          args,
          call: name,
          context: { sessionID: "s", messageID: "m", agent: "build" },
        });
      assert.equal((await call(0, "show", { a: "/x/y" })).output, "a texty", JSON.stringify(plugins[0]));
      assert.match((await call(1, "code", {})).output, /from "@opencode-ai\/plugin"/);
      assert.ok(plugins[2].error !== undefined || runtime.name === "bun", JSON.stringify(plugins[2]));
      assert.doesNotMatch(JSON.stringify(plugins[2]), /data:/);
      assert.equal(plugins[3].error.file, broken);
      assert.equal(plugins[3].error.line, 2);
      const { failures } = await host.request("hook", { name: "chat.headers", input: {}, output: { headers: {} } });
      assert.equal(failures[0].file, tool);
      if (runtime.name === "node") assert.equal(failures[0].line, 10);
    }),
  );

  test(
    `${runtime.name}: entries of packages`,
    withHost(runtime, async (host) => {
      const plugin = `export const A = async () => (${HOOK});`;
      const pack = (name, manifest, files) => {
        host.file(`p/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", ...manifest }));
        for (const [file, text] of Object.entries(files)) host.file(`p/${name}/${file}`, text);
        return { spec: name, entry: `${host.directory}/p/${name}` };
      };
      const { plugins } = await host.initialize([
        pack("main", { main: "lib/a", type: "module" }, { "lib/a.js": plugin }),
        pack("text-exports", { exports: "./x.mjs" }, { "x.mjs": plugin }),
        pack(
          "conditions",
          { exports: { ".": { types: "./x.d.ts", import: { default: "./x.mjs" } } } },
          { "x.mjs": plugin },
        ),
        pack("index", {}, { "index.mjs": plugin }),
        pack("typescript-index", {}, { "index.ts": plugin }),
        pack("only-tui", { exports: { "./tui": "./tui.tsx" } }, { "tui.tsx": "" }),
        pack("no-entry", { main: "gone.js" }, {}),
      ]);
      for (const loaded of plugins.slice(0, 5))
        assert.deepEqual(loaded.hooks, ["chat.headers"], JSON.stringify(loaded));
      assert.equal(plugins[5].skipped, "tui");
      assert.match(plugins[6].error.message, /has no module/);
    }),
  );

  test(
    `${runtime.name}: an installed package goes before the built-in module`,
    withHost(runtime, async (host) => {
      host.file(
        ".opencode/node_modules/zod/package.json",
        `{"name":"zod","type":"module","main":"index.js","version":"0.0.1"}`,
      );
      host.file(".opencode/node_modules/zod/index.js", `export const z = { mine: true };`);
      const entry = host.file(
        ".opencode/plugin/a.ts",
        `import { z } from "zod";
import { tool } from "@opencode-ai/plugin";
console.log("zod", JSON.stringify(z), typeof tool.schema.string);
export const A = async () => ({});`,
      );
      await host.initialize([entry]);
      await host.until(() => host.log.length > 0, "the log line");
      assert.equal(host.log[0].message, `zod {"mine":true} function`);
    }),
  );

  test(
    `${runtime.name}: tool files`,
    withHost(runtime, async (host) => {
      cpSync(`${FIXTURES}tools/math.ts`, host.file(".opencode/tool/math.ts", ""));
      const bad = host.file(".opencode/tool/bad.ts", `export const x = 1;`);
      const { plugins } = await host.initialize([], {
        tools: [
          { index: 0, file: `${host.directory}/.opencode/tool/math.ts`, name: "math" },
          { index: 1, file: bad, name: "bad" },
        ],
      });
      assert.deepEqual(plugins[0].tools.map((tool) => tool.name).sort(), ["math", "math_add"]);
      assert.match(plugins[1].error.message, /exports no tool/);
      assert.equal(dirname(plugins[1].error.file), `${host.directory}/.opencode/tool`);
      const call = (tool) => ({
        index: 0,
        tool,
        args: { a: 3, b: 4 },
        call: "c",
        context: { sessionID: "s", messageID: "m", agent: "build" },
      });
      assert.deepEqual(await host.request("tool.execute", call("math")), { output: "12" });
      assert.deepEqual(await host.request("tool.execute", call("math_add")), { output: "7" });
    }),
  );
}
