/** The shell `$` that plugins receive: bun's own, or the same for Node. */

export type ShellExpression = { toString(): string } | ShellExpression[] | string | { raw: string } | ReadableStream;
export type ShellFunction = (input: Uint8Array) => Uint8Array;

export interface BunShell {
  /** Runs a command; values are quoted. */
  (strings: TemplateStringsArray, ...expressions: ShellExpression[]): BunShellPromise;
  /** Expands braces: `a{1,2}` becomes `a1` and `a2`. */
  braces(pattern: string): string[];
  /** Quotes a text for a command. */
  escape(input: string): string;
  /** Sets the environment of later commands. */
  env(newEnv?: Record<string, string | undefined>): BunShell;
  /** Sets the directory of later commands. */
  cwd(newCwd?: string): BunShell;
  /** Later commands do not throw if they fail. */
  nothrow(): BunShell;
  throws(shouldThrow: boolean): BunShell;
}

export interface BunShellPromise extends Promise<BunShellOutput> {
  readonly stdin: WritableStream;
  cwd(newCwd: string): this;
  env(newEnv: Record<string, string> | undefined): this;
  /** Does not print what the command prints. */
  quiet(): this;
  lines(): AsyncIterable<string>;
  text(encoding?: BufferEncoding): Promise<string>;
  json(): Promise<any>;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  nothrow(): this;
  throws(shouldThrow: boolean): this;
}

export interface BunShellOutput {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly exitCode: number;
  text(encoding?: BufferEncoding): string;
  json(): any;
  arrayBuffer(): ArrayBuffer;
  bytes(): Uint8Array;
  blob(): Blob;
}

export type BunShellError = Error & BunShellOutput;
