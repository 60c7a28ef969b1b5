// Settings, themes, shortcuts and the gallery.
import { equal, ok } from "../checks.mjs";

const background = (cx) => cx.page.evaluate(() => getComputedStyle(document.body).backgroundColor);

export const table = [
  {
    name: "the colours change to dark and back",
    run: async (cx) => {
      await cx.page.keyboard.press("Control+,");
      await cx.page.locator(".settings").waitFor();
      const light = await background(cx);
      await cx.press("Dark");
      ok("dark", (await background(cx)) !== light);
      await cx.press("Light");
      equal("light", await background(cx), light);
      await cx.press("System");
    },
  },
  {
    name: "a theme of the terminal client is used",
    run: async (cx) => {
      await cx.page.getByRole("combobox", { name: "Theme" }).selectOption("dracula");
      equal("background", await background(cx), "rgb(248, 248, 242)");
    },
  },
  {
    name: "themes are previewed in the picker and put back",
    run: async (cx) => {
      const before = await background(cx);
      await cx.command("Theme");
      await cx.page.locator("dialog").getByRole("option", { name: "gruvbox" }).hover();
      await cx.until((was) => getComputedStyle(document.body).backgroundColor !== was, before);
      await cx.page.keyboard.press("Escape");
      await cx.until((was) => getComputedStyle(document.body).backgroundColor === was, before);
    },
  },
  {
    name: "a theme file is imported",
    run: async (cx) => {
      const theme = {
        defs: { paper: "#ffeedd" },
        theme: {
          text: { dark: "#ffffff", light: "#111111" },
          background: { dark: "#000000", light: "paper" },
          primary: "#0033aa",
        },
      };
      await cx.page
        .locator('input[aria-label="Import a theme file"]')
        .setInputFiles({ name: "mine.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(theme)) });
      await cx.until(() => getComputedStyle(document.body).backgroundColor === "rgb(255, 238, 221)");
    },
  },
  {
    name: "a file that is no theme is refused",
    run: async (cx) => {
      await cx.page
        .locator('input[aria-label="Import a theme file"]')
        .setInputFiles({ name: "other.json", mimeType: "application/json", buffer: Buffer.from('{"a":1}') });
      await cx.shows("The file is not a theme");
      await cx.page.getByRole("combobox", { name: "Theme" }).selectOption("codewright");
    },
  },
  {
    name: "choices stay after the page is loaded again",
    run: async (cx) => {
      await cx.page.getByRole("switch", { name: "Show times" }).check();
      await cx.page.reload();
      await cx.page.locator(".settings").waitFor();
      ok("checked", await cx.page.getByRole("switch", { name: "Show times" }).isChecked());
      await cx.page.getByRole("switch", { name: "Show times" }).uncheck();
    },
  },
  {
    name: "the text size changes",
    run: async (cx) => {
      const size = () => cx.page.evaluate(() => parseFloat(getComputedStyle(document.documentElement).fontSize));
      const before = await size();
      await cx.press("130%");
      equal("size", Math.round(await size()), Math.round(before * 1.3));
      await cx.press("100%");
    },
  },
  {
    name: "settings are searched",
    run: async (cx) => {
      await cx.page.getByRole("searchbox", { name: "Search settings" }).fill("thinking");
      equal("found", await cx.page.locator(".setting").count(), 1);
      await cx.page.getByRole("searchbox", { name: "Search settings" }).fill("");
    },
  },
  {
    name: "providers are listed and searched",
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "Providers" }).click();
      await cx.page.locator(".status-row", { hasText: "Mock" }).getByText("connected").waitFor();
      await cx.page.getByRole("searchbox", { name: "Search", exact: true }).fill("groq");
      await cx.page.locator(".status-row", { hasText: /groq/i }).first().waitFor();
    },
  },
  {
    name: "a key connects a provider",
    run: async (cx) => {
      await cx.page
        .locator(".status-row", { hasText: /groq/i })
        .first()
        .getByRole("button", { name: "Connect" })
        .click();
      await cx.page.getByLabel("API key").fill("gsk-test-key");
      await cx.press("Save");
      await cx.shows("is connected");
      // The models of the provider are offered.
      await cx.page.getByRole("combobox", { name: "Choose a model" }).waitFor();
      await cx.page.keyboard.press("Escape");
      await cx.page.getByRole("combobox", { name: "Choose a model" }).waitFor({ state: "detached" });
      await cx.page
        .locator(".status-row", { hasText: /groq/i })
        .first()
        .getByRole("button", { name: "Sign out" })
        .waitFor();
    },
  },
  {
    name: "a provider is disconnected",
    run: async (cx) => {
      await cx.page
        .locator(".status-row", { hasText: /groq/i })
        .first()
        .getByRole("button", { name: "Sign out" })
        .click();
      await cx.page
        .locator(".status-row", { hasText: /groq/i })
        .first()
        .getByRole("button", { name: "Connect" })
        .waitFor();
    },
  },
  {
    name: "the default model is set with the word of the configuration",
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "Models" }).click();
      await cx.page.locator(".setting code", { hasText: "small_model" }).waitFor();
      await cx.page.getByRole("combobox", { name: "Small model" }).selectOption("mock/other-model");
      await cx.shows("Written to your configuration");
      equal("config", (await cx.server.call("GET", "/global/config")).small_model, "mock/other-model");
    },
  },
  {
    name: "a permission rule is added, changed and followed",
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "Permissions" }).click();
      await cx.page.getByLabel("Permission", { exact: true }).selectOption("bash");
      await cx.page.getByLabel("Pattern").fill("make test *");
      await cx.press("Add rule");
      const row = cx.page.locator(".status-row", { hasText: "make test *" });
      await row.waitFor();
      await row.getByRole("combobox").selectOption("deny");
      await cx.until(() =>
        [...document.querySelectorAll(".status-row")].some(
          (one) => one.textContent.includes("make test *") && one.querySelector("select").value === "deny",
        ),
      );
      const { permission } = await cx.server.call("GET", "/global/config");
      equal("rules", permission, { bash: { "*": "ask", "make test *": "deny" } });
    },
  },
  {
    name: "a server of tools is added and listed with its failure",
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "MCP servers" }).click();
      await cx.page.getByLabel("Name", { exact: true }).fill("no good");
      await cx.shows("A name has letters");
      await cx.page.getByLabel("Name", { exact: true }).fill("absent");
      await cx.page.getByRole("textbox", { name: /^Command/ }).fill('/nonexistent/server --name "two words"');
      await cx.page.getByLabel(/^Variables/).fill("A_TOKEN=secret");
      await cx.page.getByRole("button", { name: "Add a server" }).click();
      await cx.page.locator(".status-row", { hasText: "absent" }).getByText("failed").waitFor();
      const { mcp } = await cx.server.call("GET", "/global/config");
      equal("command", mcp.absent.command, ["/nonexistent/server", "--name", "two words"]);
    },
  },
  {
    name: "an agent is added and can be chosen",
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "Agents" }).click();
      await cx.page.locator(".status-row", { hasText: "build" }).first().waitFor();
      await cx.page.getByLabel("Name", { exact: true }).fill("reviewer");
      await cx.page.getByLabel(/^Description/).fill("Reads changes");
      await cx.page.getByRole("button", { name: "Add an agent" }).click();
      await cx.page.locator(".status-row", { hasText: "Reads changes" }).waitFor();
      await cx.command("Choose an agent");
      await cx.page
        .locator("dialog")
        .getByRole("option", { name: /reviewer/ })
        .waitFor();
      await cx.page.keyboard.press("Escape");
    },
  },
  {
    name: "an agent, a server of tools and a rule are removed at a second press",
    run: async (cx) => {
      const remove = async (text) => {
        const row = cx.page
          .locator(".status-row", { hasText: text })
          .filter({ has: cx.page.getByRole("button", { name: /emove: / }) });
        await row.getByRole("button", { name: /^Remove: / }).click();
        await row.getByRole("button", { name: /^Press again to remove: / }).click();
        await row.waitFor({ state: "detached" });
      };
      await cx.page.evaluate(() => {
        location.hash = "#/settings/agents";
      });
      await remove("Reads changes");
      await cx.page.getByRole("tab", { name: "MCP servers" }).click();
      await remove("absent");
      await cx.page.getByRole("tab", { name: "Permissions" }).click();
      await remove("make test *");
      await cx.page.getByRole("tab", { name: "Models" }).click();
      await cx.page.getByRole("combobox", { name: "Small model" }).selectOption("");
      await cx.page
        .locator(".setting", { hasText: "small_model" })
        .getByRole("combobox")
        .and(cx.page.locator(":has(option:checked[value=''])"))
        .waitFor();
      const { agent, mcp, permission, small_model: small } = await cx.server.call("GET", "/global/config");
      equal("agent", agent?.reviewer, undefined);
      equal("server", mcp?.absent, undefined);
      equal("rules", permission, { bash: { "*": "ask" } });
      equal("small model", small, undefined);
    },
  },
  {
    name: "every command of the palette, the keys and the slash commands exists",
    run: async (cx) => {
      const absent = /share the session|upgrade|workspaces/i;
      await cx.page.keyboard.press("Control+k");
      await cx.page.locator("dialog [role=option]").first().waitFor();
      ok("palette", !absent.test(await cx.page.locator("dialog").innerText()));
      await cx.page.keyboard.press("Escape");
      await cx.page.evaluate(() => {
        location.hash = "#/shortcuts";
      });
      await cx.page.locator(".keys").first().waitFor();
      ok("keys", !absent.test(await cx.page.locator("main").innerText()));
      await cx.fresh();
      await cx.page.locator("#prompt").fill("/sh");
      await cx.page.waitForTimeout(500);
      ok(
        "slash",
        !(await cx.page.locator(".completion .option").allInnerTexts()).some((text) => /^\/share/.test(text)),
      );
      await cx.page.locator("#prompt").fill("");
      await cx.page.evaluate(() => {
        location.hash = "#/settings";
      });
    },
  },
  {
    name: "the palette does not offer what is only for developers",
    run: async (cx) => {
      await cx.page.keyboard.press("Control+k");
      await cx.page.getByRole("combobox", { name: "Type a command" }).fill("components");
      equal(
        "found",
        await cx.page
          .locator("dialog")
          .getByRole("option", { name: /omponents/ })
          .count(),
        0,
      );
      await cx.page.keyboard.press("Escape");
      await cx.page.evaluate(() => {
        location.hash = "#/settings";
      });
    },
  },
  {
    name: "the server and its version are shown",
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "Server", exact: true }).click();
      await cx.page
        .locator(".setting", { hasText: "Version" })
        .locator("code", { hasText: /\d+\.\d+/ })
        .waitFor();
    },
  },
  {
    name: "the shortcuts are listed",
    run: async (cx) => {
      await cx.page.keyboard.press("Control+/");
      await cx.page.locator(".keys", { hasText: "New session" }).locator("kbd", { hasText: "Alt" }).first().waitFor();
    },
  },
  {
    name: "the gallery shows every component",
    run: async (cx) => {
      await cx.page.evaluate(() => {
        location.hash = "#/gallery";
      });
      for (const title of [
        "Buttons",
        "Fields",
        "Dialog, picker, menu, toast",
        "Tabs and segments",
        "Markdown",
        "Code",
        "Diff",
        "Output",
        "Virtual list",
      ]) {
        await cx.page.getByRole("heading", { name: title, exact: true }).waitFor();
      }
    },
  },
  {
    name: "a dialog keeps the focus and returns it",
    run: async (cx) => {
      await cx.page.getByRole("button", { name: "Dialog", exact: true }).click();
      await cx.page.getByRole("dialog", { name: "A dialog" }).waitFor();
      for (let presses = 0; presses < 8; presses += 1) {
        await cx.page.keyboard.press("Tab");
        ok(
          "inside",
          await cx.page.evaluate(
            () =>
              document.activeElement === document.body ||
              document.querySelector("dialog").contains(document.activeElement),
          ),
        );
      }
      await cx.page.keyboard.press("Escape");
      equal("focus", await cx.page.evaluate(() => document.activeElement.textContent), "Dialog");
    },
  },
  {
    name: "a long list has few elements and scrolls",
    run: async (cx) => {
      const list = cx.page.locator(".gallery-list .virtual");
      await list.scrollIntoViewIfNeeded();
      ok("few", (await list.locator(".virtual-item").count()) < 200);
      await list.evaluate((element) => {
        element.scrollTop = element.scrollHeight;
      });
      await cx.page.getByText("Row 9999").waitFor();
    },
  },
  {
    name: "the sidebar is hidden and shown by a key",
    run: async (cx) => {
      await cx.page.keyboard.press("Control+b");
      await cx.page.locator(".sidebar").waitFor({ state: "detached" });
      await cx.page.keyboard.press("Control+b");
      await cx.page.locator(".sidebar").waitFor();
    },
  },
  {
    name: "a directory is opened by its path",
    run: async (cx) => {
      await cx.home();
      await cx.page.locator(".home-places").getByRole("button", { name: "Open a directory" }).click();
      await cx.page.getByRole("textbox", { name: "Path of a directory" }).fill(`${cx.stage.directory}/src`);
      await cx.page.keyboard.press("Enter");
      await cx.page.locator(".head-place", { hasText: "repo/src" }).waitFor();
    },
  },
  {
    name: "a directory that does not exist is refused",
    run: async (cx) => {
      cx.page.expected.push(/status of 4/);
      await cx.home();
      await cx.page.locator(".home-places").getByRole("button", { name: "Open a directory" }).click();
      await cx.page.getByRole("textbox", { name: "Path of a directory" }).fill("/does/not/exist");
      await cx.page.keyboard.press("Enter");
      await cx.page.locator("dialog .notice.bad").waitFor();
      await cx.page.keyboard.press("Escape");
      await cx.page.locator(".place", { hasText: "repo" }).first().click();
    },
  },
];
