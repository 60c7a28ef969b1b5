/** The host: answers the requests of the server. */
import { runAs } from "./attribution.js";
import { AuthHooks } from "./auth.js";
import { Connection } from "./connection.js";
import { withDeadline } from "./deadline.js";
import { restoreEnvironment } from "./environment.js";
import { describeForProtocol } from "./errors.js";
import { EventQueues } from "./events.js";
import { CustomFetches } from "./fetch.js";
import { exitHost, installGuards } from "./guard.js";
import { runHook } from "./hooks.js";
import { createInput } from "./input.js";
import { loadPlugin, loadToolFile, type LoadSettings } from "./load.js";
import { provideModules } from "./loader/install.js";
import { captureOutput, logError } from "./log.js";
import { builtinModule } from "./modules.js";
import { allPlugins, hookFunctions } from "./plugins.js";
import { ErrorCode, ProtocolError, type Deadlines, type InitializeParams, type Loaded } from "./protocol.js";
import { ToolRunner } from "./tools.js";

const PROTOCOL = 1;

export function startHost(): void {
  const connection = new Connection(describeForProtocol, () => exitHost(0));
  captureOutput(connection);
  installGuards();
  let initialized = false;
  connection.onRequest("initialize", async (params: InitializeParams) => {
    if (params.protocol !== PROTOCOL) {
      throw new ProtocolError(ErrorCode.invalidParams, `the host speaks protocol ${PROTOCOL}, not ${params.protocol}`);
    }
    if (initialized) throw new ProtocolError(ErrorCode.invalidRequest, "the host is initialized already");
    initialized = true;
    return initialize(connection, params);
  });
  connection.onRequest("dispose", () => endSoon(connection));
  connection.open();
}

async function initialize(connection: Connection, params: InitializeParams): Promise<unknown> {
  prepareProcess(params);
  const { deadlines } = params;
  const settings: LoadSettings = { deadline: deadlines.load, input: createInput(params, connection), connection };
  serve(connection, params);
  const plugins: Loaded[] = [];
  for (const entry of params.plugins ?? []) {
    await announce(connection, entry.index);
    plugins.push(await loadPlugin(entry, settings));
  }
  for (const entry of params.tools ?? []) {
    await announce(connection, entry.index);
    plugins.push(await loadToolFile(entry, settings));
  }
  return { runtime: runtime(), plugins };
}

/** Names the plugin that is loaded next, so that the server knows which one blocks or ends the process. */
async function announce(connection: Connection, index: number): Promise<void> {
  connection.notify("loading", { index });
  const flushed = connection.flush();
  if (flushed !== undefined) await flushed;
}

function prepareProcess(params: InitializeParams): void {
  restoreEnvironment();
  Object.assign(process.env, params.env ?? {});
  try {
    process.chdir(params.directory);
  } catch (error) {
    logError("cannot change to the directory", error);
  }
  const scope = globalThis as { Bun?: unknown };
  if (scope.Bun === undefined) {
    const { createBunShim } = require("./bun/shim.js") as typeof import("./bun/shim.js");
    scope.Bun = createBunShim();
  }
  provideModules(builtinModule);
}

/** Registers everything that the server may send after `initialize`. */
function serve(connection: Connection, params: InitializeParams): void {
  const { deadlines, directory, worktree } = params;
  const tools = new ToolRunner({ connection, directory, worktree, deadline: deadlines.tool });
  const fetches = new CustomFetches(connection);
  const auth = new AuthHooks({ connection, fetches, deadline: deadlines.hook });
  const events = new EventQueues(deadlines.hook);
  connection.onRequest("hook", (hook, id) => runHook(hook, id, { connection, deadline: deadlines.hook }));
  connection.onRequest("tool.execute", (call) => tools.execute(call));
  connection.onNotification("tool.abort", ({ call }) => tools.abort(call));
  connection.onNotification("event", ({ event }) => events.push(event));
  connection.onRequest("auth.prompt", (prompt) => auth.prompt(prompt));
  connection.onRequest("auth.authorize", (request) => auth.authorize(request));
  connection.onRequest("auth.callback", (request) => auth.callback(request));
  connection.onRequest("auth.loader", (request) => auth.loader(request));
  connection.onRequest("provider.models", (request) => auth.models(request));
  connection.onRequest("fetch", (request) => fetches.fetch(request));
  connection.onNotification("fetch.credit", (credit) => fetches.credit(credit));
  connection.onNotification("fetch.cancel", (cancel) => fetches.cancel(cancel));
  connection.onRequest("dispose", async () => {
    await disposePlugins(deadlines);
    return endSoon(connection);
  });
}

async function disposePlugins(deadlines: Deadlines): Promise<void> {
  const disposals = [...allPlugins()].flatMap((plugin) =>
    hookFunctions(plugin, "dispose").map(async (dispose) => {
      try {
        const what = `dispose of ${plugin.name}`;
        await runAs(plugin, () => withDeadline(what, deadlines.dispose, () => dispose(undefined, undefined)));
      } catch (error) {
        logError("dispose failed", error, plugin.index);
      }
    }),
  );
  await Promise.all(disposals);
}

/** Ends the process after the answer has been written. */
function endSoon(connection: Connection): object {
  setTimeout(() => void connection.drained().then(() => exitHost(0)), 0);
  return {};
}

function runtime(): { name: string; version: string } {
  const { versions } = process;
  if (versions["bun"] !== undefined) return { name: "bun", version: versions["bun"] };
  if (versions["deno"] !== undefined) return { name: "deno", version: versions["deno"] };
  return { name: "node", version: versions.node };
}
