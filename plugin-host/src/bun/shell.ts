/**
 * `$` of bun on Node: a template becomes a script for bash.
 *
 * Interpolated values never become part of the script. They are passed as positional parameters, and the script
 * refers to them as `"${1}"`. So a value is always one word, whatever it contains, and no mistake in the parsing of
 * the template can turn a value into code.
 */
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { Writable } from "node:stream";
import { MAX_PROCESS_OUTPUT_BYTES } from "../limits.js";
import { expandBraces } from "./braces.js";

export interface ShellDefaults {
  cwd: string | undefined;
  env: Record<string, string | undefined> | undefined;
  throws: boolean;
}

interface Script {
  text: string;
  values: string[];
}

/** Builds the script of a template. */
export function buildScript(strings: readonly string[], expressions: readonly unknown[]): Script {
  const values: string[] = [];
  const quotes = new QuoteTracker();
  let text = "";
  strings.forEach((part, index) => {
    text += part;
    quotes.read(part);
    if (index >= expressions.length) return;
    if (/(^|[^<>])[<>]&?\s*$/.test(part) && isStreamLike(expressions[index])) {
      throw new TypeError(
        "redirects from and to JavaScript objects are not supported in the plugin host; use a file or .text()",
      );
    }
    text += insert(expressions[index], quotes.state, values);
  });
  return { text, values };
}

function insert(expression: unknown, state: Quotes, values: string[]): string {
  if (isRaw(expression)) return String(expression.raw);
  const words = wordsOf(expression).map((word) => {
    if (word.includes("\0")) throw new TypeError("a shell argument must not contain null bytes");
    values.push(word);
    return `\${${values.length}}`;
  });
  if (state === "none") return words.map((word) => `"${word}"`).join(" ");
  if (state === "double") return words.join(" ");
  // Leave the single quotes for the value.
  return `'"${words.join(" ")}"'`;
}

function wordsOf(expression: unknown): string[] {
  if (Array.isArray(expression)) return expression.flatMap(wordsOf);
  return [toWord(expression)];
}

function toWord(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  const name = (value as { name?: unknown }).name;
  if (value instanceof Blob && typeof name === "string") return name;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("utf8");
  const text = String(value);
  if (text.startsWith("[object "))
    throw new TypeError(`a ${text} cannot be an argument of a shell command; use .toString()`);
  return text;
}

function isRaw(value: unknown): value is { raw: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && "raw" in value;
}

function isStreamLike(value: unknown): boolean {
  if (value instanceof Blob && typeof (value as { name?: unknown }).name === "string") return false;
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type Quotes = "none" | "single" | "double";

/** Follows the quotes of a template, so that a value fits the place where it stands. */
class QuoteTracker {
  state: Quotes = "none";

  read(text: string): void {
    for (let index = 0; index < text.length; index++) {
      const char = text[index];
      if (this.state === "single") {
        if (char === "'") this.state = "none";
      } else if (char === "\\") {
        index++;
      } else if (char === '"') {
        this.state = this.state === "double" ? "none" : "double";
      } else if (char === "'" && this.state === "none") {
        this.state = "single";
      }
    }
  }
}

export class ShellOutput {
  constructor(
    readonly stdout: Buffer,
    readonly stderr: Buffer,
    readonly exitCode: number,
  ) {}

  text(encoding?: BufferEncoding): string {
    return this.stdout.toString(encoding);
  }

  json(): unknown {
    return JSON.parse(this.stdout.toString());
  }

  arrayBuffer(): ArrayBuffer {
    return new Uint8Array(this.stdout).buffer;
  }

  bytes(): Uint8Array {
    return new Uint8Array(this.stdout);
  }

  blob(): Blob {
    return new Blob([new Uint8Array(this.stdout)]);
  }
}

/** A command that failed. It has the members of its output as well. */
export class ShellError extends Error {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly exitCode: number;

  constructor(readonly output: ShellOutput) {
    super(`Failed with exit code ${output.exitCode}`);
    this.name = "ShellError";
    this.stdout = output.stdout;
    this.stderr = output.stderr;
    this.exitCode = output.exitCode;
    Object.defineProperty(this, "output", { enumerable: false });
  }

  text(encoding?: BufferEncoding): string {
    return this.output.text(encoding);
  }
  json(): unknown {
    return this.output.json();
  }
  arrayBuffer(): ArrayBuffer {
    return this.output.arrayBuffer();
  }
  bytes(): Uint8Array {
    return this.output.bytes();
  }
  blob(): Blob {
    return this.output.blob();
  }
}

/** A command. It starts when it is awaited, so that options can be set before. */
export class ShellPromise implements Promise<ShellOutput> {
  readonly [Symbol.toStringTag] = "ShellPromise";
  #settings: ShellDefaults;
  #quiet = false;
  #running: Promise<ShellOutput> | undefined;
  #stdin: WritableStream | undefined;
  #input: Writable | undefined;

  constructor(
    private readonly script: () => Script,
    defaults: ShellDefaults,
  ) {
    this.#settings = { ...defaults };
  }

  cwd(cwd: string): this {
    this.#settings.cwd = cwd;
    return this;
  }

  env(env: Record<string, string | undefined> | undefined): this {
    this.#settings.env = env;
    return this;
  }

  quiet(quiet = true): this {
    this.#quiet = quiet;
    return this;
  }

  nothrow(): this {
    return this.throws(false);
  }

  throws(shouldThrow: boolean): this {
    this.#settings.throws = shouldThrow;
    return this;
  }

  run(): this {
    void this.#start().catch(() => {});
    return this;
  }

  get stdin(): WritableStream {
    if (this.#stdin === undefined) {
      void this.#start(true).catch(() => {});
      this.#stdin = Writable.toWeb(this.#input as Writable) as WritableStream;
    }
    return this.#stdin;
  }

  async text(encoding?: BufferEncoding): Promise<string> {
    return (await this.quiet()).text(encoding);
  }

  async json(): Promise<unknown> {
    return (await this.quiet()).json();
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.quiet()).arrayBuffer();
  }

  async bytes(): Promise<Uint8Array> {
    return (await this.quiet()).bytes();
  }

  async blob(): Promise<Blob> {
    return (await this.quiet()).blob();
  }

  async *lines(): AsyncGenerator<string> {
    yield* (await this.text()).split("\n");
  }

  // biome-ignore lint/suspicious/noThenProperty: Bun's shell returns a promise-like object, too.
  then<A = ShellOutput, B = never>(
    resolved?: ((value: ShellOutput) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#start().then(resolved, rejected);
  }

  catch<B = never>(rejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<ShellOutput | B> {
    return this.#start().catch(rejected);
  }

  finally(done?: (() => void) | null): Promise<ShellOutput> {
    return this.#start().finally(done);
  }

  #start(withInput = false): Promise<ShellOutput> {
    this.#running ??= this.#execute(withInput);
    return this.#running;
  }

  #execute(withInput: boolean): Promise<ShellOutput> {
    return new Promise((resolve, reject) => {
      const { text, values } = this.script();
      const child = spawn(findShell(), ["-c", text, "sh", ...values], {
        cwd: this.#settings.cwd ?? process.cwd(),
        env: this.#settings.env ?? process.env,
        stdio: [withInput ? "pipe" : "ignore", "pipe", "pipe"],
      });
      if (child.stdin !== null) {
        child.stdin.on("error", () => {});
        this.#input = child.stdin;
      }
      let size = 0;
      let tooLarge = false;
      const collect = (stream: NodeJS.ReadableStream | null, echo: NodeJS.WriteStream): Buffer[] => {
        const chunks: Buffer[] = [];
        stream?.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_PROCESS_OUTPUT_BYTES) {
            tooLarge = true;
            child.kill("SIGKILL");
            child.stdout?.destroy();
            child.stderr?.destroy();
            return;
          }
          chunks.push(chunk);
          if (!this.#quiet) echo.write(chunk);
        });
        return chunks;
      };
      const stdout = collect(child.stdout, process.stdout);
      const stderr = collect(child.stderr, process.stderr);
      child.on("error", reject);
      child.on("close", (code, signal) => {
        if (tooLarge)
          return reject(new Error(`the command wrote more than ${MAX_PROCESS_OUTPUT_BYTES} bytes and was stopped`));
        const exitCode = code ?? 128 + (signal === "SIGTERM" ? 15 : 9);
        const output = new ShellOutput(Buffer.concat(stdout), Buffer.concat(stderr), exitCode);
        if (exitCode !== 0 && this.#settings.throws) reject(new ShellError(output));
        else resolve(output);
      });
    });
  }
}

export interface Shell {
  (strings: TemplateStringsArray, ...expressions: unknown[]): ShellPromise;
  braces(pattern: string): string[];
  escape(input: unknown): string;
  env(env?: Record<string, string | undefined>): Shell;
  cwd(cwd?: string): Shell;
  nothrow(): Shell;
  throws(shouldThrow: boolean): Shell;
}

/** A `$` with defaults of its own. */
export function createShell(initial?: Partial<ShellDefaults>): Shell {
  const defaults: ShellDefaults = { cwd: undefined, env: undefined, throws: true, ...initial };
  const shell = ((strings: TemplateStringsArray, ...expressions: unknown[]) =>
    new ShellPromise(() => buildScript(strings.raw, expressions), defaults)) as Shell;
  shell.braces = expandBraces;
  shell.escape = escapeArgument;
  shell.env = (env) => {
    defaults.env = env;
    return shell;
  };
  shell.cwd = (cwd) => {
    defaults.cwd = cwd;
    return shell;
  };
  shell.nothrow = () => shell.throws(false);
  shell.throws = (shouldThrow) => {
    defaults.throws = shouldThrow;
    return shell;
  };
  return Object.assign(shell, { Shell: createShell, ShellError, ShellPromise });
}

let shellPath: string | undefined;

function findShell(): string {
  shellPath ??= ["bash", "sh"].flatMap((name) => findInPath(name) ?? [])[0];
  if (shellPath === undefined) throw new Error("$ needs bash or sh, and neither is installed");
  return shellPath;
}

/** The first executable file of that name in `PATH`. */
export function findInPath(name: string, path = process.env["PATH"] ?? ""): string | undefined {
  for (const directory of path.split(delimiter)) {
    if (directory === "") continue;
    const file = join(directory, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not here.
    }
  }
  return undefined;
}

/** Quotes an argument if it contains a character that a shell treats specially. */
export function escapeArgument(input: unknown): string {
  const text = String(input);
  if (!/[\s"'$`*~\\{};=|&<>#()[\]?]/.test(text)) return text;
  return `"${text.replace(/[\\"$`]/g, "\\$&")}"`;
}
