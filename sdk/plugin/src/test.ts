/**
 * Runs plugins in the real plugin host of Codewright, without the program.
 *
 *     const host = await startHost({ plugins: ["./src/index.ts"] });
 *     const output = await host.hook("shell.env", { cwd: "/" }, { env: {} });
 *     await host.close();
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export interface HostOptions {
  /** Files of plugins, which export plugins as they do for the program. Relative paths start at `process.cwd()`. */
  plugins: (string | { file: string; options?: Record<string, unknown> })[];
  /** The directory of the project. Default: a temporary directory. */
  directory?: string;
  /** Variables on top of those of this process. */
  env?: Record<string, string>;
  /** Replies to requests of `client` and `fetch`. Default: 404. */
  api?: (request: ApiRequest) => ApiReply | Promise<ApiReply>;
  /** Replies to `ask` of tools: an error refuses. Default: granted. */
  ask?: (request: { permission: string; patterns: string[]; always: string[]; metadata: unknown }) => unknown;
  /** Milliseconds for each step. Default: 10000. */
  timeout?: number;
}

export interface ApiRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  /** The body, parsed if it is JSON. */
  body: unknown;
}

export interface ApiReply {
  status?: number;
  body?: unknown;
}

/** What the host knows of a loaded plugin. */
export interface LoadedPlugin {
  index: number;
  error?: unknown;
  hooks: string[];
  tools: { name: string; description: string; parameters: { [key: string]: unknown } }[];
  [key: string]: unknown;
}

export interface HookFailure {
  index: number;
  message: string;
  thrown?: boolean;
  timeout?: boolean;
}

type Message = { id?: number; method?: string; params?: any; result?: any; error?: { message: string } };
type Pending = { resolve: (value: any) => void; reject: (error: Error) => void };

const HOST = fileURLToPath(new URL("../host/host.mjs", import.meta.url));
/** Characters of one message. */
const MAX_MESSAGE = 64 * 1024 * 1024;
const MAX_LOG = 10_000;

/** A running plugin host. */
export class PluginHost {
  readonly log: { level?: string; message: string; index?: number }[] = [];
  plugins: LoadedPlugin[] = [];
  #pending = new Map<number, Pending>();
  #text = "";
  #nextId = 1;
  #output = "";

  constructor(
    readonly directory: string,
    private readonly socket: net.Socket,
    private readonly child: ChildProcess,
    private readonly options: HostOptions,
    private readonly temporary: string,
  ) {
    socket.setEncoding("utf8");
    socket.on("error", () => {});
    socket.on("data", (chunk: string) => this.#read(chunk));
    socket.on("close", () => {
      for (const { reject } of this.#pending.values()) reject(new Error(`the plugin host has ended: ${this.#output}`));
      this.#pending.clear();
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => (this.#output = (this.#output + chunk.toString()).slice(-8000)));
    }
  }

  /** What the plugins have printed, the last 8000 characters. */
  get output(): string {
    return this.#output;
  }

  /** Calls a hook of all plugins and returns the changed output. Throws if a plugin fails. */
  async hook<Output>(name: string, input: unknown, output: Output): Promise<Output> {
    const result = await this.tryHook(name, input, output);
    const [failure] = result.failures;
    if (failure !== undefined) throw new Error(failure.message);
    return result.output;
  }

  /** Calls a hook of all plugins and returns the changed output and the failures. */
  tryHook<Output>(name: string, input: unknown, output: Output): Promise<{ output: Output; failures: HookFailure[] }> {
    return this.request("hook", { name, input, output });
  }

  /** Returns the configuration after the hook `config` of all plugins. */
  async config(config: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const { input, failures } = await this.request<{ input: Record<string, unknown>; failures: HookFailure[] }>("hook", { name: "config", input: config, output: {} });
    if (failures[0] !== undefined) throw new Error(failures[0].message);
    return input;
  }

  /** Sends an event to the plugins and waits until they have received it. */
  async event(type: string, properties: unknown = {}): Promise<void> {
    this.#send({ method: "event", params: { event: { id: "evt_1", type, properties } } });
    // Requests are answered in order, so the event has arrived after this one.
    await this.tryHook("shell.env", { cwd: this.directory }, { env: {} });
  }

  /** Calls a tool as the model would. */
  tool(name: string, args: unknown, context: { sessionID?: string; agent?: string } = {}): Promise<{ title?: string; output: string; metadata?: unknown }> {
    const owner = this.plugins.find((plugin) => plugin.tools.some((tool) => tool.name === name));
    if (owner === undefined) throw new Error(`there is no tool \`${name}\``);
    const known = { sessionID: "ses_1", messageID: "msg_1", callID: "call_1", agent: "build", ...context };
    return this.request("tool.execute", { index: owner.index, tool: name, args, call: `call_${this.#nextId}`, context: known });
  }

  /** Ends the plugins, calling `dispose`, and the host. */
  async close(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const exited = once(this.child, "exit");
      const timer = setTimeout(() => this.child.kill("SIGKILL"), 5000);
      await this.request("dispose").catch(() => {});
      this.socket.destroy();
      await exited;
      clearTimeout(timer);
    }
    rmSync(this.temporary, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Sends a request of the protocol between the program and the host. */
  request<Result>(method: string, params: unknown = {}): Promise<Result> {
    const id = this.#nextId++;
    const timeout = this.options.timeout ?? 10_000;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(new Error(`the plugin host did not answer \`${method}\` in ${timeout} ms`));
      }, timeout);
      const settle = (end: (value: any) => void) => (value: any) => {
        clearTimeout(timer);
        end(value);
      };
      this.#pending.set(id, { resolve: settle(resolve), reject: settle(reject) });
      this.#send({ id, method, params });
    });
  }

  #send(message: Message): void {
    this.socket.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  #read(chunk: string): void {
    this.#text += chunk;
    if (this.#text.length > MAX_MESSAGE) this.socket.destroy();
    for (let end = this.#text.indexOf("\n"); end >= 0; end = this.#text.indexOf("\n")) {
      const message = JSON.parse(this.#text.slice(0, end)) as Message;
      this.#text = this.#text.slice(end + 1);
      this.#receive(message);
    }
  }

  #receive({ id, method, params, result, error }: Message): void {
    if (method === undefined) {
      const pending = this.#pending.get(id as number);
      this.#pending.delete(id as number);
      if (error === undefined) pending?.resolve(result);
      else pending?.reject(new Error(error.message));
    } else if (id !== undefined) {
      void this.#answer(id, method, params);
    } else if (method === "log" && this.log.length < MAX_LOG) {
      this.log.push(params);
    }
  }

  async #answer(id: number, method: string, params: any): Promise<void> {
    try {
      this.#send({ id, result: await this.#reply(method, params) });
    } catch (error) {
      const data = method === "tool.ask" ? { kind: "rejected" } : undefined;
      this.#send({ id, error: { code: -32000, message: error instanceof Error ? error.message : String(error), data } as Message["error"] });
    }
  }

  async #reply(method: string, params: any): Promise<unknown> {
    if (method === "tool.ask") return (await this.options.ask?.(params)) ?? {};
    if (method !== "http") throw new Error(`the test helper does not answer \`${method}\``);
    const text = Buffer.from(params.body ?? "", "base64").toString("utf8");
    const headers = Object.fromEntries(params.headers) as Record<string, string>;
    const isJson = headers["content-type"]?.includes("json") ?? false;
    const request = { method: params.method, path: params.path, headers, body: isJson && text !== "" ? JSON.parse(text) : text };
    const missing = { status: 404, body: { name: "NotFoundError", data: { message: "the test has no `api`" } } };
    const { status = 200, body = {} } = (await this.options.api?.(request)) ?? missing;
    setTimeout(() => {
      this.#send({ method: "http.data", params: { id: params.id, data: Buffer.from(JSON.stringify(body)).toString("base64") } });
      this.#send({ method: "http.end", params: { id: params.id } });
    });
    return { status, headers: [["content-type", "application/json"]] };
  }
}

/** Starts the host with plugins. Throws if one cannot be loaded. */
export async function startHost(options: HostOptions): Promise<PluginHost> {
  const temporary = realpathSync(mkdtempSync(join(tmpdir(), "codewright-plugin-")));
  const directory = options.directory ?? temporary;
  const path = join(temporary, "s");
  const server = net.createServer().listen(path);
  await once(server, "listening");
  const accepted = once(server, "connection");
  // The child inherits this end as its descriptor 0.
  const childEnd = net.connect(path);
  await once(childEnd, "connect");
  const [socket] = (await accepted) as [net.Socket];
  server.close();
  const child = spawn(process.execPath, [HOST], {
    cwd: "/",
    stdio: [childEnd, "pipe", "pipe"],
    env: { ...process.env, ...options.env },
  });
  childEnd.destroy();
  const host = new PluginHost(directory, socket, child, options, temporary);
  const entries = options.plugins.map((plugin) => (typeof plugin === "string" ? { file: plugin } : plugin));
  try {
    const { plugins } = await host.request<{ plugins: LoadedPlugin[] }>("initialize", {
      protocol: 1,
      directory,
      worktree: directory,
      project: { id: "global", worktree: "/", vcs: "git", time: { created: 1, updated: 1 }, sandboxes: [] },
      serverUrl: "http://localhost:4096/",
      version: "1.18.33",
      env: {},
      tools: [],
      deadlines: { load: 10_000, hook: 5_000, tool: 30_000, dispose: 2_000 },
      plugins: entries.map(({ file, options: given }, index) => ({
        index, scope: "user", root: directory, spec: file, entry: resolve(file), ...(given === undefined ? {} : { options: given }),
      })),
    });
    const broken = plugins.find((plugin) => plugin.error !== undefined);
    if (broken !== undefined) throw new Error(`\`${entries[broken.index]?.file}\` cannot be loaded: ${JSON.stringify(broken.error)}`);
    host.plugins = plugins.map((plugin) => ({ ...plugin, hooks: plugin.hooks ?? [], tools: plugin.tools ?? [] }));
    return host;
  } catch (error) {
    await host.close();
    throw error;
  }
}
