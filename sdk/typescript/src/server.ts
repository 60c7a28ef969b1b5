/**
 * Starts a server, and ends it with this process.
 *
 * The server runs below a shell that holds a pipe to this process. If this process ends in any way, even killed, the pipe
 * closes and the shell ends the server.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Config } from "./gen/types.gen.js";

export interface ServerOptions {
  /** Default: `127.0.0.1`. */
  hostname?: string;
  /** Default: a free port. */
  port?: number;
  signal?: AbortSignal;
  /** Milliseconds until the server must be ready. Default: 15000. */
  timeout?: number;
  /** Configuration on top of the files of the user. */
  config?: Config;
  /** The program. Default: the variable `CODEWRIGHT_BIN`, or `codewright` on the `PATH`. */
  program?: string;
  /** The password of the server. Default: a random one. */
  password?: string;
  /** The directory of calls that name none. Default: that of this process. */
  directory?: string;
  /** Variables on top of those of this process. */
  env?: Record<string, string>;
  /** More arguments of `codewright serve`. */
  args?: string[];
}

export interface CodewrightServer {
  url: string;
  password: string;
  /** Ends the server and resolves when it has ended. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Milliseconds that the server has to end after a request. Running turns get three seconds. */
const GRACE = 6000;
/** Characters of the output that an error repeats. */
const OUTPUT = 4000;
/** The file descriptor 3 of the shell is the pipe to this process. */
const GUARD = `exec 3<&0
"$0" "$@" 3<&- </dev/null & server=$!
(exec <&3 3<&- >/dev/null 2>&1; while read -r _; do :; done; kill -TERM "$server") & watcher=$!
exec 3<&-
trap 'kill -TERM "$server" 2>/dev/null' TERM INT HUP
while wait "$server"; code=$?; kill -0 "$server" 2>/dev/null; do :; done
kill "$watcher" 2>/dev/null
exit "$code"`;

/** Starts a server and resolves when it is ready. */
export async function createCodewrightServer(options: ServerOptions = {}): Promise<CodewrightServer> {
  options.signal?.throwIfAborted();
  const program = options.program ?? process.env["CODEWRIGHT_BIN"] ?? "codewright";
  const password = options.password ?? randomBytes(24).toString("base64url");
  const args = ["serve", `--hostname=${options.hostname ?? "127.0.0.1"}`, `--port=${options.port ?? 0}`, ...(options.args ?? [])];
  const child = spawn("/bin/sh", ["-c", GUARD, program, ...args], {
    cwd: options.directory ?? process.cwd(),
    // A group of its own, so that a server that does not end can be killed with its children.
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
    env: {
      ...process.env,
      ...options.env,
      OPENCODE_SERVER_PASSWORD: password,
      OPENCODE_SERVER_USERNAME: "opencode",
      ...(options.config === undefined ? {} : { OPENCODE_CONFIG_CONTENT: JSON.stringify(options.config) }),
    },
  });
  const exited = new Promise<number | null>((resolve) => {
    child.once("exit", resolve);
    child.once("error", () => resolve(null));
  });
  const close = () => end(child, exited);
  const onAbort = () => void close();
  options.signal?.addEventListener("abort", onAbort, { once: true });
  void exited.then(() => options.signal?.removeEventListener("abort", onAbort));
  try {
    const url = await ready(child, exited, options, program);
    unref(child);
    return { url, password, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Waits for the line with the address. */
function ready(child: ChildProcess, exited: Promise<number | null>, options: ServerOptions, program: string): Promise<string> {
  const timeout = options.timeout ?? 15_000;
  let output = "";
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => reject(new Error(`${reason}${output === "" ? "" : `:\n${output.trim()}`}`));
    const timer = setTimeout(() => fail(`\`${program} serve\` was not ready after ${timeout} ms`), timeout);
    const take = (chunk: Buffer) => {
      output = (output + chunk.toString("utf8")).slice(-OUTPUT);
      const url = /listening on (https?:\/\/\S+)\s/.exec(output)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    };
    child.stdout?.on("data", take);
    // Keeps the pipe empty after the start, too.
    child.stderr?.on("data", (chunk: Buffer) => (output = (output + chunk.toString("utf8")).slice(-OUTPUT)));
    child.stdin?.on("error", () => {});
    child.once("error", (error) => fail(`cannot start \`${program}\`: ${error.message}`));
    options.signal?.addEventListener("abort", () => reject(options.signal?.reason as Error), { once: true });
    void exited.then((code) => {
      clearTimeout(timer);
      const missing = code === 127 ? "; install it, or name it with `program` or CODEWRIGHT_BIN" : "";
      fail(`\`${program} serve\` ended with ${code}${missing}`);
    });
  });
}

/** The server does not keep this process alive. */
function unref(child: ChildProcess): void {
  child.unref();
  for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as { unref?: () => void } | null)?.unref?.();
}

async function end(child: ChildProcess, exited: Promise<number | null>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  child.kill("SIGTERM");
  child.ref();
  const timer = setTimeout(() => {
    try {
      process.kill(-(child.pid as number), "SIGKILL");
    } catch {
      // The group has ended meanwhile.
    }
  }, GRACE);
  await exited;
  clearTimeout(timer);
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy();
}
