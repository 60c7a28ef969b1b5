// Sessions: pickers, rename, pin, archive, delete, fork, undo, redo, timeline, compaction, export.
import { readFileSync } from "node:fs";
import { equal, ok } from "../checks.mjs";

export const table = [
  {
    name: "a model is chosen",
    smoke: true,
    run: async (cx) => {
      await cx.ask("say hello");
      await cx.shows("Hello from the model");
      await cx.page.getByRole("button", { name: "Model: Plain Model" }).click();
      await cx.page.getByRole("combobox", { name: "Choose a model" }).fill("other");
      await cx.page.keyboard.press("Enter");
      await cx.page.getByRole("button", { name: "Model: Other Model" }).waitFor();
    },
  },
  {
    name: "a variant is chosen",
    run: async (cx) => {
      await cx.page.getByRole("button", { name: "Variant: default" }).click();
      await cx.page.getByRole("option", { name: "careful" }).click();
      await cx.page.getByRole("button", { name: "Variant: careful" }).waitFor();
    },
  },
  {
    name: "a model becomes a favourite and is listed first",
    run: async (cx) => {
      await cx.page.keyboard.press("Control+Alt+m");
      await cx.page.getByRole("combobox", { name: "Choose a model" }).fill("other");
      await cx.page.keyboard.press("Control+f");
      await cx.page.getByRole("combobox", { name: "Choose a model" }).fill("");
      await cx.page.locator(".options-group", { hasText: "Favourites" }).waitFor();
      await cx.page.keyboard.press("Escape");
    },
  },
  {
    name: "an agent is chosen",
    run: async (cx) => {
      await cx.page.getByRole("button", { name: "Agent: build" }).click();
      await cx.page.getByRole("option", { name: "plan" }).click();
      await cx.page.getByRole("button", { name: "Agent: plan" }).waitFor();
    },
  },
  {
    name: "the answer comes from the chosen agent and model",
    run: async (cx) => {
      await cx.say("again");
      await cx.page.locator(".answer-foot", { hasText: "other-model" }).waitFor();
      await cx.page.locator(".answer-foot", { hasText: "plan" }).waitFor();
    },
  },
  {
    name: "a session is renamed",
    smoke: true,
    run: async (cx) => {
      await cx.command("Rename the session");
      await cx.page.getByRole("textbox", { name: "Title" }).fill("A better title");
      await cx.page.keyboard.press("Enter");
      await cx.page.locator(".head h1", { hasText: "A better title" }).waitFor();
    },
  },
  {
    name: "a session is pinned",
    run: async (cx) => {
      await cx.page.locator(".head").getByRole("button", { name: "More actions" }).click();
      await cx.page.getByRole("menuitem", { name: "Pin" }).click();
      await cx.page.locator(".sidebar-group", { hasText: "Pinned" }).waitFor();
    },
  },
  {
    name: "a menu is used with the keyboard",
    run: async (cx) => {
      await cx.page.locator(".head").getByRole("button", { name: "More actions" }).focus();
      await cx.page.keyboard.press("Enter");
      await cx.page.getByRole("menuitem", { name: "Rename" }).waitFor();
      await cx.page.keyboard.press("ArrowDown");
      await cx.page.keyboard.press("Enter");
      await cx.page.locator(".sidebar-group", { hasText: "Pinned" }).waitFor({ state: "detached" });
    },
  },
  {
    name: "sessions are searched on the server",
    run: async (cx) => {
      await cx.page.keyboard.press("Control+Alt+l");
      await cx.page.getByRole("combobox", { name: "Search sessions" }).fill("better");
      await cx.page.getByRole("option", { name: "A better title" }).click();
      await cx.page.locator(".head h1", { hasText: "A better title" }).waitFor();
    },
  },
  {
    name: "the palette finds a session",
    run: async (cx) => {
      await cx.home();
      await cx.page.keyboard.press("Control+k");
      await cx.page.getByRole("combobox", { name: "Type a command" }).fill("better title");
      await cx.page.getByRole("option", { name: "A better title" }).click();
      await cx.page.locator(".head h1", { hasText: "A better title" }).waitFor();
    },
  },
  {
    name: "the timeline leads to a prompt",
    run: async (cx) => {
      await cx.page.keyboard.press("Control+Alt+g");
      await cx.page.getByRole("option", { name: "say hello" }).click();
      await cx.page.locator(".prompt", { hasText: "say hello" }).waitFor();
    },
  },
  {
    name: "an undo shows the files that change",
    run: async (cx) => {
      cx.stage.remove("src/new.ts");
      await cx.ask("WRITEIT please");
      await cx.shows("Wrote it.");
      await cx.idle();
      await cx.page.locator(".prompt").last().hover();
      await cx.page.locator(".prompt").last().getByRole("button", { name: "Undo from here" }).click();
      await cx.page.getByRole("dialog").getByText("export const one").waitFor();
    },
  },
  {
    name: "an undo takes back the prompt and its files",
    smoke: false,
    run: async (cx) => {
      await cx.page.getByRole("dialog").getByRole("button", { name: "Undo" }).click();
      await cx.shows("1 message is undone");
      equal("prompt", await cx.page.locator("#prompt").inputValue(), "WRITEIT please");
      let exists = true;
      try {
        cx.stage.read("src/new.ts");
      } catch {
        exists = false;
      }
      equal("file", exists, false);
    },
  },
  {
    name: "a redo brings them back",
    run: async (cx) => {
      await cx.page.locator("#prompt").fill("");
      await cx.page.locator(".reverted").getByRole("button", { name: "Redo" }).click();
      await cx.shows("Wrote it.");
      ok("file", cx.stage.read("src/new.ts").includes("one"));
    },
  },
  {
    name: "a session is forked",
    run: async (cx) => {
      const before = cx.page.url();
      await cx.command("Fork the session");
      await cx.page.getByRole("option").first().click();
      await cx.page.locator(".head h1", { hasText: "fork" }).waitFor();
      ok("another session", cx.page.url() !== before);
    },
  },
  {
    name: "a fork is deleted, and the deletion is undone",
    run: async (cx) => {
      await cx.page.locator(".head").getByRole("button", { name: "More actions" }).click();
      await cx.page.getByRole("menuitem", { name: "Delete" }).click();
      await cx.shows("will be deleted");
      await cx.page.locator(".sidebar-link", { hasText: "fork" }).waitFor({ state: "detached" });
      await cx.page.locator(".toast").getByRole("button", { name: "Undo" }).click();
      await cx.page.locator(".sidebar-link", { hasText: "fork" }).waitFor();
    },
  },
  {
    name: "a session is deleted",
    run: async (cx) => {
      const row = cx.page.locator(".session-row", { hasText: "fork" }).first();
      await row.getByRole("button", { name: "More actions" }).click();
      await cx.page.getByRole("menuitem", { name: "Delete" }).click();
      await row.waitFor({ state: "detached" });
      for (let waits = 0; waits < 40; waits += 1) {
        const all = await cx.server.call("GET", "/experimental/session?roots=true");
        if (!all.some((session) => session.title.includes("fork"))) return;
        await cx.page.waitForTimeout(250);
      }
      throw new Error("it still exists");
    },
  },
  {
    name: "a deletion is carried out if the page closes before the time to undo it",
    run: async (cx) => {
      const made = await cx.server.call("POST", "/session", { title: "Closed early" });
      const page = await cx.open();
      const row = page.locator(".session-row", { hasText: "Closed early" });
      await row.getByRole("button", { name: "More actions" }).click();
      await page.getByRole("menuitem", { name: "Delete" }).click();
      await row.waitFor({ state: "detached" });
      await page.goto("about:blank");
      for (let waits = 0; waits < 40; waits += 1) {
        const all = await cx.server.call("GET", "/experimental/session?roots=true");
        if (!all.some((session) => session.id === made.id)) return;
        await cx.page.waitForTimeout(100);
      }
      throw new Error("it still exists");
    },
  },
  {
    name: "a session is archived",
    run: async (cx) => {
      const row = cx.page.locator(".session-row", { hasText: "A better title" }).first();
      await row.getByRole("button", { name: "More actions" }).click();
      await cx.page.getByRole("menuitem", { name: "Archive" }).click();
      await row.waitFor({ state: "detached" });
    },
  },
  {
    name: "an archived session is restored",
    run: async (cx) => {
      await cx.page.evaluate(() => {
        location.hash = "#/settings/archive";
      });
      await cx.page
        .locator(".status-row", { hasText: "A better title" })
        .getByRole("button", { name: "Restore" })
        .click();
      await cx.page.locator(".sidebar-link", { hasText: "A better title" }).waitFor();
    },
  },
  {
    name: "a conversation is summarized",
    run: async (cx) => {
      await cx.page.locator(".sidebar-link", { hasText: "A better title" }).click();
      await cx.shows("Hello from the model");
      await cx.command("Summarize the conversation");
      await cx.page.locator(".compaction").first().waitFor();
      await cx.idle();
    },
  },
  {
    name: "a session is exported as Markdown",
    run: async (cx) => {
      const [download] = await Promise.all([cx.page.waitForEvent("download"), cx.command("Export as Markdown")]);
      const text = readFileSync(await download.path(), "utf8");
      ok("prompt", text.includes("say hello") && text.includes("# A better title"));
    },
  },
  {
    name: "a session is exported as JSON",
    run: async (cx) => {
      const [download] = await Promise.all([cx.page.waitForEvent("download"), cx.command("Export as JSON")]);
      const value = JSON.parse(readFileSync(await download.path(), "utf8"));
      equal("title", value.info.title, "A better title");
    },
  },
  {
    name: "the last answer is copied",
    run: async (cx) => {
      await cx.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await cx.ask("say hello");
      await cx.shows("Hello from the model");
      await cx.idle();
      await cx.page.keyboard.press("Control+Alt+y");
      await cx.until(async () => (await navigator.clipboard.readText()) === "Hello from the **model**.");
    },
  },
  {
    name: "skills are listed",
    run: async (cx) => {
      await cx.command("Skills");
      await cx.page.getByRole("dialog", { name: "Skills" }).getByRole("option").first().waitFor();
      await cx.page.keyboard.press("Escape");
    },
  },
];
