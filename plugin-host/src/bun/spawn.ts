/** `Bun.spawn` and `Bun.spawnSync` on Node. */
import { spawn, spawnSync, type StdioOptions } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { Readable } from "node:stream";
import { MAX_PROCESS_OUTPUT_BYTES } from "../limits.js";
import { BunFile } from "./file.js";

interface SpawnOptions {
  cmd?: string[];
  cwd?: string;
  env?: Record<string, string | undefined>;
  stdin?: unknown;
  stdout?: unknown;
  stderr?: unknown;
  stdio?: unknown[];
  timeout?: number;
  killSignal?: NodeJS.Signals | number;
  signal?: AbortSignal;
  detached?: boolean;
  onExit?: (child: unknown, code: number | null, signal: string | null, error?: Error) => void;
}

function readArguments(first: unknown, second?: SpawnOptions): { command: string[]; options: SpawnOptions } {
  const options = Array.isArray(first) ? (second ?? {}) : (first as SpawnOptions);
  const command = (Array.isArray(first) ? first : options.cmd)?.map(String);
  if (command === undefined || command.length === 0)
    throw new TypeError("cmd must be an array with at least one element");
  return { command, options };
}

/** One stream of a child. Returns the stdio entry for Node and a descriptor to close after the start. */
function stdioOf(
  value: unknown,
  fallback: "pipe" | "inherit" | "ignore",
  write: boolean,
): { entry: any; opened?: number } {
  const wanted = value === undefined ? fallback : value;
  if (wanted === null || wanted === "ignore") return { entry: "ignore" };
  if (wanted === "pipe" || wanted === "inherit" || typeof wanted === "number") return { entry: wanted };
  if (wanted instanceof BunFile) {
    const opened = openSync(wanted.name, write ? "w" : "r");
    return { entry: opened, opened };
  }
  return { entry: "pipe" };
}

async function feed(stdin: NodeJS.WritableStream, value: unknown): Promise<void> {
  if (value instanceof Response || value instanceof Blob) stdin.end(Buffer.from(await value.arrayBuffer()));
  else if (value instanceof ReadableStream) Readable.fromWeb(value as never).pipe(stdin);
  else if (typeof value === "string" || ArrayBuffer.isView(value)) stdin.end(value as Uint8Array);
  else if (value instanceof ArrayBuffer) stdin.end(Buffer.from(value));
}

export function bunSpawn(first: unknown, second?: SpawnOptions): unknown {
  const { command, options } = readArguments(first, second);
  const streams = [
    stdioOf(options.stdin ?? options.stdio?.[0], "ignore", false),
    stdioOf(options.stdout ?? options.stdio?.[1], "pipe", true),
    stdioOf(options.stderr ?? options.stdio?.[2], "inherit", true),
  ];
  const child = spawn(command[0] as string, command.slice(1), {
    cwd: options.cwd,
    env: (options.env as NodeJS.ProcessEnv | undefined) ?? process.env,
    stdio: streams.map((stream) => stream.entry as unknown) as StdioOptions,
    detached: options.detached ?? false,
    ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
    ...(options.killSignal === undefined ? {} : { killSignal: options.killSignal }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  for (const { opened } of streams) if (opened !== undefined) closeSync(opened);
  if (child.stdin !== null) {
    child.stdin.on("error", () => {});
    const { stdin } = options;
    if (stdin !== "pipe" && stdin !== undefined) void feed(child.stdin, stdin);
  }
  return new Subprocess(child, options);
}

class Subprocess {
  readonly pid: number | undefined;
  readonly stdin: unknown;
  readonly stdout: unknown;
  readonly stderr: unknown;
  readonly exited: Promise<number>;
  exitCode: number | null = null;
  signalCode: string | null = null;

  constructor(
    private readonly child: ReturnType<typeof spawn>,
    options: SpawnOptions,
  ) {
    this.pid = child.pid;
    this.stdin = child.stdin === null ? null : sink(child.stdin);
    this.stdout = child.stdout === null ? null : readable(child.stdout);
    this.stderr = child.stderr === null ? null : readable(child.stderr);
    this.exited = new Promise((resolve, reject) => {
      child.on("error", (error) => {
        options.onExit?.(this, null, null, error);
        reject(error);
      });
      child.on("exit", (code, signal) => {
        this.exitCode = code;
        this.signalCode = signal;
        options.onExit?.(this, code, signal);
        resolve(code ?? 128 + 9);
      });
    });
    this.exited.catch(() => {});
  }

  get killed(): boolean {
    return this.child.killed || this.exitCode !== null || this.signalCode !== null;
  }

  kill(signal?: NodeJS.Signals | number): void {
    this.child.kill(signal);
  }

  ref(): void {
    this.child.ref();
  }

  unref(): void {
    this.child.unref();
  }

  [Symbol.asyncDispose](): Promise<unknown> {
    this.kill();
    return this.exited.catch(() => undefined);
  }
}

function sink(stdin: NodeJS.WritableStream): unknown {
  return {
    write(data: string | Uint8Array) {
      stdin.write(data);
      return Buffer.byteLength(data);
    },
    flush: () => 0,
    end() {
      stdin.end();
      return 0;
    },
  };
}

/** A web stream with the readers that bun adds to streams. */
function readable(stream: Readable): unknown {
  const web = Readable.toWeb(stream) as unknown as ReadableStream<Uint8Array>;
  const response = () => new Response(web);
  return Object.assign(web, {
    text: () => response().text(),
    json: () => response().json() as Promise<unknown>,
    arrayBuffer: () => response().arrayBuffer(),
    bytes: async () => new Uint8Array(await response().arrayBuffer()),
    blob: () => response().blob(),
  });
}

export function bunSpawnSync(first: unknown, second?: SpawnOptions): unknown {
  const { command, options } = readArguments(first, second);
  const { stdin } = options;
  const input =
    typeof stdin === "string" || ArrayBuffer.isView(stdin) ? (stdin as string | NodeJS.ArrayBufferView) : undefined;
  const streams = [
    input === undefined ? stdioOf(stdin ?? options.stdio?.[0], "ignore", false) : { entry: "pipe" },
    stdioOf(options.stdout ?? options.stdio?.[1], "pipe", true),
    stdioOf(options.stderr ?? options.stdio?.[2], "pipe", true),
  ];
  const result = spawnSync(command[0] as string, command.slice(1), {
    cwd: options.cwd,
    env: (options.env as NodeJS.ProcessEnv | undefined) ?? process.env,
    stdio: streams.map((stream) => stream.entry as unknown) as StdioOptions,
    maxBuffer: MAX_PROCESS_OUTPUT_BYTES,
    ...(input === undefined ? {} : { input }),
    ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
  });
  for (const { opened } of streams as { opened?: number }[]) if (opened !== undefined) closeSync(opened);
  if (result.error !== undefined) {
    const { code } = result.error as NodeJS.ErrnoException;
    if (code === "ENOBUFS")
      throw new Error(`the command wrote more than ${MAX_PROCESS_OUTPUT_BYTES} bytes and was stopped`);
    if (code !== "ETIMEDOUT") throw result.error;
  }
  return {
    pid: result.pid,
    stdout: result.stdout ?? undefined,
    stderr: result.stderr ?? undefined,
    exitCode: result.status ?? 128 + 9,
    success: result.status === 0,
    signalCode: result.signal ?? undefined,
  };
}
