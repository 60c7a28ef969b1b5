// Two browsers at once, lost connections, other servers, passwords, and a page that is older than the server.
import { createHash, randomBytes } from "node:crypto";
import { equal, ok } from "../checks.mjs";
import { enter, openPage } from "../stage.mjs";

export const table = [
  {
    name: "what one browser does appears in the other",
    run: async (cx) => {
      cx.other = await cx.open();
      await cx.ask("say hello");
      await cx.shows("Hello from the model");
      const hash = new URL(cx.page.url()).hash;
      await cx.other.evaluate((where) => {
        location.hash = where;
      }, hash);
      await cx.shows("Hello from the model", cx.other);
      await cx.say("and again");
      await cx.other.locator(".prompt", { hasText: "and again" }).waitFor();
    },
  },
  {
    name: "a stream is the same in both",
    run: async (cx) => {
      await cx.ask("SLOWLY both");
      await cx.shows("word5");
      const hash = new URL(cx.page.url()).hash;
      await cx.other.evaluate((where) => {
        location.hash = where;
      }, hash);
      await cx.shows("word20", cx.other);
      // The rendered text is empty until the frame after a block was added, because the browser skips what is not on
      // the screen.
      const text = (await cx.other.locator(".transcript .markdown").textContent()).split(" ");
      equal(
        "words without a gap",
        text.slice(0, 20),
        Array.from({ length: 20 }, (_, at) => `word${at}`),
      );
    },
  },
  {
    name: "the other browser interrupts",
    run: async (cx) => {
      await cx.press("Stop", cx.other);
      await cx.shows("Interrupted");
      await cx.shows("Interrupted", cx.other);
    },
  },
  {
    name: "a request that another browser answers disappears",
    run: async (cx) => {
      await cx.ask("RUNIT both");
      await cx.shows("Allow bash?");
      const hash = new URL(cx.page.url()).hash;
      await cx.other.evaluate((where) => {
        location.hash = where;
      }, hash);
      await cx.press("Allow once", cx.other);
      await cx.page.locator(".request").waitFor({ state: "detached" });
      await cx.shows("Ran it.");
    },
  },
  {
    name: "a rename appears in the other browser",
    run: async (cx) => {
      await cx.command("Rename the session", cx.other);
      await cx.other.getByRole("textbox", { name: "Title" }).fill("Renamed elsewhere");
      await cx.other.keyboard.press("Enter");
      await cx.page.locator(".head h1", { hasText: "Renamed elsewhere" }).waitFor();
    },
  },
  {
    name: "a session that is deleted elsewhere while it is open is explained",
    run: async (cx) => {
      cx.page.expected.push(/404/);
      const id = /ses_\w+/.exec(cx.page.url())[0];
      await cx.home(cx.other);
      await cx.server.call("DELETE", `/session/${id}`);
      await cx.shows("This session does not exist");
    },
  },
  {
    name: "a restart of the server in the middle loses nothing",
    run: async (cx) => {
      cx.page.expected.push(/ERR_|Failed to load|502/);
      cx.other.expected.push(/ERR_|Failed to load|502/);
      await cx.ask("say hello");
      await cx.shows("Hello from the model");
      await cx.idle();
      await cx.page.locator("#prompt").fill("typed before the restart");
      const { port } = cx.server;
      await cx.server.stop();
      await cx.shows("Connection lost");
      const again = await cx.stage.serve({ port, password: cx.server.password });
      Object.assign(cx.server, again);
      await cx.shows("Connected again");
      equal("typed", await cx.page.locator("#prompt").inputValue(), "typed before the restart");
      await cx.page.locator("#prompt").press("Enter");
      await cx.page.locator(".prompt", { hasText: "typed before the restart" }).waitFor();
      await cx.idle();
    },
  },
  {
    name: "what happened while the connection was lost is there after it",
    run: async (cx) => {
      const id = /ses_\w+/.exec(cx.page.url())[0];
      await cx.page.context().setOffline(true);
      await cx.server.call("POST", `/session/${id}/message`, { parts: [{ type: "text", text: "sent meanwhile" }] });
      await cx.page.context().setOffline(false);
      await cx.page.reload();
      await cx.page.locator(".prompt", { hasText: "sent meanwhile" }).waitFor();
      const prompts = await cx.page.locator(".prompt-text").allInnerTexts();
      equal("prompts", prompts, ["say hello", "typed before the restart", "sent meanwhile"]);
    },
  },
  {
    name: "another server is used only after a confirmation",
    run: async (cx) => {
      cx.second = await cx.stage.serve({ password: "another secret" });
      const url = `${cx.server.url}/?server=${encodeURIComponent(cx.second.url)}`;
      cx.third = await openPage(cx.browser, url, { allowed: [cx.second.url], ...(await cx.credentials()) });
      cx.third.expected.push(/401/);
      cx.extra.push(cx.third);
      await cx.shows("names another server", cx.third);
      const before = cx.third.troubles.length;
      await cx.press("Use this server", cx.third);
      await cx.shows("Sign in to", cx.third);
      equal("requests", before, 0);
    },
  },
  {
    name: "a wrong password is refused",
    run: async (cx) => {
      await cx.third.getByLabel("Password", { exact: true }).fill("wrong");
      await cx.third.getByLabel("Password", { exact: true }).press("Enter");
      await cx.shows("The user name or the password is wrong", cx.third);
    },
  },
  {
    name: "the right password opens the other server",
    run: async (cx) => {
      await cx.third.getByLabel("Password", { exact: true }).fill("another secret");
      await cx.third.getByLabel("Password", { exact: true }).press("Enter");
      await cx.third.locator(".home h1").waitFor();
      await cx.third.locator("#prompt").fill("say hello");
      await cx.third.locator("#prompt").press("Enter");
      await cx.shows("Hello from the model", cx.third);
    },
  },
  {
    name: "the password is not in the address, and a reload does not ask again",
    run: async (cx) => {
      ok("address", !cx.third.url().includes("secret"));
      const local = await cx.third.evaluate(() => JSON.stringify({ ...localStorage }));
      ok("storage", !local.includes("secret"));
      await cx.third.reload();
      await cx.shows("Hello from the model", cx.third);
      cx.third.expected.push(/ERR_|Failed to load/);
      await cx.second.stop();
    },
  },
  {
    name: "a newer app asks to reload the page",
    run: async (cx) => {
      cx.page.expected.push(/ERR_|Failed to load|502/);
      await cx.page.route(cx.server.url + "/", async (route) => {
        const response = await route.fetch();
        await route.fulfill({
          response,
          body: (await response.text()).replace(/assets\/app-[\w-]+\.js/, "assets/app-other.js"),
        });
      });
      const { port } = cx.server;
      await cx.server.stop();
      await cx.shows("Connection lost");
      Object.assign(cx.server, await cx.stage.serve({ port, password: cx.server.password }));
      await cx.shows("A new version of the app is available");
      await cx.page.unrouteAll();
      await cx.press("Reload");
      await cx.page.locator(".head h1").waitFor();
    },
  },
  {
    name: "a server with users shows what they have used, and their quotas",
    run: async (cx) => {
      const token = randomBytes(32).toString("hex");
      const hash = createHash("sha256").update(token).digest("hex");
      const auth = {
        users: { alice: { token: `sha256:${hash}`, role: "member", teams: ["core"] } },
        quotas: { user: { tokens: 5_000_000 }, teams: { core: { cost: 0.01 } } },
      };
      const server = await cx.stage.serve({
        env: { OPENCODE_CONFIG_CONTENT: JSON.stringify({ auth }), XDG_DATA_HOME: `${cx.stage.root}/users` },
      });
      const page = await openPage(cx.browser, server.url, { signIn: { username: "alice", password: token } });
      // A member may not list terminals and the like.
      page.expected.push(/403/);
      await page.locator("#prompt").fill("say hello");
      await page.locator("#prompt").press("Enter");
      await cx.shows("Hello from the model", page);
      await cx.idle(page);
      await page.evaluate(() => {
        location.hash = "#/settings/status";
      });
      const usage = page.locator(".usage");
      await usage.getByText("of 5.0M tokens").waitFor();
      await usage.getByText("Team core").waitFor();
      await usage.getByText(/of \$0\.01/).waitFor();
      ok("the server of one user has none", (await cx.page.locator(".usage").count()) === 0);
      await page.context().close();
      await server.stop();
    },
  },
  {
    name: "the app works below a path of a proxy",
    run: async (cx) => {
      const { createServer, request } = await import("node:http");
      const proxy = createServer((incoming, outgoing) => {
        if (!incoming.url.startsWith("/code/")) return outgoing.writeHead(404).end();
        const target = new URL(incoming.url.slice(5), cx.server.url);
        const headers = { ...incoming.headers, host: target.host };
        const passed = request(target, { method: incoming.method, headers }, (reply) => {
          outgoing.writeHead(reply.statusCode, reply.headers);
          reply.pipe(outgoing);
        });
        passed.on("error", () => outgoing.destroy());
        outgoing.on("close", () => passed.destroy());
        incoming.pipe(passed);
      });
      await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
      const page = await cx.open(`http://127.0.0.1:${proxy.address().port}/code/`, {
        storageState: undefined,
        signIn: { username: "opencode", password: cx.server.password },
      });
      page.expected.push(/ERR_|Failed to load/);
      await page.locator(".home h1").waitFor();
      await page.locator("#prompt").fill("say hello");
      await page.locator("#prompt").press("Enter");
      await cx.shows("Hello from the model", page);
      await page.context().close();
      cx.extra.splice(cx.extra.indexOf(page), 1);
      proxy.closeAllConnections();
      proxy.close();
    },
  },
  {
    name: "a slow list of sessions does not leave the page empty",
    run: async (cx) => {
      const page = await cx.open("about:blank");
      let answer = () => {};
      const asked = new Promise((resolve) => (answer = resolve));
      await page.route(/\/experimental\/session\?/, async (route) => {
        await asked;
        await route.continue().catch(() => {});
      });
      await page.goto(cx.server.url);
      await page.locator(".home h1").waitFor();
      equal("rows", await page.locator(".session-row").count(), 0);
      await page.getByRole("button", { name: "Settings" }).click();
      await page.locator(".settings").waitFor();
      await page.evaluate(() => {
        location.hash = "#/";
      });
      answer();
      await page.locator(".session-row").first().waitFor();
      await page.unrouteAll({ behavior: "ignoreErrors" });
    },
  },
  {
    name: "the app works without storage",
    run: async (cx) => {
      const page = await cx.open("about:blank");
      await page.addInitScript(() => {
        for (const name of ["localStorage", "sessionStorage"])
          Object.defineProperty(globalThis, name, {
            get: () => {
              throw new DOMException("disabled", "SecurityError");
            },
          });
      });
      // Without storage, the page forgets its sign-in.
      page.expected.push(/401/);
      await page.goto(cx.server.url);
      await enter(page, { username: "opencode", password: cx.server.password });
      await page.locator(".home h1").waitFor();
      await page.locator("#prompt").fill("say hello");
      await page.locator("#prompt").press("Enter");
      await cx.shows("Hello from the model", page);
    },
  },
  {
    name: "the app works with a full storage, and tells it",
    run: async (cx) => {
      const page = await cx.open("about:blank");
      await page.addInitScript(() => {
        Storage.prototype.setItem = () => {
          throw new DOMException("full", "QuotaExceededError");
        };
      });
      await page.goto(cx.server.url);
      await page.locator(".home h1").waitFor();
      await page.locator("#prompt").fill("say hello");
      await page.locator("#prompt").press("Enter");
      await cx.shows("Hello from the model", page);
      await page.evaluate(() => {
        location.hash = "#/settings";
      });
      await cx.shows("This browser stores nothing", page);
    },
  },
  {
    name: "a server of another version without some routes is used",
    run: async (cx) => {
      const page = await cx.open("about:blank");
      page.expected.push(/404/);
      const missing = JSON.stringify({ name: "NotFoundError", data: { message: "no route" } });
      await page.route(/\/(?:api\/session\/active|trust|experimental\/sandbox|vcs\/status)(?:\?|$)/, (route) =>
        route.fulfill({ status: 404, contentType: "application/json", body: missing }),
      );
      await page.goto(cx.server.url);
      await page.locator("#prompt").fill("say hello");
      await page.locator("#prompt").press("Enter");
      await cx.shows("Hello from the model", page);
      await page.locator(".head").getByRole("button", { name: "Status" }).click();
      await page.locator(".panel h3", { hasText: "Workspace trust" }).waitFor();
    },
  },
  {
    name: "a clock that is wrong does not disturb",
    run: async (cx) => {
      const page = await cx.open("about:blank");
      await page.addInitScript(() => {
        const now = Date.now.bind(Date);
        Date.now = () => now() - 400 * 86_400_000;
      });
      await page.goto(cx.server.url);
      await page.locator(".session-row").first().waitFor();
      await page.locator(".session-time", { hasText: "now" }).first().waitFor();
    },
  },
];
