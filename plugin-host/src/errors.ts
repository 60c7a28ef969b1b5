/** Errors of plugins as the server reports them: a message with file, line and column. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { currentPlugin, pluginOfStack } from "./attribution.js";
import { MAX_ERROR_CHARS } from "./limits.js";
import { ErrorCode, ProtocolError, type ErrorData, type FailureReport } from "./protocol.js";
import { PACKAGE_SCHEME } from "./loader/hooks.js";

/** A plugin did not answer in time. */
export class DeadlineError extends Error {
  constructor(what: string, milliseconds: number) {
    super(`${what} took longer than ${milliseconds} ms`);
    this.name = "DeadlineError";
  }
}

interface Position {
  file: string;
  line?: number;
  column?: number;
}

/** The message and the place of anything that was thrown. */
export function describeFailure(thrown: unknown): FailureReport {
  const error = firstError(thrown);
  const position = findPosition(error);
  return { message: messageOf(error), ...position };
}

/** An error object of the protocol. */
export function describeForProtocol(thrown: unknown): { code: number; message: string; data?: ErrorData } {
  if (thrown instanceof ProtocolError) {
    const base = { code: thrown.code, message: thrown.message };
    return thrown.data === undefined ? base : { ...base, data: thrown.data };
  }
  const failure = describeFailure(thrown);
  const stack = stackOf(thrown);
  const plugin = pluginOfStack(stack) ?? currentPlugin();
  const data: ErrorData = {};
  if (plugin !== undefined) data.plugin = plugin.name;
  if (failure.file !== undefined) data.file = failure.file;
  if (failure.line !== undefined) data.line = failure.line;
  if (stack !== undefined) data.stack = stack.slice(0, MAX_ERROR_CHARS);
  if (thrown instanceof DeadlineError) data.kind = "timeout";
  return { code: ErrorCode.plugin, message: failure.message, data };
}

export function messageOf(thrown: unknown): string {
  let message: string;
  try {
    if (thrown instanceof Error || (isObject(thrown) && typeof thrown["message"] === "string")) {
      const error = thrown as Error;
      message = String(error.message) || String(error.name);
    } else if (isObject(thrown)) {
      message = JSON.stringify(thrown) ?? String(thrown);
    } else {
      message = String(thrown);
    }
  } catch {
    message = "an error that cannot be shown";
  }
  return message.length > MAX_ERROR_CHARS ? `${message.slice(0, MAX_ERROR_CHARS)}…` : message;
}

export function stackOf(thrown: unknown): string | undefined {
  try {
    const stack = isObject(thrown) ? thrown["stack"] : undefined;
    return typeof stack === "string" ? stripColors(stack).replaceAll(PACKAGE_SCHEME, "file:") : undefined;
  } catch {
    return undefined;
  }
}

function firstError(thrown: unknown): unknown {
  // bun reports several syntax errors of a file as one AggregateError.
  if (thrown instanceof AggregateError && thrown.errors.length > 0) return thrown.errors[0];
  return thrown;
}

function findPosition(error: unknown): Position | undefined {
  const message = messageOf(error);
  const stack = stackOf(error) ?? "";
  return (
    bunPosition(error) ??
    importPosition(message) ??
    messagePosition(message) ??
    syntaxPosition(stack) ??
    stackPosition(stack)
  );
}

/** bun: errors of its parser and resolver have a `position`. */
function bunPosition(error: unknown): Position | undefined {
  const position = isObject(error) ? error["position"] : undefined;
  if (!isObject(position) || typeof position["file"] !== "string" || position["file"] === "") return undefined;
  return withNumbers(position["file"], position["line"], position["column"]);
}

/**
 * Node: `Cannot find package 'x' imported from /file`, bun: `… from '/file'`. The line is where the file names the
 * package.
 */
function importPosition(message: string): Position | undefined {
  const match = /^(?:Error: )?Cannot find (?:package|module) '([^']+)' (?:imported )?from '?([^'\n]+)'?$/m.exec(
    stripColors(message),
  );
  if (match === null) return undefined;
  const file = toPath(match[2] as string);
  const wanted = match[1] as string;
  try {
    const lines = readFileSync(file, "utf8").split("\n");
    const base = wanted.slice(wanted.lastIndexOf("/") + 1);
    for (const part of [`"${wanted}`, `'${wanted}`, `${base}"`, `${base}'`]) {
      const line = lines.findIndex((text) => text.includes(part));
      if (line >= 0) return { file, line: line + 1, column: (lines[line] as string).indexOf(part) + 1 };
    }
  } catch {
    // The file is gone. Its name is still useful.
  }
  return { file };
}

/** Our TypeScript transformer and deno put `file:line:column` at the end of the message. */
function messagePosition(message: string): Position | undefined {
  const match = /(?:\(| at )((?:file:\/\/)?\/[^\n]+?):(\d+):(\d+)\)?\s*$/m.exec(stripColors(message));
  return match === null ? undefined : withNumbers(match[1] as string, Number(match[2]), Number(match[3]));
}

/** Node: the stack of a syntax error starts with `file:line`, the line and a caret under it. */
function syntaxPosition(stack: string): Position | undefined {
  const match = /^((?:file:\/\/)?\/.+):(\d+)\n([^\n]*)\n( *)\^/.exec(stack);
  return match === null
    ? undefined
    : withNumbers(match[1] as string, Number(match[2]), (match[4] as string).length + 1);
}

/** The first frame outside the host and the runtime. */
function stackPosition(stack: string): Position | undefined {
  for (const line of stack.split("\n")) {
    const match = /^\s*at (?:.*\()?((?:file:\/\/)?(?:\/|[A-Za-z]:[\\/]).*?):(\d+):(\d+)\)?$/.exec(line);
    if (match === null) continue;
    const file = toPath(match[1] as string);
    if (file !== hostFile) return withNumbers(file, Number(match[2]), Number(match[3]));
  }
  return undefined;
}

function withNumbers(file: string, line: unknown, column: unknown): Position {
  const position: Position = { file: toPath(file) };
  if (typeof line === "number" && line > 0) position.line = line;
  if (typeof column === "number" && column > 0) position.column = column;
  return position;
}

function toPath(place: string): string {
  const plain = place.replace(/\?codewright=\d+$/, "");
  try {
    return plain.startsWith("file://") ? fileURLToPath(plain) : plain;
  } catch {
    return plain;
  }
}

function stripColors(text: string): string {
  return text.replace(/\u001b\[[0-9;]*m/g, "");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

const hostFile = toPath(import.meta.url);
