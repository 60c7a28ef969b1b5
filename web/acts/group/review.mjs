// Reviews of changes and reports of problems.
import { readFileSync } from "node:fs";
import { equal, ok } from "../checks.mjs";

const row = (cx, title) => cx.page.locator(".finding", { hasText: title });

export const table = [
  {
    name: "a review is a list of findings",
    smoke: true,
    run: async (cx) => {
      cx.stage.write("odd.txt", "one\ntwo\n");
      await cx.fresh();
      await cx.say("/review");
      await cx.page.getByRole("dialog", { name: "Findings of the review" }).waitFor();
      await row(cx, "The second line is odd").locator(".diff-line.add", { hasText: "2" }).waitFor();
      await row(cx, "The second line is odd").getByText("odd.txt:2").waitFor();
    },
  },
  {
    name: "a change is applied",
    run: async (cx) => {
      await row(cx, "The second line is odd").getByRole("button", { name: "Apply" }).click();
      await row(cx, "The second line is odd").getByRole("button", { name: "Applied" }).waitFor();
      equal("file", cx.stage.read("odd.txt"), "one\n2\n");
    },
  },
  {
    name: "a suggestion in words becomes a prompt",
    run: async (cx) => {
      await row(cx, "The first line is short").getByRole("button", { name: "Give it to the agent" }).click();
      await cx.page.locator(".new-session #prompt").waitFor();
      ok("prompt", (await cx.page.locator("#prompt").inputValue()).includes("odd.txt:1: The first line is short"));
      await cx.page.locator("#prompt").fill("");
      await cx.page.goBack();
    },
  },
  {
    name: "the findings are opened again, and dismissed",
    run: async (cx) => {
      await cx.page.locator(".head h1").waitFor();
      await cx.say("/findings");
      await row(cx, "The first line is short").getByRole("button", { name: "Dismiss" }).click();
      await row(cx, "The first line is short").waitFor({ state: "detached" });
      await cx.page.keyboard.press("Escape");
      cx.stage.remove("odd.txt");
    },
  },
  {
    name: "a range that does not exist is explained",
    run: async (cx) => {
      cx.page.expected.push(/status of 400/);
      await cx.fresh();
      await cx.say("/review nosuch...HEAD");
      await cx.shows("there is no commit `nosuch`");
    },
  },
  {
    name: "a report of a problem is downloaded, with what to do",
    run: async (cx) => {
      await cx.fresh();
      const waiting = cx.page.waitForEvent("download");
      await cx.say("/bug");
      const file = await waiting;
      ok("name", /^codewright-bug-\d+\.md$/.test(file.suggestedFilename()));
      ok("content", readFileSync(await file.path(), "utf8").includes("## codewright doctor"));
      await cx.shows("attach the file to a new issue");
      await cx.press("Done");
    },
  },
];
