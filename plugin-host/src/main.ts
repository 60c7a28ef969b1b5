/**
 * The entry of the bundle. In the main thread it starts the host. In the loader thread of Node below 22.15 it only
 * provides the module hooks.
 */
import { isMainThread } from "node:worker_threads";

export { load, resolve } from "./loader/hooks.js";

if (isMainThread) {
  // The loader thread does not need the host, whose modules take a third of the time of its start.
  const { startHost } = require("./host.js") as typeof import("./host.js");
  startHost().catch((error: unknown) => {
    process.stderr.write(`the plugin host cannot start: ${String(error)}\n`);
    process.exitCode = 1;
  });
}
