// Plugins of the form {id, effect}, with the real library.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import test from "node:test";
import { FIXTURES, runtimes, withHost } from "./harness.mjs";

const LISTS = { agents: [], commands: [], providers: [], models: [], skills: [] };

for (const runtime of runtimes()) {
  test(
    `${runtime.name}: a plugin written with Effect`,
    withHost(runtime, async (host) => {
      host.handlers.set("auth.get", () => null);
      const log = `${host.directory}/log`;
      const { plugins } = await host.initialize([{ entry: `${FIXTURES}effect.ts`, options: { log } }]);
      const [loaded] = plugins;
      assert.equal(loaded.error, undefined, JSON.stringify(loaded));
      assert.equal(loaded.id, "with-effect");
      assert.equal(loaded.auth.methods[0].label, "Sign in to Acme");
      const input = { lists: structuredClone(LISTS), config: {} };
      const { output } = await host.request("hook", { name: "v2.transform", input, output: { config: {} } });
      assert.deepEqual(Object.keys(output.config.agent), ["poet"]);
      assert.equal(output.config.agent.poet.prompt, "You write poems.");
      assert.equal(output.config.command.rhyme.template, "Rhyme");
      const page = await host.request("auth.authorize", { index: 0, method: 0, inputs: {} });
      assert.equal(page.url, "https://acme.example/");
      const done = await host.request("auth.callback", { handle: page.handle, code: "the-code" });
      assert.equal(done.access, "the-code");
      assert.equal(existsSync(log), false);
      await host.request("dispose", {});
      assert.equal(readFileSync(log, "utf8"), "closed\n");
    }),
  );

  test(
    `${runtime.name}: a plugin written with Effect without the library is explained`,
    withHost(runtime, async (host) => {
      const text = "export default { id: 'x', effect() {} };";
      const { plugins } = await host.initialize([host.file("alone.js", text)]);
      assert.match(plugins[0].error.message, /needs the package effect/);
    }),
  );
}
