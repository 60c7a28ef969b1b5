// What the acts work on: a project with a home of its own, the scripted model, servers, browsers and pages.
import { spawn, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { dirname, join } from "node:path";

/** The deadline of what a page has to show. */
export const SHOW = Number(process.env.SHOW_MS ?? 20_000);
const START = 30_000;
export const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Returns the values of the command line. */
export function options(argv) {
  const values = { only: "", bench: false, pictures: false, firefox: false };
  const rest = [...argv];
  while (rest.length > 0) {
    const name = rest.shift().replace(/^--/, "");
    values[name] = typeof values[name] === "boolean" ? true : rest.shift();
  }
  return values;
}

async function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** A process that ends with the stage. */
function start(command, args, settings, ready) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...settings });
  let output = "";
  const isReady = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${command} does not start: ${output}`)), START);
    const look = (data) => {
      output += data;
      const found = ready.exec(output);
      if (!found) return;
      clearTimeout(timer);
      resolve(found);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`${command} ended with ${code}: ${output}`)));
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const stop = async (signal = "SIGTERM") => {
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), 8_000);
    await ended;
    clearTimeout(timer);
  };
  return { isReady, stop, output: () => output };
}

export class Stage {
  #running = new Set();

  constructor(settings) {
    this.settings = settings;
    this.root = mkdtempSync(join(tmpdir(), "codewright-web-"));
    this.directory = join(this.root, "repo");
    mkdirSync(this.directory);
  }

  /** Writes a file of the project. */
  write(path, content) {
    const target = join(this.directory, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
    return target;
  }

  remove(path) {
    rmSync(join(this.directory, path), { force: true });
  }

  read(path) {
    return readFileSync(join(this.directory, path), "utf8");
  }

  git(...args) {
    return execFileSync("git", args, { cwd: this.directory, env: this.environment(), encoding: "utf8" });
  }

  environment(extra = {}) {
    const home = join(this.root, "home");
    mkdirSync(home, { recursive: true });
    return {
      PATH: process.env.PATH,
      HOME: home,
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_AUTHOR_NAME: "Tester",
      GIT_AUTHOR_EMAIL: "tester@localhost",
      GIT_COMMITTER_NAME: "Tester",
      GIT_COMMITTER_EMAIL: "tester@localhost",
      CODEWRIGHT_TRUST: "all",
      CODEWRIGHT_SANDBOX_OUTER: "1",
      TERM: "xterm-256color",
      SHELL: "/bin/bash",
      ...extra,
    };
  }

  /** Starts the scripted model, and configures the program for it. */
  async model(script, config = {}) {
    const port = await freePort();
    const path = join(this.root, "script.json");
    writeFileSync(path, JSON.stringify(script));
    const child = start(
      this.settings.xtask,
      ["scripted", "--port", String(port), "--script", path],
      { env: this.environment() },
      /base URL/,
    );
    this.#running.add(child);
    await child.isReady;
    const provider = {
      npm: "@ai-sdk/openai-compatible",
      name: "Mock",
      options: { baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "sk-mock" },
      models: {
        "plain-model": {
          name: "Plain Model",
          limit: { context: 200_000, output: 32_000 },
          cost: { input: 3, output: 15 },
        },
        "other-model": {
          name: "Other Model",
          limit: { context: 100_000, output: 32_000 },
          variants: { careful: {}, quick: {} },
        },
      },
    };
    const folder = join(this.root, "home/.config/opencode");
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      join(folder, "opencode.json"),
      JSON.stringify({
        model: "mock/plain-model",
        permission: { bash: "ask" },
        provider: { mock: provider },
        ...config,
      }),
    );
  }

  /** Returns the configuration of the user. */
  config() {
    return readFileSync(join(this.root, "home/.config/opencode/opencode.json"), "utf8");
  }

  /** Starts a server for tools that wants a sign-in, and returns its address. Without Python there is none. */
  async toolServer() {
    const path = fileURLToPath(new URL("../../crates/testkit/servers/mcp.py", import.meta.url));
    const child = start(
      "python3",
      [path, "http", "auth=1"],
      { env: this.environment({ PYTHONUNBUFFERED: "1" }) },
      /^(\d+)\n/,
    );
    try {
      const port = (await child.isReady)[1];
      this.#running.add(child);
      return `http://127.0.0.1:${port}`;
    } catch {
      return null;
    }
  }

  /** Stores a session as the program stores imported ones. */
  import(session) {
    const file = join(this.root, "session.json");
    writeFileSync(file, JSON.stringify(session));
    execFileSync(this.settings.program, ["import", file], {
      cwd: this.directory,
      env: this.environment(),
      stdio: ["ignore", "pipe", "inherit"],
    });
    rmSync(file);
  }

  /** Starts a server. */
  async serve({ port = 0, password = "", cors = [], env = {} } = {}) {
    const chosen = port || (await freePort());
    const args = ["serve", "--port", String(chosen), ...cors.flatMap((origin) => ["--cors", origin])];
    const variables = this.environment({ ...(password ? { OPENCODE_SERVER_PASSWORD: password } : {}), ...env });
    const child = start(this.settings.program, args, { cwd: this.directory, env: variables }, /listening on (\S+)/);
    this.#running.add(child);
    const url = (await child.isReady)[1];
    const headers = password
      ? { Authorization: `Basic ${Buffer.from(`opencode:${password}`).toString("base64")}` }
      : {};
    return {
      url,
      port: chosen,
      password,
      stop: async (signal) => {
        this.#running.delete(child);
        await child.stop(signal);
      },
      call: async (method, path, body) => {
        const response = await fetch(url + path, {
          method,
          headers: { ...headers, ...(body ? { "Content-Type": "application/json" } : {}) },
          body: body ? JSON.stringify(body) : undefined,
        });
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
        return response.status === 204 ? null : response.json();
      },
    };
  }

  async end() {
    await Promise.all([...this.#running].map((child) => child.stop()));
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** Starts a browser. */
export async function launch(settings, name = "chromium") {
  const playwright = createRequire(import.meta.url)(settings.playwright);
  if (name === "firefox")
    return playwright.firefox.launch({
      channel: "moz-firefox",
      executablePath: settings["firefox-path"],
      headless: true,
    });
  return playwright.chromium.launch({ executablePath: settings.chromium, args: FLAGS });
}

/** Enters a user name and a password on the page for the sign-in. */
export async function enter(page, { username, password }) {
  await page.getByLabel("User name").fill(username);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** Opens a page that records what must not happen: errors, refused policies, and requests to other origins. */
export async function openPage(
  browser,
  url,
  { width = 1280, height = 800, dark = false, allowed = [], signIn = null, ...context } = {},
) {
  const isFirefox = browser.browserType().name() === "firefox";
  const emulated = isFirefox ? {} : { colorScheme: dark ? "dark" : "light", serviceWorkers: "block" };
  const opened = await browser.newContext({ viewport: { width, height }, ...emulated, ...context });
  const page = await opened.newPage();
  page.setDefaultTimeout(SHOW);
  page.troubles = [];
  page.expected = [];
  const trouble = (text) => {
    if (!page.expected.some((pattern) => pattern.test(text))) page.troubles.push(text);
  };
  page.on("pageerror", (error) => trouble(`error: ${error.message} ${(error.stack ?? "").split("\n")[1] ?? ""}`));
  // Firefox reports what a library writes as an error of the page, so only Chromium's console counts.
  if (!isFirefox)
    page.on(
      "console",
      (message) => message.type() === "error" && trouble(`console: ${message.text()} ${message.location().url}`),
    );
  const origins = url.startsWith("about:") ? null : [new URL(url).origin, ...allowed];
  page.on("request", (request) => {
    const target = request.url();
    if (origins && !/^(data|blob|about):/.test(target) && !origins.includes(new URL(target).origin))
      page.troubles.push(`requested ${target}`);
  });
  const unsigned = /401/;
  if (signIn) page.expected.push(unsigned);
  await page.goto(url);
  // The app draws nothing until it has its lists, and handles no keys before.
  await page.waitForFunction(() => document.getElementById("app")?.hasChildNodes() ?? true);
  if (signIn) {
    await enter(page, signIn);
    await page.locator("#main").waitFor();
    page.expected = page.expected.filter((pattern) => pattern !== unsigned);
  }
  return page;
}
