// A phone, large text, and problems of accessibility on each view.
import { check, views } from "../axe.mjs";
import { equal, ok } from "../checks.mjs";

export const fits = async (page) => {
  const [width, view] = await page.evaluate(() => [document.scrollingElement.scrollWidth, innerWidth]);
  ok(`width ${width} in ${view}`, width <= view);
};

/**
 * What a finger cannot hit: everything that can be tapped and has less than 44 points, except links in texts and
 * numbers of lines.
 */
export const tooSmall = (page) =>
  page.evaluate(() => {
    const targets =
      'button, a[href], input, select, textarea, summary, [role="option"], [role="treeitem"], [role="menuitem"], ' +
      '[role="menuitemcheckbox"], [role="tab"], [role="separator"][tabindex]';
    const inText =
      ".markdown a, .prompt-text a, p a, p button.link, .diff-line button.n, .line-number, .file-link, .hit, .skip, " +
      ".divider, [hidden]";
    return [...document.querySelectorAll(targets)].flatMap((element) => {
      const own = element.closest("label") ?? element;
      const box = own.getBoundingClientRect();
      const isVisible =
        box.width > 0 &&
        box.height > 0 &&
        getComputedStyle(element).visibility === "visible" &&
        box.bottom > 0 &&
        box.top < innerHeight;
      if (!isVisible || element.matches(inText) || element.closest(".xterm, .visually-hidden, .markdown")) return [];
      const label = element.getAttribute("aria-label") ?? element.textContent;
      const isCut = element.matches(".button, .tab, .segments button") && element.scrollWidth > element.clientWidth + 1;
      return box.width >= 43.5 && box.height >= 43.5 && !isCut
        ? []
        : [
            `${element.tagName.toLowerCase()}.${element.className || element.type} ` +
              `"${label.trim().slice(0, 30)}" ` +
              `${Math.round(box.width)}x${Math.round(box.height)}`,
          ];
    });
  });

export const table = [
  {
    name: "home fits a phone of 320 pixels",
    run: async (cx) => {
      await cx.ask("FIXIT please");
      await cx.shows("Read more in");
      await cx.idle();
      cx.rich = /ses_\w+/.exec(cx.page.url())[0];
      cx.phone = await cx.open(cx.server.url, { width: 320, height: 640, hasTouch: true, isMobile: true });
      await cx.phone.locator(".home h1").waitFor();
      await fits(cx.phone);
    },
  },
  {
    name: "a phone opens the sidebar and a session",
    run: async (cx) => {
      equal("hidden", await cx.phone.locator(".sidebar").count(), 0);
      await cx.phone.getByRole("button", { name: "Show or hide the sidebar" }).tap();
      await cx.phone.locator(".sidebar-link", { hasText: "Scripted title" }).first().tap();
      await cx.phone.locator(".sidebar").waitFor({ state: "detached" });
      await cx.phone.locator(".transcript .message").first().waitFor();
      await fits(cx.phone);
    },
  },
  {
    name: "a phone sends a prompt and answers a request",
    run: async (cx) => {
      await cx.phone.evaluate(() => {
        location.hash = "#/new";
      });
      await cx.phone.locator("#prompt").fill("RUNIT phone");
      await cx.phone.getByRole("button", { name: "Send" }).tap();
      await cx.phone.getByRole("button", { name: "Allow once" }).tap();
      await cx.shows("Ran it.", cx.phone);
      await fits(cx.phone);
    },
  },
  {
    name: "the panel covers a phone and closes",
    run: async (cx) => {
      await cx.phone.locator(".head").getByRole("button", { name: "Panels" }).tap();
      await cx.phone.getByRole("menuitemcheckbox", { name: "Changes" }).tap();
      await cx.phone.locator(".panel").waitFor();
      await fits(cx.phone);
      await cx.phone.locator(".panel").getByRole("button", { name: "Close", exact: true }).tap();
      await cx.phone.locator(".panel").waitFor({ state: "detached" });
    },
  },
  {
    name: "every panel, the search and the settings are reached on a phone by taps",
    run: async (cx) => {
      const page = await cx.open(`${cx.server.url}/#/session/${cx.rich}`, {
        width: 390,
        height: 844,
        hasTouch: true,
        isMobile: true,
      });
      await cx.shows("Read more in", page);
      for (const name of ["Changes", "Files", "Terminal", "Tasks", "Status", "Context"]) {
        await page.locator(".head").getByRole("button", { name: "Panels" }).tap();
        await page.getByRole("menuitemcheckbox", { name }).tap();
        await page.locator(`.panel[aria-label="${name}"]`).waitFor();
        await fits(page);
        await page.locator(".panel-head").getByRole("button", { name: "Close", exact: true }).tap();
        await page.locator(".panel").waitFor({ state: "detached" });
      }
      await page.locator(".head").getByRole("button", { name: "Search this session" }).tap();
      await page.getByRole("searchbox", { name: "Search this session" }).fill("Only the first");
      await cx.shows("1 of 1", page);
      await page.locator(".session-search").getByRole("button", { name: "Close" }).tap();
      for (const name of ["Settings", "Home"]) {
        await page.getByRole("button", { name: "Show or hide the sidebar" }).tap();
        await page.locator(".sidebar-foot").getByRole("button", { name }).tap();
        await page.locator(name === "Home" ? ".home" : ".settings").waitFor();
      }
      cx.finger = page;
    },
  },
  ...[
    "home",
    "a new session",
    "a session",
    "changes",
    "files",
    "tasks",
    "context and cost",
    "the status",
    "settings",
    "providers",
    "the models of the settings",
    "the permissions",
    "the servers of tools",
    "the agents",
    "shortcuts",
  ].map((name) => ({
    name: `what can be tapped in ${name} has 44 points`,
    run: async (cx) => {
      await views.find(([view]) => view === name)[1](cx, cx.finger);
      await cx.finger.waitForTimeout(150);
      equal("too small", await tooSmall(cx.finger), []);
      await fits(cx.finger);
    },
  })),
  {
    name: "what can be tapped in the sidebar and the models has 44 points",
    run: async (cx) => {
      await cx.finger.evaluate(() => {
        location.hash = "#/";
      });
      await cx.finger.locator(".home h1").waitFor();
      await cx.finger.getByRole("button", { name: "Show or hide the sidebar" }).tap();
      await cx.finger.locator(".sidebar").waitFor();
      await cx.finger.waitForTimeout(400);
      equal("sidebar", await tooSmall(cx.finger), []);
      await cx.finger.locator(".sidebar-shade").tap({ position: { x: 360, y: 400 } });
      await cx.finger.locator(".pill", { hasText: "Plain Model" }).tap();
      await cx.finger.locator("dialog [role=option]").first().waitFor();
      // The dialog grows to its size.
      await cx.finger.waitForTimeout(300);
      equal("models", await tooSmall(cx.finger), []);
      await cx.finger.keyboard.press("Escape");
    },
  },
  {
    name: "settings fit a phone",
    run: async (cx) => {
      await cx.phone.evaluate(() => {
        location.hash = "#/settings";
      });
      await cx.phone.locator(".settings").waitFor();
      await fits(cx.phone);
    },
  },
  {
    name: "text at 200 % fits",
    run: async (cx) => {
      const page = await cx.open("about:blank", { width: 900, height: 700 });
      await page.goto(cx.server.url);
      await page.locator(".home h1").waitFor();
      await page.evaluate(() => {
        document.documentElement.style.fontSize = "200%";
      });
      await fits(page);
      await page.locator("#prompt").fill("visible");
      await page.getByRole("button", { name: "Send" }).waitFor();
    },
  },
  {
    name: "text from right to left is aligned by its direction",
    run: async (cx) => {
      await cx.ask("שלום עולם");
      await cx.page.locator(".prompt-text", { hasText: "שלום" }).waitFor();
      equal(
        "direction",
        await cx.page
          .locator(".prompt-text")
          .first()
          .evaluate((element) => getComputedStyle(element).direction),
        "rtl",
      );
      await cx.shows("Hello from the model");
    },
  },
  {
    name: "reduced motion has no animations",
    run: async (cx) => {
      const page = await cx.open(cx.server.url, { reducedMotion: "reduce" });
      await page.locator(".home h1").waitFor();
      const duration = await page.evaluate(() => {
        const dot = document.createElement("span");
        dot.className = "dot busy";
        document.body.append(dot);
        return parseFloat(getComputedStyle(dot).animationDuration);
      });
      ok("duration", duration < 0.001);
    },
  },
  {
    name: "everything of a session is reached with the keyboard",
    run: async (cx) => {
      await cx.page.evaluate((id) => {
        location.hash = `#/session/${id}`;
      }, cx.rich);
      await cx.shows("Read more in");
      await cx.page.evaluate(() => document.activeElement.blur());
      const wanted = new Set(["Transcript", "Prompt", "Changes", "Settings", "Attach files"]);
      // The sidebar has two stops for each session.
      for (let presses = 0; presses < 300 && wanted.size > 0; presses += 1) {
        await cx.page.keyboard.press("Tab");
        wanted.delete(
          await cx.page.evaluate(
            () => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent ?? "",
          ),
        );
      }
      equal("not reached", [...wanted], []);
    },
  },
  {
    name: "the app can be installed",
    run: async (cx) => {
      const page = await cx.open(cx.server.url, { serviceWorkers: "allow" });
      await page.locator(".home h1").waitFor();
      await page.waitForFunction(
        async () => (await navigator.serviceWorker.getRegistration())?.active?.state === "activated",
      );
      const manifest = await page.evaluate(async () =>
        (await fetch(document.querySelector('link[rel="manifest"]').href)).json(),
      );
      equal("manifest", [manifest.name, manifest.start_url, manifest.display], ["Codewright", "./", "standalone"]);
      await page.reload();
      await page.locator(".home h1").waitFor();
    },
  },
  {
    name: "notifications are shown when a session waits",
    run: async (cx) => {
      const page = await cx.open("about:blank");
      await page.addInitScript(() => {
        globalThis.shown = [];
        globalThis.Notification = class {
          static permission = "granted";
          static requestPermission = async () => "granted";
          constructor(title, { body }) {
            globalThis.shown.push(`${title}: ${body}`);
          }
          close() {}
        };
      });
      await page.goto(`${cx.server.url}/#/settings`);
      await page.getByRole("switch", { name: "Notify me" }).check();
      const session = await cx.server.call("POST", "/session", { title: "Asks" });
      await cx.server.call("POST", `/session/${session.id}/prompt_async`, {
        parts: [{ type: "text", text: "RUNIT notify" }],
      });
      await page.waitForFunction(() => globalThis.shown.some((text) => text.includes("needs your permission")));
      await page.locator(".sidebar-group", { hasText: "Waiting for you" }).waitFor();
      await cx.server.call("POST", `/session/${session.id}/abort`);
    },
  },
  ...check(false),
  ...check(true),
];
