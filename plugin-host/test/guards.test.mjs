// Hooks that hang, and values that cannot be used.
import assert from "node:assert/strict";
import test from "node:test";
import { runtimes, withHost } from "./harness.mjs";

for (const runtime of runtimes()) {
  test(
    `${runtime.name}: a guard that does not end stops the plugins after it`,
    withHost(runtime, async (host) => {
      const plugin = (name, body) =>
        host.file(
          `${name}.js`,
          `export const P = async () => ({ "tool.execute.before": async (input, output) => { ${body} } });\n`,
        );
      await host.initialize([
        plugin("hang", "await new Promise(() => {});"),
        plugin("later", "output.args.later = true;"),
      ]);
      const { output, failures } = await host.request("hook", {
        name: "tool.execute.before",
        input: {},
        output: { args: {} },
      });
      assert.deepEqual(output, { args: {} });
      assert.deepEqual(
        failures.map(({ index, timeout }) => [index, timeout]),
        [[0, true]],
      );
    }),
  );

  test(
    `${runtime.name}: headers that cannot be sent are left out under the name of their plugin`,
    withHost(runtime, async (host) => {
      const plugin = (name, body) =>
        host.file(
          `${name}.js`,
          `export const P = async () => ({ "chat.headers": async (input, output) => { ${body} } });\n`,
        );
      await host.initialize([
        plugin("good", `output.headers["x-good"] = 1;`),
        plugin(
          "bad",
          `output.headers["x-note"] = "a\\nb"; output.headers["x note"] = "a"; output.headers["x-other"] = "o";`,
        ),
      ]);
      const { output, failures } = await host.request("hook", {
        name: "chat.headers",
        input: {},
        output: { headers: {} },
      });
      assert.deepEqual(output, { headers: { "x-good": 1, "x-other": "o" } });
      assert.deepEqual(
        failures.map(({ index }) => index),
        [1, 1],
      );
      for (const [at, name] of [`"x-note"`, `"x note"`].entries())
        assert.ok(failures[at].message.includes(name), failures[at].message);
    }),
  );
}
