// The smoke set in WebKit. Its driver speaks only the WebDriver protocol, so the acts are in the words of that
// protocol.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { equal, ok } from "./checks.mjs";
import { seed } from "./seed.mjs";
import { script } from "./script.mjs";
import { Stage, SHOW } from "./stage.mjs";

const START_MS = 20_000;
const CALL_MS = 60_000;
const POLL_MS = 100;
/** The key of elements in the protocol. */
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";
const KEYS = { Enter: "\uE007", Escape: "\uE00C", Control: "\uE009" };

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
      .on("error", reject)
      .listen(0, "127.0.0.1", () => {
        const { port } = server.address();
        server.close(() => resolve(port));
      });
  });
}

/** A window of WebKit. */
class Window {
  #base;
  #processes;
  #session = "";

  constructor(base, processes) {
    this.#base = base;
    this.#processes = processes;
  }

  static async open(settings) {
    const port = await freePort();
    const processes = [];
    const env = {
      PATH: process.env.PATH,
      HOME: settings.home,
      WEBKIT_DISABLE_COMPOSITING_MODE: "1",
      GSETTINGS_BACKEND: "memory",
      NO_AT_BRIDGE: "1",
      WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1",
    };
    if (settings.xvfb) {
      const display = `:${90 + (port % 900)}`;
      processes.push(
        spawn(settings.xvfb, [display, "-screen", "0", "1400x1000x24", "-nolisten", "tcp"], { stdio: "ignore", env }),
      );
      env.DISPLAY = display;
      env.GDK_BACKEND = "x11";
    }
    processes.push(spawn(settings.webkit, [`--port=${port}`, "--host=127.0.0.1"], { stdio: "ignore", env }));
    const window = new Window(`http://127.0.0.1:${port}`, processes);
    for (const deadline = Date.now() + START_MS; ; ) {
      try {
        await window.#begin(settings.browser);
        return window;
      } catch (error) {
        if (Date.now() > deadline) {
          await window.close();
          throw error;
        }
        await pause(300);
      }
    }
  }

  async #begin(browser) {
    const capabilities = { alwaysMatch: { "webkitgtk:browserOptions": { binary: browser, args: ["--automation"] } } };
    const { sessionId } = await this.#send("POST", "/session", { capabilities });
    this.#session = `/session/${sessionId}`;
    await this.#send("POST", `${this.#session}/timeouts`, { script: CALL_MS, pageLoad: CALL_MS });
    await this.#send("POST", `${this.#session}/window/rect`, { width: 1280, height: 900 });
  }

  async #send(method, path, body) {
    const response = await fetch(this.#base + path, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(CALL_MS),
    });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${path}: ${value?.message ?? response.status}`);
    return value;
  }

  go(url) {
    return this.#send("POST", `${this.#session}/url`, { url });
  }

  reload() {
    return this.#send("POST", `${this.#session}/refresh`, {});
  }

  /** Runs a function in the page and returns its value. */
  run(work, ...args) {
    return this.#send("POST", `${this.#session}/execute/sync`, { script: `return (${work})(...arguments)`, args });
  }

  /** Waits until a function of the page returns something. */
  async until(what, work, ...args) {
    for (const deadline = Date.now() + SHOW; ; await pause(POLL_MS)) {
      const value = await this.run(work, ...args).catch(() => null);
      if (value) return value;
      if (Date.now() > deadline) throw new Error(`not seen: ${what}`);
    }
  }

  shows(text) {
    return this.until(text, (wanted) => document.body.innerText.includes(wanted), text);
  }

  /** Returns an element once it is there. */
  async element(selector) {
    await this.until(selector, (wanted) => document.querySelector(wanted) !== null, selector);
    return (await this.#send("POST", `${this.#session}/element`, { using: "css selector", value: selector }))[ELEMENT];
  }

  async click(selector) {
    await this.#send("POST", `${this.#session}/element/${await this.element(selector)}/click`, {});
  }

  /** Presses the button with a text or a label. */
  async press(name) {
    await this.until(
      `button ${name}`,
      (wanted) => {
        const found = [...document.querySelectorAll("button")].find(
          (one) => !one.disabled && (one.getAttribute("aria-label") === wanted || one.textContent.trim() === wanted),
        );
        found?.click();
        return found !== undefined;
      },
      name,
    );
  }

  /** Types into a field after its text was removed. */
  async type(selector, text) {
    const element = await this.element(selector);
    await this.#send("POST", `${this.#session}/element/${element}/clear`, {});
    await this.#send("POST", `${this.#session}/element/${element}/value`, { text });
  }

  async keys(...names) {
    const values = names.map((name) => KEYS[name] ?? name);
    const actions = [
      ...values.map((value) => ({ type: "keyDown", value })),
      ...values.reverse().map((value) => ({ type: "keyUp", value })),
    ];
    await this.#send("POST", `${this.#session}/actions`, { actions: [{ type: "key", id: "keyboard", actions }] });
  }

  async close() {
    if (this.#session) await this.#send("DELETE", this.#session).catch(() => {});
    for (const child of this.#processes.reverse()) child.kill("SIGTERM");
  }
}

const PASSWORD = "a password";

const table = [
  [
    "a server with a password shows the page for the sign-in",
    async ({ window, server }) => {
      await window.go(server.url);
      await window.shows("Sign in to");
      await window.type('input[name="password"]', "wrong");
      await window.press("Sign in");
      await window.shows("The user name or the password is wrong");
    },
  ],
  [
    "the right password opens home, also after a reload",
    async ({ window }) => {
      await window.type('input[name="password"]', PASSWORD);
      await window.press("Sign in");
      await window.shows("What should we work on?");
      await window.reload();
      await window.shows("What should we work on?");
    },
  ],
  [
    "a prompt opens a session and is answered",
    async ({ window }) => {
      await window.type("#prompt", "say hello");
      await window.keys("Enter");
      await window.shows("Hello from the model");
      ok("address", await window.run(() => /#\/session\/ses_/.test(location.href)));
    },
  ],
  [
    "an answer has tools, a diff, a table and code",
    async ({ window }) => {
      await window.run(() => {
        location.hash = "#/new";
      });
      await window.until("an empty session", () => document.querySelector(".new-session #prompt") !== null);
      await window.type("#prompt", "FIXIT please");
      await window.keys("Enter");
      await window.shows("Read more in");
      for (const selector of [".markdown table", ".code pre", ".tool-row", ".answer-foot"])
        await window.element(selector);
    },
  ],
  [
    "the search finds and marks a text",
    async ({ window }) => {
      await window.press("Search this session");
      await window.type("#session-search", "Only the first line");
      await window.shows("1 of 1");
      await window.keys("Escape");
      await window.until("the end of the search", () => document.querySelector(".session-search") === null);
    },
  ],
  [
    "every panel opens",
    async ({ window }) => {
      const id = await window.run(() => /ses_\w+/.exec(location.hash)[0]);
      for (const [panel, selector] of [
        ["changes", ".changes"],
        ["files", '[role="treeitem"]'],
        ["terminal", ".terminals"],
        ["tasks", ".panel .facts"],
        ["status", ".panel h3"],
        ["context", ".context-bar"],
      ]) {
        await window.run((hash) => {
          location.hash = hash;
        }, `#/session/${id}?panel=${panel}`);
        await window.element(selector);
      }
      await window.run((hash) => {
        location.hash = hash;
      }, `#/session/${id}`);
    },
  ],
  [
    "a permission request is answered by a key",
    async ({ window }) => {
      await window.run(() => {
        location.hash = "#/new";
      });
      await window.until("an empty session", () => document.querySelector(".new-session #prompt") !== null);
      await window.type("#prompt", "RUNIT here");
      await window.keys("Enter");
      await window.element(".request");
      await window.press("Allow once");
      await window.shows("Ran it.");
    },
  ],
  [
    "settings are shown and keep a choice",
    async ({ window }) => {
      await window.run(() => {
        location.hash = "#/settings";
      });
      await window.press("Dark");
      await window.until("dark", () => document.documentElement.dataset.scheme === "dark");
      await window.reload();
      await window.until("dark after a reload", () => document.documentElement.dataset.scheme === "dark");
      await window.press("System");
    },
  ],
  [
    "signing out asks for the password again",
    async ({ window }) => {
      await window.run(() => {
        location.hash = "#/settings/server";
      });
      await window.press("Sign out of this server");
      await window.shows("Sign in to");
      equal("key", await window.run(() => localStorage.getItem("codewright.key")), null);
    },
  ],
];

/** Runs the smoke set in WebKit, and returns how many acts failed. */
export async function webkit(settings) {
  const stage = new Stage(settings);
  seed(stage);
  await stage.model(script(stage.directory));
  const server = await stage.serve({ password: PASSWORD });
  const started = Date.now();
  let [failed, window] = [0, null];
  try {
    window = await Window.open({ ...settings, home: stage.environment().HOME });
    for (const [name, act] of table) {
      try {
        await act({ window, server });
        console.log(`ok    webkit: ${name}`);
      } catch (error) {
        failed += 1;
        console.log(`FAIL  webkit: ${name}: ${String(error.message).split("\n")[0]}`);
      }
    }
  } finally {
    await window?.close();
    await stage.end();
  }
  console.log(
    `${table.length - failed} of ${table.length} acts as expected in webkit ` +
      `(${Math.round((Date.now() - started) / 1000)} s)`,
  );
  return failed;
}
