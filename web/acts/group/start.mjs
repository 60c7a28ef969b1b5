// The first view, a session, and its answer.
import { equal, ok } from "../checks.mjs";

export const table = [
  {
    name: "home is displayed with a prompt",
    smoke: true,
    run: async ({ page }) => {
      await page.locator(".home h1").waitFor();
      await page.locator("#prompt").waitFor();
      equal("title", await page.title(), "Codewright");
    },
  },
  { name: "a home without sessions explains what to do", run: (cx) => cx.shows("No sessions yet") },
  {
    name: "the directory of the server is chosen",
    run: async ({ page }) => {
      await page.locator('.place[aria-pressed="true"]', { hasText: "repo" }).waitFor();
    },
  },
  {
    name: "a prompt opens a session and is answered",
    smoke: true,
    run: async (cx) => {
      await cx.say("say hello");
      await cx.shows("Hello from the model");
      ok("address", /#\/session\/ses_/.test(cx.page.url()));
    },
  },
  {
    name: "the session gets its title, in the page and in the list",
    smoke: true,
    run: async (cx) => {
      await cx.page.locator(".head h1", { hasText: "Scripted title" }).waitFor();
      await cx.page.locator(".sidebar-link", { hasText: "Scripted title" }).waitFor();
      await cx.until(() => document.title === "Scripted title · Codewright");
    },
  },
  {
    name: "the end of the turn has agent, model and time",
    run: async (cx) => {
      await cx.page.locator(".answer-foot", { hasText: "plain-model" }).waitFor();
    },
  },
  {
    name: "the prompt is empty and has the focus after sending",
    run: async (cx) => {
      equal("text", await cx.page.locator("#prompt").inputValue(), "");
      equal("focus", await cx.page.evaluate(() => document.activeElement.id), "prompt");
    },
  },
  { name: "the context meter shows what the session used", run: (cx) => cx.page.locator(".meter-box").waitFor() },
  {
    name: "the session is there after the page is loaded again",
    smoke: true,
    run: async (cx) => {
      await cx.page.reload();
      await cx.shows("Hello from the model");
    },
  },
  {
    name: "home lists the session",
    smoke: true,
    run: async (cx) => {
      await cx.home();
      await cx.page.locator(".session-title", { hasText: "Scripted title" }).waitFor();
    },
  },
  {
    name: "home filters sessions",
    run: async (cx) => {
      await cx.page.getByRole("searchbox", { name: "Search sessions" }).fill("zzzz");
      await cx.shows("Nothing found");
      await cx.page.getByRole("searchbox", { name: "Search sessions" }).fill("scripted");
      await cx.page.locator(".session-title", { hasText: "Scripted title" }).waitFor();
    },
  },
  {
    name: "an unknown session is explained",
    run: async (cx) => {
      cx.page.expected.push(/404/);
      await cx.page.evaluate(() => {
        location.hash = "#/session/ses_unknown00000000000000000";
      });
      await cx.shows("This session does not exist");
    },
  },
  {
    name: "an unknown address is home",
    run: async (cx) => {
      await cx.page.evaluate(() => {
        location.hash = "#/nothing/here";
      });
      await cx.page.locator(".home h1").waitFor();
    },
  },
];
