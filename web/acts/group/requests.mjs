// Permission requests and questions.
import { equal, ok } from "../checks.mjs";

export const table = [
  {
    name: "a command asks before it runs",
    smoke: true,
    run: async (cx) => {
      await cx.ask("RUNIT now");
      await cx.shows("Allow bash?");
      await cx.page.locator(".request", { hasText: "from-bash" }).waitFor();
    },
  },
  {
    name: "the waiting session is marked in list and title",
    run: async (cx) => {
      await cx.page.locator(".sidebar-group", { hasText: "Waiting for you" }).waitFor();
      await cx.until(() => document.title.startsWith("(1) "));
    },
  },
  {
    name: "the command runs after it is allowed, with its colours",
    smoke: true,
    run: async (cx) => {
      await cx.press("Allow once");
      await cx.shows("Ran it.");
      equal("colour", await cx.page.locator(".shell .output .ansi-32").innerText(), "green");
      await cx.until(() => !document.title.startsWith("("));
    },
  },
  {
    name: "a command is allowed by a key",
    run: async (cx) => {
      await cx.ask("FAILIT now");
      await cx.shows("Allow bash?");
      await cx.page.keyboard.press("Control+Alt+p");
      await cx.page.keyboard.press("y");
      await cx.shows("Failed then.");
      await cx.page.locator(".shell .badge.bad", { hasText: "exit 3" }).waitFor();
    },
  },
  {
    name: "a rejection tells the model why",
    run: async (cx) => {
      await cx.ask("DENYIT now");
      await cx.shows("Allow bash?");
      await cx.press("Reject");
      await cx.page.getByRole("textbox", { name: "Tell the model" }).fill("rather not");
      await cx.page.getByRole("textbox", { name: "Tell the model" }).press("Enter");
      await cx.page.locator(".shell.failed").last().waitFor();
      await cx.page.locator(".request").waitFor({ state: "detached" });
      await cx.idle();
    },
  },
  {
    name: "always allows what follows",
    run: async (cx) => {
      await cx.ask("KEEPIT now");
      await cx.shows("Always allows");
      await cx.press("Allow always");
      await cx.shows("Kept it.");
      await cx.shows("kept-two");
    },
  },
  {
    name: "a granted permission is listed and revoked",
    run: async (cx) => {
      await cx.page.evaluate(() => {
        location.hash = "#/settings/permissions";
      });
      await cx.press("Revoke");
      await cx.shows("None");
      await cx.page.goBack();
      await cx.shows("Kept it.");
    },
  },
  {
    name: "always covers a wider pattern that is chosen",
    run: async (cx) => {
      await cx.ask("WIDENIT now");
      await cx.shows("Always allows");
      await cx.page.getByLabel("Also git *").check();
      await cx.press("Allow always");
      await cx.shows("Widened it.");
    },
  },
  {
    name: "a question has its choices",
    smoke: true,
    run: async (cx) => {
      await cx.ask("QUIZ me");
      await cx.shows("Which color?");
      await cx.shows("Question 1 of 2");
      await cx.page.getByLabel("Red").check();
      await cx.press("Next");
    },
  },
  {
    name: "a question allows several answers",
    run: async (cx) => {
      await cx.shows("Pick many");
      await cx.page.getByLabel("Apples").check();
      await cx.page.getByLabel("Pears").check();
      await cx.press("Next");
    },
  },
  {
    name: "the answers are reviewed and sent",
    run: async (cx) => {
      await cx.shows("Review");
      await cx.shows("Apples, Pears");
      await cx.press("Answer");
      await cx.shows("Quizzed.");
      await cx.page.locator(".answers dd", { hasText: "Red" }).last().waitFor();
    },
  },
  {
    name: "an own answer is sent",
    run: async (cx) => {
      await cx.ask("ASKONE thing");
      await cx.shows("Go on?");
      await cx.page.getByRole("textbox", { name: "Your own answer" }).fill("perhaps");
      await cx.press("Answer");
      await cx.shows("Asked one.");
      await cx.page.locator(".answers dd", { hasText: "perhaps" }).waitFor();
    },
  },
  {
    name: "a request of a subagent is answered in its caller",
    run: async (cx) => {
      await cx.ask("HANDRUN now");
      await cx.shows("in the subagent");
      await cx.press("Allow once");
      await cx.shows("Handed the run over.");
    },
  },
  {
    name: "a long output is cut and unfolds",
    run: async (cx) => {
      await cx.ask("LONGOUT now");
      await cx.press("Allow once");
      await cx.shows("Counted.");
      const shell = cx.page.locator(".shell").last();
      await shell.getByRole("button", { name: "All 200 lines" }).click();
      ok("unfolded", await shell.evaluate((element) => element.classList.contains("all")));
    },
  },
  {
    name: "an answer streams and is interrupted",
    run: async (cx) => {
      await cx.ask("SLOWLY now");
      await cx.shows("word3");
      await cx.page.locator("#prompt").press("Escape");
      await cx.shows("Escape twice interrupts");
      await cx.page.locator("#prompt").press("Escape");
      await cx.shows("Interrupted");
      await cx.idle();
      ok("stopped", !(await cx.page.locator(".transcript").textContent()).includes("word399"));
    },
  },
];
