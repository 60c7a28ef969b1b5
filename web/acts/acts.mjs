// The table of acts. Each act is what a user does, and what must be visible then. Acts of a group share a page.
import { launch, openPage, Stage, SHOW } from "./stage.mjs";
import { script } from "./script.mjs";
import { groups } from "./groups.mjs";
import { seed } from "./seed.mjs";

/** What acts get: the stage, the server, the browser, the open page, and the words of a user. */
class Cx {
  constructor(stage, server, browser, settings, name) {
    Object.assign(this, { stage, server, browser, settings, browserName: name, page: null, extra: [] });
  }

  /** Opens another page, which is closed at the end of the group. */
  async open(url = this.server.url, context = {}) {
    const page = await openPage(this.browser, url, { ...(await this.credentials()), ...context });
    this.extra.push(page);
    return page;
  }

  /** Returns what makes a page signed in. The user signs in once; later pages have the cookie and the key. */
  async credentials() {
    if (!this.server.password) return {};
    if (!this.server.signedIn) {
      const page = await openPage(this.browser, this.server.url, {
        signIn: { username: "opencode", password: this.server.password },
      });
      const { cookies, origins } = await page.context().storageState();
      const keys = origins.map((one) => ({
        ...one,
        localStorage: one.localStorage.filter(({ name }) => name === "codewright.key"),
      }));
      this.server.signedIn = { cookies, origins: keys };
      await page.context().close();
    }
    return { storageState: this.server.signedIn };
  }

  async shows(text, page = this.page) {
    await page.getByText(text, { exact: false }).last().waitFor({ state: "visible", timeout: SHOW });
  }

  async hides(text, page = this.page) {
    await page.getByText(text, { exact: false }).first().waitFor({ state: "hidden", timeout: SHOW });
  }

  async press(name, page = this.page) {
    await page
      .getByRole("button", { name, exact: typeof name === "string" })
      .first()
      .click({ timeout: SHOW });
  }

  async say(text, page = this.page) {
    const prompt = page.locator("#prompt");
    await prompt.fill(text);
    await prompt.press("Enter");
  }

  /** Waits until a condition holds in the page. */
  async until(condition, argument, page = this.page) {
    await page.waitForFunction(condition, argument, { timeout: SHOW });
  }

  /** Waits until the answer to the last prompt is complete. */
  async idle(page = this.page) {
    await page.locator(".working").waitFor({ state: "detached", timeout: SHOW });
  }

  async home(page = this.page) {
    await page.evaluate(() => {
      location.hash = "#/";
    });
    await page.locator(".home h1").waitFor();
  }

  async fresh(page = this.page) {
    await page.evaluate(() => {
      location.hash = "#/new";
    });
    await page.locator(".new-session #prompt").waitFor();
  }

  /** Sends a prompt in a new session. The model answers by the words of all prompts of a session. */
  async ask(text, page = this.page) {
    await this.fresh(page);
    await this.say(text, page);
  }

  /** Runs a command of the palette. */
  async command(name, page = this.page) {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Type a command" }).fill(name);
    await page.getByRole("option", { name }).first().click();
  }

  async closePages() {
    for (const page of this.extra.splice(0)) await page.context().close();
  }
}

/** Runs all acts in a browser, and returns how many failed. */
export async function acts(settings, name) {
  const stage = new Stage(settings);
  seed(stage);
  await stage.model(script(stage.directory));
  const server = await stage.serve({ password: "a password" });
  const mcp = await stage.toolServer();
  const browser = await launch(settings, name);
  const [results, started] = [[], Date.now()];
  try {
    for (const [title, group] of groups) {
      const table = group.filter((act) => name === "chromium" || act.smoke);
      if (table.length === 0 || (settings.only && !settings.only.split(",").includes(title))) continue;
      const cx = new Cx(stage, server, browser, settings, name);
      cx.mcp = mcp;
      for (const act of table) {
        let problem = "";
        try {
          cx.page ??= await cx.open();
          await act.run(cx);
          const troubles = cx.extra.flatMap((page) => page.troubles.splice(0));
          if (troubles.length > 0) throw new Error(troubles.join("; "));
        } catch (error) {
          problem = String(error.message).split("\n").slice(0, 3).join(" ");
        }
        results.push(problem);
        console.log(problem ? `FAIL  ${title}: ${act.name}: ${problem}` : `ok    ${title}: ${act.name}`);
        if (problem && settings.only && cx.page)
          console.log(
            (
              await cx.page
                .locator("body")
                .innerText()
                .catch(() => "")
            ).slice(0, 3_000),
          );
      }
      await cx.closePages();
    }
  } finally {
    await browser.close();
    await stage.end();
  }
  const failed = results.filter(Boolean).length;
  console.log(
    `${results.length - failed} of ${results.length} acts as expected in ${name} ` +
      `(${Math.round((Date.now() - started) / 1000)} s)`,
  );
  return failed;
}
