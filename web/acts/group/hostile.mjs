// Hostile texts, links, pictures, sequences and names from models and repositories do nothing.
import { equal, ok } from "../checks.mjs";

const untouched = async (cx) => {
  ok("title", (await cx.page.title()) !== "owned");
  const found = await cx.page.evaluate(
    () =>
      document.querySelectorAll(
        ".answer :is(script, iframe, style, base, object, embed, form, svg:not(.icon-svg), [onerror], [onload], " +
          "[style*='url'])",
      ).length,
  );
  equal("elements", found, 0);
};

/** Returns an exported session with a command and another tool that wrote 50 MB each. */
function longOutputs(id, directory) {
  const now = Date.now();
  const name = (kind, at) => `${kind}_2000000000${at}longoutput00000`.slice(0, 30);
  const time = { start: now, end: now + 1 };
  const [prompt, answer] = [name("msg", 1), name("msg", 2)];
  const output = `${"a line of a long output\n".repeat(2_100_000)}the-end`;
  const parts = ["bash", "remote_dump"].map((tool, at) => ({
    id: name("prt", at + 2),
    messageID: answer,
    sessionID: id,
    type: "tool",
    callID: `call${at}`,
    tool,
    state: { status: "completed", input: { command: "cat long" }, output, title: "long", metadata: {}, time },
  }));
  const shared = {
    modelID: "plain-model",
    providerID: "mock",
    mode: "build",
    agent: "build",
    path: { cwd: directory, root: directory },
    cost: 0,
    finish: "stop",
  };
  const messages = [
    {
      info: {
        id: prompt,
        sessionID: id,
        role: "user",
        time: { created: now },
        agent: "build",
        model: { providerID: "mock", modelID: "plain-model" },
      },
      parts: [{ id: name("prt", 1), messageID: prompt, sessionID: id, type: "text", text: "Print it", time }],
    },
    {
      info: {
        ...shared,
        id: answer,
        sessionID: id,
        role: "assistant",
        time: { created: now + 1, completed: now + 2 },
        parentID: prompt,
        tokens: { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } },
      },
      parts,
    },
  ];
  return {
    info: {
      id,
      slug: "long",
      projectID: "global",
      directory,
      title: "Long outputs",
      version: "1.18.33",
      time: { created: now, updated: now },
    },
    messages,
  };
}

export const table = [
  {
    name: "markup of a model is displayed as text",
    smoke: true,
    run: async (cx) => {
      await cx.ask("HOSTILE please");
      await cx.shows("<img src=x onerror=");
      await cx.shows("<iframe src=");
      await cx.idle();
      await untouched(cx);
    },
  },
  {
    name: "pictures of other servers are not loaded",
    run: async (cx) => {
      await cx.shows("Image: a picture");
      equal("pictures", await cx.page.locator(".answer .markdown img").count(), 0);
    },
  },
  {
    name: "links have only safe targets",
    run: async (cx) => {
      const targets = await cx.page
        .locator(".answer .markdown a")
        .evaluateAll((links) => links.map((link) => link.getAttribute("href")));
      ok(
        `targets ${targets}`,
        targets.every((target) => target === "#" || /^https?:/.test(target)),
      );
      for (const link of await cx.page.locator(".answer .markdown span, .answer .markdown code").all())
        await link.click({ trial: true, timeout: 500 }).catch(() => {});
      await untouched(cx);
    },
  },
  {
    name: "control characters and changes of direction are removed from prose",
    run: async (cx) => {
      const text = await cx.page.locator(".answer .markdown").textContent();
      ok("characters", !/[\u0000-\u0008\u000b-\u001f\u202a-\u202e\u2066-\u2069]/.test(text));
    },
  },
  {
    name: "formulas are drawn, and cannot link, load or name anything",
    run: async (cx) => {
      await cx.ask("FORMULA please");
      await cx.page.locator(".answer math mfrac").first().waitFor();
      await cx.shows("It costs $5 and $10.");
      await cx.idle();
      equal("formulas", await cx.page.locator(".answer math").count(), 2);
      equal(
        "parts of formulas",
        await cx.page.locator(".answer math :is([href], [src], [id], [class], a, img)").count(),
        0,
      );
      await cx.shows("\\href{javascript:document.title='owned'}{x}");
      await untouched(cx);
    },
  },
  {
    name: "outputs of 50 MB show their end and their size",
    run: async (cx) => {
      const id = "ses_20000000000longoutput0000";
      cx.stage.import(longOutputs(id, cx.stage.directory));
      await cx.page.evaluate((id) => {
        location.hash = `#/session/${id}`;
      }, id);
      await cx.page.locator(".shell .output", { hasText: "the-end" }).waitFor();
      await cx.shows("Only the last part of 48.1 MiB is displayed");
      await cx.page.locator(".tool-row", { hasText: "remote_dump" }).click();
      await cx.page.locator(".tool-body .output", { hasText: "the-end" }).waitFor();
      ok("size", (await cx.page.locator(".transcript").evaluate((element) => element.textContent.length)) < 1_000_000);
      await cx.page.locator("#prompt").fill("still usable");
      await cx.page.locator("#prompt").fill("");
    },
  },
  {
    name: "the page may not be told to run code",
    run: async (cx) => {
      cx.page.expected.push(/Trusted|TrustedHTML|inline|Content Security/);
      const refused = await cx.page.evaluate(() => {
        const results = [];
        for (const work of [
          () => {
            document.body.insertAdjacentHTML("beforeend", "<i></i>");
          },
          () => {
            document.createElement("div").innerHTML = "<i></i>";
          },
          () => {
            globalThis.trustedTypes.createPolicy("other", {});
          },
        ]) {
          try {
            work();
            results.push("done");
          } catch {
            results.push("refused");
          }
        }
        try {
          document.createElement("script").src = "data:text/javascript,1";
          results.push("done");
        } catch {
          results.push("refused");
        }
        return results;
      });
      equal("refused", refused, ["refused", "refused", "refused", "refused"]);
    },
  },
  {
    name: "sequences in the output of a command do nothing",
    run: async (cx) => {
      await cx.ask("ODDIT now");
      await cx.press("Allow once");
      await cx.shows("Odd.");
      const output = await cx.page.locator(".shell .output").last().innerText();
      ok(
        `output ${JSON.stringify(output)}`,
        !output.includes("owned") && !output.includes("\u001b") && output.includes("d"),
      );
      await untouched(cx);
    },
  },
  {
    name: "a hostile file name is displayed as text",
    run: async (cx) => {
      await cx.page.keyboard.press("Control+Alt+f");
      const row = cx.page.getByRole("treeitem", { name: /evil<img/ });
      await row.click();
      await cx.page.locator(".lines .line", { hasText: "evil" }).waitFor();
      equal("pictures", await cx.page.locator(".panel img").count(), 0);
      await cx.press("Back");
    },
  },
  {
    name: "a hostile title is displayed as text",
    run: async (cx) => {
      const session = await cx.server.call("POST", "/session", {
        title: "<b>bold</b><img src=x onerror=\"document.title='owned'\">\u202e",
      });
      await cx.page.evaluate((id) => {
        location.hash = `#/session/${id}`;
      }, session.id);
      await cx.page.locator(".head h1", { hasText: "<b>bold</b>" }).waitFor();
      await untouched(cx);
      await cx.server.call("DELETE", `/session/${session.id}`);
    },
  },
  {
    name: "a hostile error of the server is displayed as text",
    run: async (cx) => {
      cx.page.expected.push(/status of 500/);
      await cx.page.route("**/session?*", (route) =>
        route.request().method() === "POST"
          ? route.fulfill({
              status: 500,
              contentType: "application/json",
              body: JSON.stringify({ data: { message: "<img src=x onerror=alert(1)>" } }),
            })
          : route.continue(),
      );
      await cx.fresh();
      await cx.say("hello");
      await cx.page.locator(".toast", { hasText: "<img src=x" }).waitFor();
      equal("pictures", await cx.page.locator(".toast img").count(), 0);
      await cx.page.unrouteAll();
      await cx.page.locator("#prompt").fill("");
    },
  },
  {
    name: "no secret is stored or in the address",
    run: async (cx) => {
      const stored = await cx.page.evaluate(() =>
        JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href]),
      );
      ok("secret", !stored.includes("a password") && !stored.includes("YSBwYXNzd29yZA"));
    },
  },
];
