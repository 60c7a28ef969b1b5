// A browser without instruments, for the times of its first view. The library of the acts watches the network and the
// console of each page and adds scripts of its own, which a user's browser does not do. This sends only the commands
// that the measurement needs.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FLAGS } from "./stage.mjs";

const ANSWER_MS = 30_000;

/**
 * Starts a browser whose pages are about 800 pixels high, and returns how to send it commands of the DevTools protocol.
 */
export function quietBrowser(program, { width = 1280, height = 887 } = {}) {
  const home = mkdtempSync(join(tmpdir(), "codewright-browser-"));
  const args = [
    ...FLAGS,
    `--window-size=${width},${height}`,
    `--user-data-dir=${home}`,
    "--remote-debugging-pipe",
    "--no-default-browser-check",
    "about:blank",
  ];
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const [input, output] = [child.stdio[3], child.stdio[4]];
  const waiting = new Map();
  let [last, rest] = [0, ""];
  const fail = (error) => {
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  child.once("error", fail);
  child.once("exit", () => fail(new Error("the browser ended")));
  input.on("error", fail);
  output.setEncoding("utf8").on("data", (data) => {
    const messages = (rest + data).split("\0");
    rest = messages.pop();
    for (const message of messages.map((text) => JSON.parse(text))) {
      const call = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) call?.reject(new Error(message.error.message));
      else call?.resolve(message.result);
    }
  });
  const send = (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      last += 1;
      const id = last;
      const timer = setTimeout(() => waiting.delete(id) && reject(new Error(`no answer to ${method}`)), ANSWER_MS);
      const settle = (run) => (value) => {
        clearTimeout(timer);
        run(value);
      };
      waiting.set(id, { resolve: settle(resolve), reject: settle(reject) });
      input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  return {
    /** Opens a blank page with an empty cache, in which a script runs at the start of each document. */
    blank: async (script) => {
      const { browserContextId } = await send("Target.createBrowserContext");
      const { targetId } = await send("Target.createTarget", { url: "about:blank", browserContextId });
      const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
      await send("Page.enable", {}, sessionId);
      await send("Page.addScriptToEvaluateOnNewDocument", { source: `(${script})()` }, sessionId);
      return {
        open: (url) => send("Page.navigate", { url }, sessionId),
        reload: () => send("Page.reload", {}, sessionId),
        read: async (run) => {
          const { result, exceptionDetails } = await send(
            "Runtime.evaluate",
            { expression: `JSON.stringify((${run})())` },
            sessionId,
          );
          if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
          return JSON.parse(result.value);
        },
        close: () => send("Target.disposeBrowserContext", { browserContextId }),
      };
    },
    close: async () => {
      await send("Browser.close").catch(() => child.kill());
      await ended;
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
