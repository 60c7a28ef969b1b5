// The search in a session, also for what is not drawn, and the page about context and cost.
import { equal, ok } from "../checks.mjs";

const PROMPTS = 400;

/** Returns an exported session with many messages, of which few are loaded at first and fewer are drawn. */
function longSession(id, directory) {
  const start = Date.now() - PROMPTS * 1_000;
  const name = (kind, at) => `${kind}_2000000000${String(at).padStart(4, "0")}search0000000`.slice(0, 30);
  const messages = Array.from({ length: PROMPTS }, (_, at) => {
    const [prompt, answer, created] = [name("msg", 2 * at), name("msg", 2 * at + 1), start + at * 1_000];
    const text =
      at === 3
        ? "The needle is in an old answer."
        : at === 390
          ? "Another Needle is in a newer one."
          : `Answer ${at} about hay.`;
    const time = { start: created, end: created + 1 };
    const shared = {
      modelID: "plain-model",
      providerID: "mock",
      mode: "build",
      agent: "build",
      path: { cwd: directory, root: directory },
      cost: 0.01,
      finish: "stop",
    };
    return [
      {
        info: {
          id: prompt,
          sessionID: id,
          role: "user",
          time: { created },
          agent: "build",
          model: { providerID: "mock", modelID: "plain-model" },
        },
        parts: [
          { id: name("prt", 3 * at), messageID: prompt, sessionID: id, type: "text", text: `Question ${at}`, time },
        ],
      },
      {
        info: {
          ...shared,
          id: answer,
          sessionID: id,
          role: "assistant",
          time: { created: created + 1, completed: created + 2 },
          parentID: prompt,
          tokens: { input: 20_000, output: 500, reasoning: 0, cache: { read: 60_000, write: 0 } },
        },
        parts: [
          { id: name("prt", 3 * at + 1), messageID: answer, sessionID: id, type: "text", text, time },
          ...(at === 200
            ? [
                {
                  id: name("prt", 3 * at + 2),
                  messageID: answer,
                  sessionID: id,
                  type: "tool",
                  callID: "c",
                  tool: "remote_dump",
                  state: { status: "completed", input: {}, output: "folded needle", title: "dump", metadata: {}, time },
                },
              ]
            : []),
        ],
      },
    ];
  }).flat();
  return {
    info: {
      id,
      slug: "search",
      projectID: "global",
      directory,
      title: "A long session",
      version: "1.18.33",
      time: { created: start, updated: Date.now() },
    },
    messages,
  };
}

/** Closes what a command opened. A dialog whose code is loaded when it is first needed can appear late. */
async function closed(page) {
  for (let quiet = 0, tries = 0; quiet < 3; tries += 1) {
    if (tries > 40) throw new Error("a dialog stays open after Escape");
    const open = await page.locator("dialog").count();
    if (open > 0 || tries === 0) await page.keyboard.press("Escape");
    quiet = open > 0 ? 0 : quiet + 1;
    await page.waitForTimeout(100);
  }
}

const field = (cx) => cx.page.getByRole("searchbox", { name: "Search this session" });

export const table = [
  {
    name: "the search finds what is not drawn and not loaded",
    smoke: true,
    run: async (cx) => {
      const id = "ses_20000000000search0000000000";
      cx.stage.import(longSession(id, cx.stage.directory));
      await cx.page.evaluate((id) => {
        location.hash = `#/session/${id}`;
      }, id);
      await cx.shows("Answer 399 about hay.");
      equal("drawn", await cx.page.getByText("needle").count(), 0);
      await cx.page.keyboard.press("Control+f");
      await field(cx).fill("needle");
      await cx.shows("3 of 3");
      await cx.page.getByText("Another Needle is in a newer one.").waitFor();
    },
  },
  {
    name: "enter goes to earlier matches, also in folded outputs, and begins again",
    smoke: true,
    run: async (cx) => {
      await field(cx).press("Enter");
      await cx.shows("2 of 3");
      await cx.page.locator(".found .tool-row", { hasText: "dump" }).waitFor();
      await field(cx).press("Enter");
      await cx.shows("1 of 3");
      await cx.page.getByText("The needle is in an old answer.").waitFor();
      await cx.page.waitForTimeout(400);
      ok(
        "visible",
        await cx.page.getByText("The needle is in an old answer.").evaluate((element) => {
          const box = element.getBoundingClientRect();
          return box.top > 0 && box.bottom < innerHeight;
        }),
      );
      await field(cx).press("Enter");
      await cx.shows("3 of 3");
      await field(cx).press("Shift+Enter");
      await cx.shows("1 of 3");
    },
  },
  {
    name: "capital letters count if the search has some",
    run: async (cx) => {
      await field(cx).fill("Needle");
      await cx.shows("1 of 1");
      await field(cx).fill("nothing like this");
      await cx.page.locator(".search-count", { hasText: "Nothing found" }).waitFor();
    },
  },
  {
    name: "escape closes the search and returns to the prompt",
    run: async (cx) => {
      await field(cx).press("Escape");
      await cx.page.locator(".session-search").waitFor({ state: "detached" });
      equal("focus", await cx.page.evaluate(() => document.activeElement.id), "prompt");
      equal("marks", await cx.page.evaluate(() => CSS.highlights.size), 0);
    },
  },
  {
    name: "the context shows what fills it and what it costs",
    run: async (cx) => {
      await cx.page.locator("#prompt").fill("/cost");
      await cx.page.locator("#prompt").press("Escape");
      await cx.page.locator("#prompt").press("Enter");
      await cx.page.locator(".context-sum", { hasText: "81k of 200k tokens" }).waitFor();
      for (const name of ["System prompt", "Tools", "Your prompts", "Files", "Outputs of tools", "Answers", "Free"])
        await cx.page.locator(".context .status-row", { hasText: name }).first().waitFor();
      await cx.shows("75% of the last request came from the provider's cache");
      await cx.page.locator(".context .facts dd", { hasText: "$4.00" }).waitFor();
      await cx.page.locator(".context-models", { hasText: "400 answers" }).waitFor();
    },
  },
  {
    name: "the meter opens it, too",
    run: async (cx) => {
      await cx.page.locator(".panel").getByRole("button", { name: "Close", exact: true }).click();
      await cx.page.locator(".meter-box").click();
      await cx.page.locator(".context-bar").waitFor();
      await cx.page.locator(".panel").getByRole("button", { name: "Close", exact: true }).click();
    },
  },
  {
    name: "every command of the palette leads somewhere",
    run: async (cx) => {
      const names = async () => {
        await cx.page.keyboard.press("Control+k");
        await cx.page.locator("dialog [role=option]").first().waitFor();
        const found = await cx.page.locator("dialog [role=option] > .clip").allInnerTexts();
        await cx.page.keyboard.press("Escape");
        return found;
      };
      const known = new Set(await names());
      // What changes the session for good, or opens another one when the model has answered, has acts of its own.
      const skipped = [
        /^(Delete|Sign out|Summarize|Undo|Redo|Fork|Export|A long session|Scripted title|Long outputs|A better title)/,
        /^(Let the model review changes|Findings of the review)/,
      ];
      const address = cx.page.url();
      for (const name of [...known].filter((one) => !skipped.some((names) => names.test(one)))) {
        await cx.command(name);
        await cx.page.waitForTimeout(120);
        equal(`errors of ${name}`, await cx.page.locator(".toast.bad").allInnerTexts(), []);
        await closed(cx.page);
        await cx.page.evaluate((url) => {
          location.href = url;
        }, address);
        await cx.page.locator("#prompt").waitFor();
      }
      ok("commands", known.size > 25);
    },
  },
];
