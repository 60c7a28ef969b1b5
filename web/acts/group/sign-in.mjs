// The page for the sign-in, signing out, and the first run without a model. Each act uses servers of its own.
import { join } from "node:path";
import { equal, ok } from "../checks.mjs";
import { enter, openPage } from "../stage.mjs";

const PASSWORD = "correct horse";

/** A home without a configuration, in which the program finds no model. */
const empty = (stage) => ({
  HOME: join(stage.root, "empty"),
  CODEWRIGHT_DISABLE_LOCAL_SERVERS: "1",
  OPENCODE_DISABLE_MODELS_FETCH: "1",
});

export const table = [
  {
    name: "a server with a password shows a page for the sign-in, and no dialog of the browser",
    smoke: true,
    run: async (cx) => {
      cx.locked = await cx.stage.serve({ password: PASSWORD });
      cx.gate = await openPage(cx.browser, cx.locked.url);
      cx.gate.expected.push(/401/);
      cx.gate.troubles.splice(0);
      cx.extra.push(cx.gate);
      await cx.shows(`Sign in to ${new URL(cx.locked.url).host}`, cx.gate);
      const refused = await cx.gate.evaluate(async () => (await fetch("path")).headers.get("www-authenticate"));
      equal("challenge", refused, null);
    },
  },
  {
    name: "an empty and a wrong password are explained",
    smoke: true,
    run: async (cx) => {
      await cx.press("Sign in", cx.gate);
      await cx.shows("Enter the password", cx.gate);
      await enter(cx.gate, { username: "opencode", password: "wrong" });
      await cx.shows("The user name or the password is wrong", cx.gate);
    },
  },
  {
    name: "the right password opens the app",
    smoke: true,
    run: async (cx) => {
      await enter(cx.gate, { username: "opencode", password: PASSWORD });
      await cx.gate.locator(".home h1").waitFor();
      const stored = await cx.gate.evaluate(() =>
        JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
      );
      ok(
        "the page cannot read the password or the cookie",
        !stored.includes(PASSWORD) && !stored.includes("codewright_"),
      );
    },
  },
  {
    name: "a reload and another tab do not ask again",
    smoke: true,
    run: async (cx) => {
      // Firefox reports a font whose download the reload ends.
      cx.gate.expected.push(/download failed/);
      await cx.gate.reload();
      await cx.gate.locator(".home h1").waitFor();
      const tab = await cx.gate.context().newPage();
      await tab.goto(cx.locked.url);
      await tab.locator(".home h1").waitFor();
      await tab.close();
    },
  },
  {
    name: "the cookie without the key of the page is worthless",
    run: async (cx) => {
      const statuses = await cx.gate.evaluate(async () => {
        const key = localStorage.getItem("codewright.key");
        const status = async (headers) => (await fetch("path", { headers })).status;
        return [
          await status({}),
          await status({ "X-Codewright-Key": "wrong" }),
          await status({ "X-Codewright-Key": key }),
        ];
      });
      equal("statuses", statuses, [401, 401, 200]);
    },
  },
  {
    name: "signing out asks for the password again and ends the sign-in on the server",
    smoke: true,
    run: async (cx) => {
      const key = await cx.gate.evaluate(() => localStorage.getItem("codewright.key"));
      const cookies = await cx.gate.context().cookies();
      await cx.command("Sign out of this server", cx.gate);
      await cx.shows("Sign in to", cx.gate);
      const headers = {
        Cookie: cookies.map(({ name, value }) => `${name}=${value}`).join("; "),
        "X-Codewright-Key": key,
      };
      equal("status", (await fetch(`${cx.locked.url}/path`, { headers })).status, 401);
    },
  },
  {
    name: "many wrong passwords are refused for a while, with the time to wait",
    run: async (cx) => {
      cx.gate.expected.push(/429/);
      for (let at = 0; at < 12; at += 1) {
        await enter(cx.gate, { username: "opencode", password: `guess ${at}` });
        await cx.gate.getByRole("button", { name: "Sign in", exact: true }).and(cx.gate.locator(":enabled")).waitFor();
      }
      await cx.shows(/Too many wrong passwords\. Try again in \d+ seconds/, cx.gate);
      cx.gate.expected.push(/ERR_/);
      await cx.locked.stop();
    },
  },
  {
    name: "without a model, home says so and offers a provider, a local server and a free choice",
    smoke: true,
    run: async (cx) => {
      cx.bare = await cx.stage.serve({ env: empty(cx.stage) });
      cx.first = await openPage(cx.browser, cx.bare.url);
      cx.extra.push(cx.first);
      await cx.first.getByRole("heading", { name: "No model is available yet" }).waitFor();
      for (const name of ["Anthropic", "OpenAI", "All providers", "Look again", "Another address"])
        await cx.first.getByRole("button", { name, exact: true }).waitFor();
      equal("model", await cx.first.locator(".pill", { hasText: "No model" }).count(), 1);
    },
  },
  {
    name: "without a model, a prompt is not sent anywhere and stays",
    smoke: true,
    run: async (cx) => {
      const sent = [];
      cx.first.on("request", (request) => request.method() === "POST" && sent.push(new URL(request.url()).pathname));
      await cx.say("do not send this", cx.first);
      await cx.first.getByRole("dialog", { name: "No model is available yet" }).waitFor();
      await cx.first.keyboard.press("Escape");
      equal("prompt", await cx.first.locator("#prompt").inputValue(), "do not send this");
      equal("sent", sent, []);
      await cx.first.locator("#prompt").fill("");
    },
  },
  {
    name: "an own server is entered and used",
    run: async (cx) => {
      const address = /"baseURL":"([^"]+)"/.exec(cx.stage.config())[1];
      await cx.press("Another address", cx.first);
      await cx.first.getByLabel("Base URL of the server").fill(address);
      await cx.first.getByLabel("Name of the model").fill("plain-model");
      await cx.press("Save", cx.first);
      await cx.first.getByRole("heading", { name: "No model is available yet" }).waitFor({ state: "detached" });
      await cx.say("say hello", cx.first);
      await cx.shows("Hello from the model", cx.first);
      cx.first.expected.push(/ERR_/);
      await cx.bare.stop();
    },
  },
];
