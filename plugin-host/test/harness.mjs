// Starts the built host the way the server does: with a connected socket as its descriptor 0.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const DIST = fileURLToPath(new URL("../dist/", import.meta.url));
export const HOST = join(DIST, "host.mjs");
export const FIXTURES = fileURLToPath(new URL("fixtures/", import.meta.url));

/** The runtimes to test: the running Node, and the others that environment variables name or the path contains. */
export function runtimes() {
  const found = [{ name: "node", command: [process.execPath] }];
  for (const name of ["NODE22", "NODE24"]) {
    const path = process.env[`CODEWRIGHT_TEST_${name}`];
    if (path !== undefined && existsSync(path)) found.push({ name: name.toLowerCase(), command: [path] });
  }
  const others = { bun: ["--no-install"], deno: ["run", "-A"] };
  for (const [name, args] of Object.entries(others)) {
    const named = process.env[`CODEWRIGHT_TEST_${name.toUpperCase()}`];
    const path = (process.env.PATH ?? "").split(":").map((directory) => join(directory, name));
    const program = [named, ...path].find((file) => file?.startsWith("/") && existsSync(file));
    if (program !== undefined) found.push({ name, command: [program, ...args] });
  }
  const only = process.env.CODEWRIGHT_TEST_ONLY;
  return only === undefined ? found : found.filter((runtime) => runtime.name === only);
}

export class Host {
  log = [];
  notifications = [];
  requests = [];
  handlers = new Map();
  #nextId = 1;
  #pending = new Map();
  #text = "";
  #watchers = [];

  static async start(runtime, options = {}) {
    const host = new Host();
    host.directory = realpathSync(mkdtempSync(join(tmpdir(), "plugin-host-")));
    const path = join(host.directory, "s");
    const server = net.createServer();
    server.listen(path);
    await once(server, "listening");
    // `net.connect` gives a socket whose descriptor the child inherits.
    const accepted = once(server, "connection");
    const childEnd = net.connect(path);
    await once(childEnd, "connect");
    [host.socket] = await accepted;
    server.close();
    const [command, ...args] = runtime.command;
    // See `args` and `variables` in `crates/plugins/src/runtime.rs`.
    const isBun = runtime.name === "bun";
    const script = options.host ?? (isBun ? join(DIST, "host") : HOST);
    const own = isBun ? { BUN_GC_TIMER_DISABLE: "1", Malloc: "1" } : {};
    host.child = spawn(command, [...args, ...(options.args ?? []), script], {
      cwd: "/",
      stdio: [childEnd, "pipe", "pipe"],
      env: { ...process.env, ...own, ...options.env },
    });
    childEnd.destroy();
    host.stdout = "";
    host.stderr = "";
    host.child.stdout.on("data", (chunk) => (host.stdout += chunk));
    host.child.stderr.on("data", (chunk) => (host.stderr += chunk));
    host.exited = once(host.child, "exit");
    host.socket.setEncoding("utf8");
    host.socket.on("error", () => {});
    host.socket.on("data", (chunk) => host.#read(chunk));
    host.socket.on("close", () => {
      for (const { reject } of host.#pending.values()) reject(new Error(`the host is gone: ${host.stderr}`));
    });
    return host;
  }

  #read(chunk) {
    this.#text += chunk;
    for (let end = this.#text.indexOf("\n"); end >= 0; end = this.#text.indexOf("\n")) {
      const line = this.#text.slice(0, end);
      this.#text = this.#text.slice(end + 1);
      this.#receive(JSON.parse(line));
    }
  }

  #receive(message) {
    if (message.method === undefined) {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if (message.error !== undefined) pending?.reject(Object.assign(new Error(message.error.message), message.error));
      else pending?.resolve(message.result);
      return;
    }
    if (message.id === undefined) {
      if (message.method === "log") this.log.push(message.params);
      else this.notifications.push(message);
    } else {
      this.requests.push(message);
      void this.#answer(message);
    }
    for (const watcher of this.#watchers) watcher();
  }

  async #answer(message) {
    try {
      const handler = this.handlers.get(message.method);
      if (handler === undefined) throw Object.assign(new Error("unknown method"), { code: -32601 });
      this.send({ jsonrpc: "2.0", id: message.id, result: await handler(message.params) });
    } catch (error) {
      this.send({
        jsonrpc: "2.0",
        id: message.id,
        error: { code: error.code ?? -32000, message: error.message, data: error.data },
      });
    }
  }

  send(message) {
    this.socket.write(`${JSON.stringify(message)}\n`);
  }

  request(method, params = {}) {
    const id = this.#nextId++;
    const answer = new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.send({ jsonrpc: "2.0", id, method, params });
    return answer;
  }

  notify(method, params = {}) {
    this.send({ jsonrpc: "2.0", method, params });
  }

  /** Waits until the condition holds. */
  async until(condition, what = "the condition", milliseconds = 10_000) {
    const end = Date.now() + milliseconds;
    while (!condition()) {
      if (Date.now() > end)
        throw new Error(`${what} did not come; log: ${JSON.stringify(this.log.slice(-5))} ${this.stderr}`);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, 50);
        this.#watchers.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
      this.#watchers = [];
    }
  }

  initialize(plugins = [], options = {}) {
    return this.request("initialize", {
      protocol: 1,
      directory: this.directory,
      worktree: this.directory,
      project: { id: "global", worktree: "/", vcs: "git", time: { created: 1, updated: 1 }, sandboxes: [] },
      serverUrl: "http://localhost:4096/",
      version: "1.18.33",
      env: {},
      tools: [],
      deadlines: { load: 10_000, hook: 2_000, tool: 5_000, dispose: 1_000 },
      ...options,
      plugins: plugins.map((plugin, index) => ({
        index,
        scope: "project",
        root: FIXTURES,
        ...(typeof plugin === "string"
          ? { spec: plugin, entry: plugin.startsWith("/") ? plugin : join(FIXTURES, plugin) }
          : plugin),
      })),
    });
  }

  /** Writes a file below the scratch directory of the test and returns its path. */
  file(name, text) {
    const path = join(this.directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  async stop() {
    this.socket.destroy();
    const timer = setTimeout(() => this.child.kill("SIGKILL"), 3000);
    await this.exited;
    clearTimeout(timer);
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Runs a test with a host and ends it afterwards. */
export function withHost(runtime, body, options) {
  return async (context) => {
    const host = await Host.start(runtime, options);
    try {
      await body(host, context);
    } finally {
      await host.stop();
    }
  };
}
