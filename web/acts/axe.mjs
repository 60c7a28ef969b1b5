// Problems of accessibility on each view, which axe finds.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ok } from "./checks.mjs";

/** Fails if axe finds a problem. */
async function axe(cx, page, what) {
  await page.waitForTimeout(250);
  const source = readFileSync(join(cx.settings.axe, "axe.min.js"), "utf8");
  // The policy of the page forbids added scripts, so axe runs through the browser's debugger.
  await page.evaluate(source);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const problems = found.violations.map(
    (problem) =>
      `${problem.id}: ${problem.nodes
        .slice(0, 2)
        .map(
          (node) =>
            node.target.join(" ") + (node.any[0]?.data?.contrastRatio ? ` ${node.any[0].data.contrastRatio}` : ""),
        )
        .join(", ")}`,
  );
  ok(`${what}: ${problems.join("; ")}`, problems.length === 0);
}

/** The views, and what opens them. */
export const views = [
  [
    "home",
    async (_, page) => {
      await page.evaluate(() => {
        location.hash = "#/";
      });
      await page.locator(".home h1").waitFor();
    },
  ],
  [
    "a new session",
    async (_, page) => {
      await page.evaluate(() => {
        location.hash = "#/new";
      });
      await page.locator(".new-session").waitFor();
    },
  ],
  [
    "a session",
    async (cx, page) => {
      await page.evaluate((id) => {
        location.hash = `#/session/${id}`;
      }, cx.rich);
      await cx.shows("Read more in", page);
    },
  ],
  [
    "changes",
    async (cx, page) => {
      await page.evaluate((id) => {
        location.hash = `#/session/${id}?panel=changes`;
      }, cx.rich);
      await page.locator(".change, .changes .empty").first().waitFor();
    },
  ],
  [
    "files",
    async (cx, page) => {
      await page.evaluate((id) => {
        location.hash = `#/session/${id}?panel=files`;
      }, cx.rich);
      await page.getByRole("treeitem").first().waitFor();
    },
  ],
  [
    "a file",
    async (_, page) => {
      await page.getByRole("treeitem", { name: /^\.gitignore/ }).click();
      await page.locator(".lines .line").first().waitFor();
    },
  ],
  [
    "the terminal",
    async (cx, page) => {
      await page.evaluate((id) => {
        location.hash = `#/session/${id}?panel=terminal`;
      }, cx.rich);
      await page.locator(".terminals .empty, .xterm").first().waitFor();
    },
  ],
  [
    "context and cost",
    async (cx, page) => {
      await page.evaluate((id) => {
        location.hash = `#/session/${id}?panel=context`;
      }, cx.rich);
      await page.locator(".context-bar").waitFor();
    },
  ],
  [
    "tasks",
    async (cx, page) => {
      await page.evaluate((id) => {
        location.hash = `#/session/${id}?panel=tasks`;
      }, cx.rich);
      await page.locator(".panel .facts").waitFor();
    },
  ],
  [
    "the status",
    async (cx, page) => {
      await page.evaluate((id) => {
        location.hash = `#/session/${id}?panel=status`;
      }, cx.rich);
      await page.locator(".panel h3").first().waitFor();
    },
  ],
  [
    "settings",
    async (_, page) => {
      await page.evaluate(() => {
        location.hash = "#/settings";
      });
      await page.locator(".settings").waitFor();
    },
  ],
  [
    "providers",
    async (_, page) => {
      await page.evaluate(() => {
        location.hash = "#/settings/providers";
      });
      await page.locator(".status-row").first().waitFor();
    },
  ],
  [
    "the models of the settings",
    async (_, page) => {
      await page.evaluate(() => {
        location.hash = "#/settings/models";
      });
      await page.locator(".setting").first().waitFor();
    },
  ],
  [
    "the permissions",
    async (_, page) => {
      await page.evaluate(() => {
        location.hash = "#/settings/permissions";
      });
      await page.locator(".form-row").first().waitFor();
    },
  ],
  [
    "the servers of tools",
    async (_, page) => {
      await page.evaluate(() => {
        location.hash = "#/settings/servers";
      });
      await page.locator(".settings form").first().waitFor();
    },
  ],
  [
    "the agents",
    async (_, page) => {
      await page.evaluate(() => {
        location.hash = "#/settings/agents";
      });
      await page.locator(".agent-text").first().waitFor();
    },
  ],
  [
    "shortcuts",
    async (_, page) => {
      await page.evaluate(() => {
        location.hash = "#/shortcuts";
      });
      await page.locator(".keys").first().waitFor();
    },
  ],
  [
    "the gallery",
    async (_, page) => {
      await page.evaluate(() => {
        location.hash = "#/gallery";
      });
      await page.locator(".gallery-list").waitFor();
    },
  ],
  [
    "the palette",
    async (_, page) => {
      await page.keyboard.press("Control+k");
      await page.locator("dialog [role=option]").first().waitFor();
    },
  ],
];

/** Returns the acts that check each view. */
export const check = (dark) =>
  views.map(([name, open]) => ({
    name: `axe finds no problem in ${name}, ${dark ? "dark" : "light"}`,
    run: async (cx) => {
      const key = dark ? "darkPage" : "lightPage";
      cx[key] ??= await cx.open(cx.server.url, { dark });
      await open(cx, cx[key]);
      await axe(cx, cx[key], name);
      if (name === "the palette") await cx[key].keyboard.press("Escape");
    },
  }));
