/**
 * The entry of the bundle. In the main thread it starts the host. In the loader thread of Node below 22.15 it only
 * provides the module hooks.
 */
export { load, resolve } from "./loader/hooks.js";

/** Only Node has a loader thread. Elsewhere the module is not needed. */
function isMainThread(): boolean {
  return (require("node:worker_threads") as typeof import("node:worker_threads")).isMainThread;
}

if ("Bun" in globalThis || isMainThread()) {
  // The loader thread does not need the host, whose modules take a third of the time of its start.
  const { startHost } = require("./host.js") as typeof import("./host.js");
  try {
    startHost();
  } catch (error) {
    process.stderr.write(`the plugin host cannot start: ${String(error)}\n`);
    process.exitCode = 1;
  }
}
