/** Keeps mistakes of one plugin away from the process, the socket and the other plugins. */
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import type { Readable } from "node:stream";
import { currentPlugin, pluginOfStack } from "./attribution.js";
import { isBun, withEnvironment } from "./environment.js";
import { log, logError } from "./log.js";

type Exits = Record<string, (code?: number) => never>;

const EXITS = ["exit", "reallyExit", "abort"];
const originals = new Map(EXITS.map((name) => [name, (process as unknown as Exits)[name]]));

/** Ends the host. `process.exit` is not available to plugins. */
export function exitHost(code: number): never {
  // `exit` calls `reallyExit`.
  for (const [name, value] of originals)
    Object.defineProperty(process, name, { configurable: true, writable: true, value });
  return process.exit(code);
}

export function installGuards(): void {
  process.on("unhandledRejection", (reason) => logError("unhandled rejection", reason));
  process.on("uncaughtException", (error) => logError("uncaught exception", error));
  refuseExit();
  hideSocket();
}

/** `process.exit` in a plugin would end all plugins, so it throws instead. */
function refuseExit(): void {
  const refuse = (code?: unknown): never => {
    const error = new Error(
      `a plugin called process.exit(${code === undefined ? "" : String(code)}); the plugin host goes on`,
    );
    const plugin = currentPlugin() ?? pluginOfStack(error.stack);
    log("error", error.message, plugin?.index);
    throw error;
  };
  for (const name of EXITS) {
    Object.defineProperty(process, name, { configurable: true, writable: true, value: refuse });
  }
}

/**
 * Descriptor 0 is the socket to the server. Neither a plugin nor a child process may read from it:
 * `process.stdin` is empty, and children that inherit standard input get none.
 */
function hideSocket(): void {
  let stdin: Readable | undefined;
  Object.defineProperty(process, "stdin", {
    configurable: true,
    get() {
      const { Readable } = require("node:stream") as typeof import("node:stream");
      stdin ??= Object.assign(Readable.from([]), { fd: -1, isTTY: false });
      return stdin;
    },
  });
  const withoutSocket = (options: unknown): unknown => {
    if (typeof options !== "object" || options === null) return options;
    const { stdio } = options as { stdio?: unknown };
    if (stdio === "inherit") return { ...options, stdio: ["ignore", "inherit", "inherit"] };
    if (!Array.isArray(stdio)) return options;
    return {
      ...options,
      stdio: stdio.map((item: unknown) => (isDescriptor0(item, stdio.indexOf(item)) ? "ignore" : item)),
    };
  };
  const isDescriptor0 = (item: unknown, position: number): boolean =>
    item === 0 || (item === "inherit" && position === 0) || (item === stdin && item !== undefined);
  const module = childProcess as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const name of ["spawn", "spawnSync", "execFileSync", "execSync", "fork"]) {
    const original = module[name] as (...args: unknown[]) => unknown;
    const guarded = function (this: unknown, ...given: unknown[]): unknown {
      let args = name === "fork" ? withForkStdio(given) : given;
      if (isBun && name.endsWith("Sync")) args = withEnvironment(args);
      return original.apply(
        this,
        args.map((arg) => (Array.isArray(arg) ? arg : withoutSocket(arg))),
      );
    };
    module[name] = Object.assign(guarded, original);
  }
  try {
    syncBuiltinESMExports();
  } catch {
    // bun and deno have no separate copy of the names to renew.
  }
}

/** `fork` inherits descriptor 0 unless it is told otherwise. */
function withForkStdio(args: unknown[]): unknown[] {
  const [module, second, third] = args;
  const values = Array.isArray(second) ? second : [];
  const options = (Array.isArray(second) ? third : second) as Record<string, unknown> | undefined;
  if (options?.["stdio"] !== undefined || options?.["silent"] === true) return args;
  return [module, values, { ...options, stdio: ["ignore", "inherit", "inherit", "ipc"] }];
}
