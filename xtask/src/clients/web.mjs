// Tests the page with a session in a headless browser.
// argv: the folder of playwright-core, the browser, and the server's address, user name and password.
import { createRequire } from "node:module";

const [folder, browser, url, username, password] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(folder);
const SHOW = 45_000;

const launched = await chromium.launch({ executablePath: browser, args: ["--no-sandbox"] });
const context = await launched.newContext({ httpCredentials: { username, password } });
const page = await context.newPage();
const troubles = [];
page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
page.on("console", (message) => {
  if (message.type() === "error") troubles.push(`console: ${message.text()}`);
});
page.on("request", (request) => {
  if (!request.url().startsWith(url) && !request.url().startsWith("data:")) troubles.push(`asked ${request.url()}`);
});

let failed = 0;
async function act(name, work) {
  try {
    await work();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    const shown = await page.locator("body").innerText().catch(() => "");
    console.log(`FAIL  ${name}: ${error.message.split("\n")[0]}\n${shown}`);
  }
}
const shows = (text) => page.getByText(text, { exact: false }).last().waitFor({ state: "visible", timeout: SHOW });
const status = (text) => page.locator("#state", { hasText: text }).waitFor({ timeout: SHOW });
async function say(text) {
  await page.locator("#prompt").fill(text);
  await page.locator("#prompt").press("Enter");
}
const press = (name) => page.getByRole("button", { name }).first().click({ timeout: SHOW });

await act("the page connects", async () => {
  await page.goto(url);
  await status("connected");
});
await act("a prompt is answered", async () => {
  await say("say hello");
  await shows("Hello from the model");
});
await act("the session is listed under its title", () =>
  page.locator("#sessions a", { hasText: "Scripted title" }).waitFor({ timeout: SHOW }));
await act("markup is shown as text and does nothing", async () => {
  await say("MARK it");
  await shows("<img src=x onerror=");
  if ((await page.locator("#transcript img, #transcript script, #transcript b").count()) > 0) throw new Error("it became markup");
  if ((await page.title()) === "owned") throw new Error("it ran");
});
await act("leave is asked for and given", async () => {
  await say("RUN it");
  await shows("Allow bash?");
  await press("Allow once");
  await shows("Ran it.");
  await page.locator("summary", { hasText: "bash · completed" }).last().click();
  await shows("from-bash");
});
await act("leave is refused", async () => {
  await say("DENY it");
  await shows("Allow bash?");
  await press("Deny");
  await page.locator("summary", { hasText: "bash · error" }).waitFor({ timeout: SHOW });
});
await act("questions are answered", async () => {
  await say("QUIZ me");
  await shows("Which color?");
  await page.getByLabel("Red").check();
  await page.getByLabel("A — a").check();
  await press("Answer");
  await shows("Quizzed.");
});
await act("a failure is shown", async () => {
  await say("BREAK it");
  await shows("the model is out of order");
});
await act("an answer streams and is stopped", async () => {
  await say("WAIT for it");
  await shows("one two");
  await press("Stop");
  await page.waitForFunction(() => document.getElementById("stop").disabled, null, { timeout: SHOW });
  const text = await page.locator("#transcript").innerText();
  if (text.includes("twelve")) throw new Error("it was not stopped");
});
await act("a new session begins empty and the old one is there again", async () => {
  await press("New session");
  await page.waitForFunction(() => document.getElementById("transcript").childElementCount === 0);
  await page.locator("#sessions a").first().click();
  await shows("Quizzed.");
});
await act("it is all there after the page is loaded again", async () => {
  await page.reload();
  await shows("Quizzed.");
  await status("connected");
});
await act("a session chosen while the lists are fetched stays to be seen", async () => {
  const hash = new URL(page.url()).hash;
  let release;
  const held = new Promise((done) => { release = done; });
  await page.route("**/session/status", async (route) => { await held; await route.continue(); });
  const asked = page.waitForRequest("**/session/status", { timeout: SHOW });
  await page.reload();
  await asked;
  await page.evaluate(() => { location.hash = ""; });
  await page.waitForFunction(() => document.getElementById("transcript").childElementCount === 0);
  await page.evaluate((hash) => { location.hash = hash; }, hash);
  await shows("Quizzed.");
  release();
  await page.locator("#sessions a").first().waitFor({ timeout: SHOW });
  if ((await page.locator("#transcript article").count()) === 0) throw new Error("it was emptied");
  await page.unroute("**/session/status");
});
await act("a question of a subagent's subagent is shown where it began", async () => {
  const top = decodeURIComponent(new URL(page.url()).hash.slice(1));
  const answer = (path, json) => page.route(url + path, (route) => route.fulfill({ json }));
  const below = (id, parentID) => answer(`/session/${id}`, { id, parentID, title: id, time: { created: 1, updated: 1 } });
  await below("ses_low", "ses_middle");
  await below("ses_middle", top);
  await answer("/permission", [{ id: "per_low", sessionID: "ses_low", permission: "deep", patterns: [], always: [], metadata: {} }]);
  await page.reload();
  await shows("Allow deep?");
  await page.locator("#sessions a.asks").waitFor({ timeout: SHOW });
  await page.unrouteAll();
  await page.reload();
  await shows("Quizzed.");
  if ((await page.locator("#asked section").count()) > 0) throw new Error("it is still asked");
});
await act("messages stand in the order of their times, and no more than so many without a frame", async () => {
  const kept = await page.evaluate(() => {
    const created = Date.now() + 1e6;
    for (let number = 0; number < 500; number += 1) {
      const info = { id: "msg_z" + (999 - number), sessionID: open, role: "user", time: { created: created + number } };
      handle({ type: "message.updated", properties: { info } });
      const part = { id: "prt_" + number, messageID: info.id, sessionID: open, type: "text", text: "number " + number };
      handle({ type: "message.part.updated", properties: { part } });
    }
    return [messages.size, stale.size];
  });
  if (kept.some((count) => count > 200)) throw new Error(`${kept} were kept`);
  await shows("number 499");
  const texts = await page.locator("#transcript article").allInnerTexts();
  if (texts.length !== 200) throw new Error(`${texts.length} are shown`);
  texts.forEach((text, at) => { if (text !== `number ${300 + at}`) throw new Error(`${text} stands at ${at}`); });
});
const trustDialog = page.locator("#trust");
const trust = { root: "/evil", status: "undecided", fingerprint: "one", changes: [{ path: "opencode.json", kind: "changed" }],
  requests: [{ source: "opencode.json", key: "mcp.x", text: "start <b>x</b>\u202e" }, { source: "a.md", key: "command.a", text: "define a" }] };
const posted = [];
const mock = (now) => page.route(/\/trust(\/dismiss)?$/, (route) => {
  const asked = route.request();
  if (asked.method() === "GET") return route.fulfill({ json: now() });
  posted.push([new URL(asked.url()).pathname, asked.postDataJSON()]);
  return asked.url().endsWith("dismiss") ? route.fulfill({ json: true }) : route.fulfill(now.answer());
});
const expect = (what, found, wanted) => {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)}`);
};
const undecided = Object.assign(() => trust, { answer: () => ({ json: { ...trust, status: "trusted" } }) });
await act("an untrusted repository is shown in a dialog, and Escape decides nothing", async () => {
  await mock(undecided);
  await page.reload();
  await trustDialog.waitFor({ state: "visible", timeout: SHOW });
  for (const text of ["/evil", "opencode.json (changed)", "2 requests:", "start <b>x</b>‹U+202E› (opencode.json)", "define a (a.md)"]) {
    await trustDialog.getByText(text, { exact: true }).waitFor({ timeout: SHOW });
  }
  expect("focus", await page.evaluate(() => document.activeElement.id), "trust-later");
  const isOpen = await page.evaluate(() => {
    trustShown = performance.now();
    for (const id of ["trust-later", "trust-no", "trust-yes"]) at(id).click();
    return at("trust").open;
  });
  expect("early clicks", [posted.length, isOpen], [0, true]);
  await page.waitForTimeout(500);
  for (let presses = 0; presses < 8; presses += 1) {
    await page.keyboard.press("Tab");
    expect("focus stays", await page.evaluate(() => document.activeElement === document.body || at("trust").contains(document.activeElement)), true);
  }
  await page.keyboard.press("Escape");
  await trustDialog.waitFor({ state: "hidden", timeout: SHOW });
  // The dialog closes before the browser sends the request.
  for (let waits = 0; posted.length === 0 && waits < 100; waits += 1) await page.waitForTimeout(50);
  expect("posted", posted, [["/trust/dismiss", { fingerprint: "one" }]]);
});
await act("the badge opens the dialog again, and a refused decision shows it anew", async () => {
  posted.length = 0;
  undecided.answer = () => ({ status: 400, json: { name: "BadRequest", data: { message: "the control files have changed" } } });
  await page.getByRole("button", { name: "untrusted" }).click();
  await page.waitForTimeout(500);
  await page.getByRole("button", { name: "Trust this repository" }).click();
  await trustDialog.getByText("Not stored: the control files have changed").waitFor({ timeout: SHOW });
  expect("focus", await page.evaluate(() => document.activeElement.id), "trust-later");
  // The browser logs the refused request, which is expected here.
  troubles.splice(0, troubles.length, ...troubles.filter((text) => !text.includes("status of 400")));
  undecided.answer = () => ({ json: { ...trust, status: "trusted" } });
  await page.waitForTimeout(500);
  await page.getByRole("button", { name: "Trust this repository" }).click();
  await trustDialog.waitFor({ state: "hidden", timeout: SHOW });
  expect("posted", posted[1], ["/trust", { decision: "trust", fingerprint: "one" }]);
  expect("badge", await page.locator("#untrusted").isVisible(), false);
  await page.unrouteAll();
});
await act("a server without workspace trust shows no dialog", async () => {
  await page.route(/\/trust$/, (route) => route.fulfill({ contentType: "text/html", body: "<p>another page</p>" }));
  await page.reload();
  await status("connected");
  await page.waitForTimeout(500);
  expect("dialog", [await trustDialog.isVisible(), await page.locator("#untrusted").isVisible()], [false, false]);
  await page.unrouteAll();
});
await act("the browser has nothing to complain of", async () => {
  // The refused request of the model is not an error of the page.
  if (troubles.length > 0) throw new Error(troubles.join("; "));
});
await launched.close();
console.log(failed === 0 ? "the page works" : `${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
