/**
 * The environment on bun. It contains variables for bun itself, and with bun 1.3 also what `bun run` adds: a part of
 * the path, and variables for scripts of packages. Neither plugins nor programs that they start shall see them.
 */

interface BunSpawn {
  spawn(...args: unknown[]): unknown;
  spawnSync(...args: unknown[]): unknown;
}

/** See `variables` in `crates/plugins/src/runtime.rs`. */
const OWN = ["BUN_GC_TIMER_DISABLE", "Malloc"];
const OF_BUN_RUN = [
  "npm_command",
  "npm_config_local_prefix",
  "npm_config_user_agent",
  "npm_execpath",
  "npm_node_execpath",
  "NODE",
];
/** The host starts in the root directory, so these have a known name. */
const PATH_OF_BUN_RUN = /^(?:\/+node_modules\/\.bin(?::|$))+/;

export const isBun = process.versions["bun"] !== undefined;

/** Removes what is not of the user. */
export function restoreEnvironment(): void {
  if (!isBun) return;
  const { env } = process;
  for (const name of OWN) delete env[name];
  if (env["npm_execpath"] === process.execPath) {
    for (const name of OF_BUN_RUN) delete env[name];
    if (env["PATH"] !== undefined) env["PATH"] = env["PATH"].replace(PATH_OF_BUN_RUN, "");
  }
  const bun = (globalThis as unknown as { Bun: BunSpawn }).Bun;
  for (const name of ["spawn", "spawnSync"] as const) {
    const original = bun[name];
    bun[name] = (...args) => original(...withEnvironment(args, Array.isArray(args[0]) ? 1 : 0));
  }
}

/** Adds the environment to the options of a started program. bun would pass the one that it was started with. */
export function withEnvironment(args: unknown[], first = 1): unknown[] {
  const isOptions = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
  const position = args.findIndex((value, index) => index >= first && isOptions(value));
  if (position < 0) return [...args.filter((value) => value !== undefined), { env: process.env }];
  const options = args[position] as { env?: unknown };
  if (options.env !== undefined) return args;
  return args.map((value, index) => (index === position ? { ...options, env: process.env } : value));
}
