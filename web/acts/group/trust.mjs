// Workspace trust.
import { equal, ok } from "../checks.mjs";

const dialog = (cx) => cx.page.locator("dialog.trust");

export const table = [
  {
    name: "an undecided repository opens the dialog with what waits",
    run: async (cx) => {
      cx.trusting = await cx.stage.serve({ env: { CODEWRIGHT_TRUST: "" } });
      cx.page = await cx.open(cx.trusting.url, {});
      cx.page.expected.push(/status of 4/);
      await dialog(cx).waitFor();
      await dialog(cx).getByText("greet").first().waitFor();
      equal("focus", await cx.page.evaluate(() => document.activeElement.textContent), "Not now");
    },
  },
  {
    name: "a click right after the dialog appears is ignored",
    run: async (cx) => {
      await cx.page.reload();
      await dialog(cx).waitFor();
      await cx.page.evaluate(() =>
        [...document.querySelectorAll("dialog.trust button")].forEach((button) => button.click()),
      );
      ok("open", await dialog(cx).isVisible());
    },
  },
  {
    name: "escape decides nothing, and a badge stays",
    run: async (cx) => {
      await cx.page.waitForTimeout(400);
      await cx.page.keyboard.press("Escape");
      await dialog(cx).waitFor({ state: "detached" });
      await cx.page.evaluate(() => {
        location.hash = "#/new";
      });
      await cx.page.locator(".head .badge", { hasText: "untrusted" }).waitFor();
    },
  },
  {
    name: "the badge opens the dialog, and trust is stored",
    run: async (cx) => {
      await cx.page.locator(".head .badge", { hasText: "untrusted" }).click();
      await cx.page.waitForTimeout(400);
      await dialog(cx).getByRole("button", { name: "Trust this repository" }).click();
      await dialog(cx).waitFor({ state: "detached" });
      await cx.page.locator(".head .badge", { hasText: "untrusted" }).waitFor({ state: "detached" });
    },
  },
  {
    name: "a changed control file opens the dialog again",
    run: async (cx) => {
      cx.stage.write(".opencode/command/second.md", "---\ndescription: Another\n---\nrun it\n");
      // The server reads the configuration again.
      await cx.trusting.call("POST", `/instance/dispose?directory=${encodeURIComponent(cx.stage.directory)}`);
      await dialog(cx).getByText("second").first().waitFor();
      await cx.page.waitForTimeout(400);
      await dialog(cx).getByRole("button", { name: "Do not trust it" }).click();
      await dialog(cx).waitFor({ state: "detached" });
      cx.page.expected.push(/ERR_/);
      await cx.trusting.stop();
    },
  },
];
