/** The log: `console.*` and what plugins write to standard output become `log` notifications. */
import { currentPlugin, pluginOfStack } from "./attribution.js";
import type { Connection } from "./connection.js";
import { messageOf, stackOf } from "./errors.js";
import { MAX_LOG_CHARS, MAX_LOG_LINES_PER_SECOND, MAX_UNSENT_LOG_BYTES } from "./limits.js";

export type LogLevel = "debug" | "info" | "warn" | "error";

let connection: Connection | undefined;

/** Lines per plugin in the current second. The key -1 is the host. */
const counts = new Map<number, number>();
let second = 0;
/** The plugins of which an error was reported. */
const reported = new Set<number>();

export function log(level: LogLevel, message: string, index = currentPlugin()?.index): void {
  if (connection === undefined) return;
  const now = Math.floor(performance.now() / 1000);
  if (now !== second) {
    reportDropped();
    second = now;
  }
  const key = index ?? -1;
  const count = (counts.get(key) ?? 0) + 1;
  counts.set(key, count);
  if (count > MAX_LOG_LINES_PER_SECOND) return;
  send(level, message, index);
}

/** Logs an error with its stack, under the plugin that it came from. */
export function logError(what: string, thrown: unknown, index?: number): void {
  const stack = stackOf(thrown);
  const plugin = index ?? pluginOfStack(stack)?.index ?? currentPlugin()?.index;
  const frame = stack
    ?.split("\n")
    .find((line) => /^\s*at /.test(line))
    ?.trim();
  const message = messageOf(thrown);
  log("error", frame === undefined ? `${what}: ${message}` : `${what}: ${message} (${frame})`, plugin);
}

/** Logs an error of a plugin, and reports the first one of each plugin to the user. */
export function reportError(what: string, thrown: unknown, index: number): void {
  logError(`${what} failed`, thrown, index);
  if (connection === undefined || reported.has(index)) return;
  reported.add(index);
  connection.notify("failed", { index, message: `${what}: ${messageOf(thrown)}`.slice(0, MAX_LOG_CHARS) });
}

function reportDropped(): void {
  for (const [key, count] of counts) {
    const dropped = count - MAX_LOG_LINES_PER_SECOND;
    if (dropped > 0) send("warn", `${dropped} log lines were dropped`, key === -1 ? undefined : key);
  }
  counts.clear();
}

function send(level: LogLevel, message: string, index: number | undefined): void {
  if (connection === undefined || connection.unsent() > MAX_UNSENT_LOG_BYTES) return;
  const text = message.length > MAX_LOG_CHARS ? `${message.slice(0, MAX_LOG_CHARS - 1)}…` : message;
  connection.notify("log", index === undefined ? { level, message: text } : { level, index, message: text });
}

/** Sends everything that plugins print to the log of the server. */
export function captureOutput(to: Connection): void {
  connection = to;
  const levels: Record<string, LogLevel> = {
    debug: "debug",
    trace: "debug",
    dir: "info",
    log: "info",
    info: "info",
    warn: "warn",
    error: "error",
  };
  for (const [method, level] of Object.entries(levels)) {
    Object.defineProperty(console, method, {
      configurable: true,
      writable: true,
      value: (...values: unknown[]) => log(level, format(values)),
    });
  }
  captureStream("stdout", "info");
  captureStream("stderr", "warn");
}

function format(values: unknown[]): string {
  const { formatWithOptions } = require("node:util") as typeof import("node:util");
  try {
    return formatWithOptions({ depth: 4, maxArrayLength: 50, maxStringLength: MAX_LOG_CHARS }, ...values);
  } catch {
    return "a value that cannot be shown";
  }
}

/** Makes a stream that plugins write to. Its modules are large, so they are loaded when it is used. */
function captureStream(name: "stdout" | "stderr", level: LogLevel): void {
  const own = Object.getOwnPropertyDescriptor(process, name);
  let captured: NodeJS.WriteStream | undefined;
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get() {
      if (captured === undefined) {
        captured = (own?.get === undefined ? own?.value : own.get.call(process)) as NodeJS.WriteStream;
        captureWrites(captured, level);
      }
      return captured;
    },
  });
}

function captureWrites(stream: NodeJS.WriteStream, level: LogLevel): void {
  const write = (chunk: unknown, encoding?: unknown, callback?: unknown): boolean => {
    const text = typeof chunk === "string" ? chunk : Buffer.from(chunk as Uint8Array).toString("utf8");
    // Only the first lines count against the limit, the rest of a flood is counted and dropped there.
    for (const line of text.split("\n", 10_000)) if (line.trim() !== "") log(level, line);
    const done = typeof encoding === "function" ? encoding : callback;
    if (typeof done === "function") queueMicrotask(() => done());
    return true;
  };
  Object.defineProperty(stream, "write", { configurable: true, writable: true, value: write });
}
