// The browser's part of the first hour of a new user: ten steps in the web app, each printed with its result.
import { createServer, request } from "node:http";
import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { enter, launch, openPage, options, SHOW, Stage } from "./stage.mjs";
import { script } from "./script.mjs";
import { seed } from "./seed.mjs";
import { fits, tooSmall } from "./group/phone.mjs";

const KEY = "sk-right-key-1234567890";
const PASSWORD = "correct horse";

/** Starts a provider that wants a key, in front of the scripted model, and returns its address. */
async function gate(target) {
  const server = createServer((incoming, answer) => {
    if (incoming.headers.authorization !== `Bearer ${KEY}`) {
      answer
        .writeHead(401, { "Content-Type": "application/json" })
        .end('{"error":{"message":"Incorrect API key provided"}}');
      return;
    }
    const passed = request(
      target + incoming.url,
      { method: incoming.method, headers: { ...incoming.headers, host: new URL(target).host } },
      (reply) => {
        answer.writeHead(reply.statusCode, reply.headers);
        reply.pipe(answer);
      },
    );
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function step(name, play) {
  try {
    await play();
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`FAIL ${name}: ${String(error.message).split("\n").slice(0, 2).join(" ")}`);
  }
}

function ok(what, value) {
  if (!value) throw new Error(what);
}

const settings = options(process.argv.slice(2));
const stage = new Stage(settings);
seed(stage);
await stage.model(script(stage.directory));
const model = JSON.parse(stage.config()).provider.mock.options.baseURL.replace(/\/v1$/, "");
const provider = await gate(model);
const names = {
  "coder-2": { name: "Coder 2", release_date: "2026-05-01" },
  "coder-1": { name: "Coder 1", release_date: "2025-05-01" },
};
const config = {
  permission: { bash: "ask" },
  provider: {
    mine: { npm: "@ai-sdk/openai-compatible", name: "Mine", options: { baseURL: `${provider.url}/v1` }, models: names },
  },
};
writeFileSync(join(stage.root, "home/.config/opencode/opencode.json"), JSON.stringify(config));
const quiet = { CODEWRIGHT_DISABLE_LOCAL_SERVERS: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" };
const server = await stage.serve({ env: quiet });
const browser = await launch(settings);
const page = await openPage(browser, server.url);
const shows = (text, on = page) =>
  on.getByText(text, { exact: false }).last().waitFor({ state: "visible", timeout: SHOW });
const say = async (text, on = page) => {
  await on.locator("#prompt").fill(text);
  await on.locator("#prompt").press("Enter");
};
const fresh = async (on = page) => {
  await on.evaluate(() => {
    location.hash = "#/new";
  });
  await on.locator(".new-session #prompt").waitFor();
};

try {
  await step("in the browser, home says what to do without a model, and sends nothing", async () => {
    const bare = await stage.serve({ env: { ...quiet, HOME: join(stage.root, "empty") } });
    const first = await openPage(browser, bare.url);
    await shows("No model is available yet", first);
    await say("hello", first);
    await shows("Your prompt was not sent", first);
    await first.keyboard.press("Escape");
    ok("the prompt is gone", (await first.locator("#prompt").inputValue()) === "hello");
    ok("a session was created", (await bare.call("GET", "/session")).length === 0);
    await first.context().close();
    await bare.stop();
  });
  const connect = async (key) => {
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Save" }).click();
  };
  await step("in the browser, a wrong key is reported when it is entered", async () => {
    await page.evaluate(() => {
      location.hash = "#/settings/providers";
    });
    await page.getByRole("searchbox", { name: "Search", exact: true }).fill("mine");
    await page
      .locator(".status-row", { hasText: "Mine" })
      .first()
      .getByRole("button", { name: /Connect|Edit/ })
      .click();
    await connect("sk-wrong");
    await page.locator("dialog .notice.bad", { hasText: "refuses the key" }).waitFor();
  });
  await step("in the browser, the right key is accepted, and the models are offered", async () => {
    await connect(KEY);
    await shows("accepts the key");
    await page
      .locator("dialog")
      .getByRole("option", { name: /Coder 2/ })
      .click();
  });
  await step("in the browser, the first prompt is answered by the chosen model", async () => {
    await fresh();
    await say("say hello");
    await shows("Hello from the model");
    await page.locator(".answer-foot", { hasText: "coder-2" }).waitFor();
  });
  await step("in the browser, a key allows a command, whose result is shown", async () => {
    await fresh();
    await say("RUNIT now");
    await shows("Allow bash?");
    await page.keyboard.press("Control+Alt+p");
    await page.keyboard.press("y");
    await shows("Ran it.");
    await shows("from-bash");
  });
  await step("in the browser, a running answer is stopped", async () => {
    await fresh();
    await say("SLOWLY now");
    await shows("word3");
    await page.getByRole("button", { name: "Stop" }).first().click();
    await shows("Interrupted");
  });
  await step("in the browser, a session is searched", async () => {
    await page.keyboard.press("Control+f");
    await page.getByRole("searchbox", { name: "Search this session" }).fill("word2 ");
    await shows("1 of 1");
    await page.keyboard.press("Escape");
  });
  await step("in the browser, an unknown command is an error with the nearest name", async () => {
    await fresh();
    await say("/modle");
    await shows("Did you mean /model?");
    await page.locator("#prompt").fill("");
  });
  await step("in the browser, a password has a page for the sign-in, and a way out", async () => {
    const locked = await stage.serve({ password: PASSWORD, env: quiet });
    const gate = await openPage(browser, locked.url);
    await shows("Sign in to", gate);
    await enter(gate, { username: "opencode", password: PASSWORD });
    await gate.locator(".home h1").waitFor();
    await gate.keyboard.press("Control+k");
    await gate.getByRole("combobox", { name: "Type a command" }).fill("Sign out");
    await gate.getByRole("option", { name: "Sign out of this server" }).first().click();
    await shows("Sign in to", gate);
    await gate.context().close();
    await locked.stop();
  });
  await step("on a phone, everything fits and has the size of a finger", async () => {
    const { storageState } = page.context();
    const phone = await openPage(browser, server.url, {
      width: 390,
      height: 844,
      hasTouch: true,
      isMobile: true,
      storageState: await storageState.call(page.context()),
    });
    await phone.locator(".home h1").waitFor();
    for (const hash of ["#/", "#/new", "#/settings", "#/settings/providers"]) {
      await phone.evaluate((to) => {
        location.hash = to;
      }, hash);
      await phone.waitForTimeout(400);
      await fits(phone);
      const small = await tooSmall(phone);
      ok(`too small in ${hash}: ${small.join(", ")}`, small.length === 0);
    }
    await phone.evaluate(() => {
      location.hash = "#/new";
    });
    await phone.locator(".new-session #prompt").waitFor();
    await phone.locator("#prompt").fill("say hello");
    await phone.getByRole("button", { name: "Send" }).tap();
    await shows("Hello from the model", phone);
    await phone.context().close();
  });
} finally {
  await browser.close();
  provider.close();
  await stage.end();
}
