// Tool calls in their forms.
import { equal, ok } from "../checks.mjs";

export const table = [
  {
    name: "a turn with many tools is answered",
    smoke: true,
    run: async (cx) => {
      await cx.ask("FIXIT please");
      await cx.shows("Read more in");
      await cx.idle();
    },
  },
  {
    name: "thinking is folded and can be unfolded",
    run: async (cx) => {
      const fold = cx.page.locator(".thought .fold").first();
      equal("folded", await fold.getAttribute("aria-expanded"), "false");
      await fold.click();
      await cx.shows("The user wants the sum fixed");
    },
  },
  {
    name: "a read file opens in the panel",
    run: async (cx) => {
      await cx.page.locator(".tool .file-link", { hasText: "src/sum.ts" }).first().click();
      await cx.page.locator(".lines .line", { hasText: "export function sum" }).waitFor();
      await cx.press("Close");
    },
  },
  {
    name: "an edit is a diff with the changed words",
    smoke: true,
    run: async (cx) => {
      await cx.page.locator(".diff-line.del", { hasText: "let total = 1" }).waitFor();
      equal("words", await cx.page.locator(".diff-line.add mark").first().innerText(), "0");
    },
  },
  {
    name: "the to-do list shows each state",
    run: async (cx) => {
      await cx.page.locator(".todo.completed", { hasText: "Read the code" }).waitFor();
      await cx.page.locator(".todo.in_progress", { hasText: "Fix the start" }).waitFor();
      await cx.page.locator(".todo.pending", { hasText: "Run the tests" }).waitFor();
    },
  },
  {
    name: "search results unfold and open the file",
    run: async (cx) => {
      const row = cx.page
        .locator(".tool", { hasText: "Search" })
        .filter({ has: cx.page.locator("code", { hasText: "total" }) })
        .first();
      await row.locator(".fold").click();
      await row.locator(".results a").first().click();
      await cx.page.locator(".lines .line").first().waitFor();
      await cx.press("Close");
    },
  },
  {
    name: "Markdown has headings, lists, tables and quotes",
    run: async (cx) => {
      for (const selector of [
        "h2, h3",
        "ol li",
        "ul li",
        "li.check input[type=checkbox]",
        "table th",
        "blockquote",
        "strong",
        "em",
      ]) {
        await cx.page.locator(`.answer .markdown :is(${selector})`).first().waitFor();
      }
      await cx.shows("& elsewhere");
    },
  },
  {
    name: "code is highlighted",
    run: (cx) => cx.page.locator(".markdown .code .hl-keyword", { hasText: "export" }).waitFor(),
  },
  {
    name: "code is copied",
    run: async (cx) => {
      await cx.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await cx.page.locator(".markdown .code .copy").first().click();
      await cx.until(async () => (await navigator.clipboard.readText()).includes("Begins at zero"));
    },
  },
  {
    name: "links open outside and show their target",
    run: async (cx) => {
      const link = cx.page.locator(".markdown a", { hasText: "the docs" });
      equal(
        "link",
        [await link.getAttribute("href"), await link.getAttribute("rel"), await link.getAttribute("target")],
        ["https://example.com/docs", "noopener noreferrer nofollow", "_blank"],
      );
    },
  },
  {
    name: "a path in the text opens the file at its line",
    run: async (cx) => {
      await cx.page.locator(".markdown .file-link", { hasText: "src/sum.ts:2" }).click();
      await cx.page.locator(".line.marked", { hasText: "let total" }).waitFor();
      await cx.press("Close");
    },
  },
  {
    name: "a written file unfolds",
    run: async (cx) => {
      await cx.ask("WRITEIT please");
      await cx.shows("Wrote it.");
      await cx.idle();
      const row = cx.page.locator(".tool", { hasText: "Write" }).last();
      await row.locator(".fold").first().click();
      await row.getByText("export const one").waitFor();
    },
  },
  {
    name: "a finished command shows its last lines and its exit code",
    run: async (cx) => {
      await cx.ask("LONGOUT please");
      await cx.press("Allow once");
      await cx.shows("Counted.");
      await cx.idle();
      const shell = cx.page.locator(".shell").last();
      await shell.locator(".badge", { hasText: "exit 0" }).waitFor();
      await cx.until(() => {
        const output = [...document.querySelectorAll(".shell .output")].at(-1);
        return (
          output.scrollHeight > output.clientHeight && output.scrollTop + output.clientHeight > output.scrollHeight - 4
        );
      });
      await shell.getByRole("button", { name: /All \d+ lines/ }).click();
      await shell.getByRole("button", { name: "Hide the output" }).waitFor();
    },
  },
  {
    name: "sharing is not offered, because no server supports it",
    run: async (cx) => {
      await cx.page
        .locator(".head")
        .getByRole("button", { name: /^More actions/ })
        .click();
      equal("menu", await cx.page.getByRole("menuitem", { name: "Share" }).count(), 0);
      await cx.page.keyboard.press("Escape");
      await cx.page.keyboard.press("Control+k");
      await cx.page.getByRole("combobox", { name: "Type a command" }).fill("share");
      equal("palette", await cx.page.locator("dialog").getByRole("option", { name: /share/i }).count(), 0);
      await cx.page.keyboard.press("Escape");
    },
  },
  {
    name: "a subagent is shown with its result",
    run: async (cx) => {
      await cx.ask("HANDOVER now");
      await cx.shows("Handed over.");
      await cx.page.locator(".task", { hasText: "Look at the tests" }).getByText("fine").first().waitFor();
    },
  },
  {
    name: "a subagent unfolds below its call",
    run: async (cx) => {
      await cx.page.locator(".task").last().getByRole("button", { name: "Show the output" }).click();
      await cx.page.locator(".nested .tool").first().waitFor();
    },
  },
  {
    name: "a subagent opens as a session and leads back",
    run: async (cx) => {
      await cx.page.locator(".task").last().getByRole("button", { name: "Open" }).click();
      await cx.page.locator(".head").getByRole("button", { name: "Back to the calling session" }).click();
      await cx.shows("Handed over.");
    },
  },
  {
    name: "a failure of the model is shown",
    run: async (cx) => {
      await cx.ask("BREAKIT now");
      await cx.shows("the model is out of order");
    },
  },
  {
    name: "a long block of code streams and is complete",
    run: async (cx) => {
      await cx.ask("CODEBIG please");
      await cx.shows("End of code.");
      await cx.idle();
      const lines = await cx.page
        .locator(".markdown .code code")
        .first()
        .evaluate((element) => element.textContent.trimEnd().split("\n").length);
      equal("lines", lines, 3_000);
      ok("one block", (await cx.page.locator(".markdown .code").count()) === 1);
    },
  },
];
