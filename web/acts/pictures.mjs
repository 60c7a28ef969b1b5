// Draws the pictures of the guide: each view, light and dark.
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { shrink } from "./png.mjs";
import { launch, openPage, Stage } from "./stage.mjs";
import { script } from "./script.mjs";

const TARGET = fileURLToPath(new URL("../../docs/pictures/web", import.meta.url));
const SIZE = { width: 1180, height: 720 };

/** Returns the views with what opens them. */
const views = (ids) => [
  [
    "home",
    async (page) => {
      await page.locator(".session-row").nth(3).waitFor();
    },
    "#/",
  ],
  [
    "session",
    async (page) => {
      await page.getByText("Read more in").waitFor();
      await page.locator(".transcript .virtual").evaluate((list) => {
        list.scrollTop = 0;
      });
    },
    `#/session/${ids.rich}`,
  ],
  [
    "permission",
    async (page) => {
      await page.getByText("Allow bash?").waitFor();
    },
    `#/session/${ids.asks}`,
  ],
  [
    "question",
    async (page) => {
      await page.getByText("Which color?").waitFor();
    },
    `#/session/${ids.quiz}`,
  ],
  [
    "changes",
    async (page) => {
      await page.locator(".change .diff-line.add").first().waitFor();
    },
    `#/session/${ids.rich}?panel=changes`,
  ],
  [
    "files",
    async (page) => {
      await page.getByRole("treeitem", { name: /^src/ }).click();
      await page.getByRole("treeitem", { name: /sum.ts/ }).waitFor();
    },
    `#/session/${ids.rich}?panel=files`,
  ],
  [
    "terminal",
    async (page) => {
      await page.getByRole("button", { name: "New terminal" }).first().click();
      await page.locator(".xterm-rows").waitFor();
      await page.waitForTimeout(500);
      await page.keyboard.type("git log --oneline; ls\n");
      await page.waitForTimeout(700);
    },
    `#/session/${ids.rich}?panel=terminal`,
  ],
  [
    "palette",
    async (page) => {
      await page.keyboard.press("Control+k");
      await page.locator("dialog [role=option]").first().waitFor();
    },
    `#/session/${ids.rich}`,
  ],
  [
    "settings",
    async (page) => {
      await page.locator(".settings").waitFor();
    },
    "#/settings",
  ],
];

export async function pictures(settings) {
  mkdirSync(TARGET, { recursive: true });
  const stage = new Stage(settings);
  stage.write(
    "src/sum.ts",
    "export function sum(values: number[]): number {\n  let total = 1;\n  for (const value of values) total += " +
      "value;\n  return total;\n}\n",
  );
  stage.write("src/index.ts", 'export { sum } from "./sum";\n');
  stage.write("test/sum.test.ts", 'import { sum } from "../src";\n');
  stage.write("readme.md", "# Sums\n");
  stage.git("init", "-q", "-b", "main");
  stage.git("add", "-A");
  stage.git("commit", "-qm", "Add sums");
  const scenes = script(stage.directory);
  scenes.title = "Fix the sum of an empty list";
  // Prompts as users write them.
  const words = { FIXIT: "The sum of an empty list", RUNIT: "Run the tests", QUIZ: "Which colour should" };
  for (const scene of scenes.sessions) scene.match = words[scene.match] ?? scene.match;
  await stage.model(scenes);
  const server = await stage.serve({ env: { PS1: "$ " } });
  const create = async (title, text) => {
    const { id } = await server.call("POST", "/session", title ? { title } : {});
    if (text) await server.call("POST", `/session/${id}/prompt_async`, { parts: [{ type: "text", text }] });
    return id;
  };
  for (const title of [
    "Explain the release script",
    "Add a dark theme to the settings page",
    "Update the dependencies",
    "Find the slow test",
  ])
    await create(title);
  const ids = { rich: await create("", "The sum of an empty list is one, it should be zero.") };
  ids.asks = await create("Run the tests", "Run the tests again.");
  ids.quiz = await create("Choose the colour of the button", "Which colour should the button have?");
  const browser = await launch(settings);
  try {
    for (const dark of [false, true]) {
      for (const [name, prepare, hash] of views(ids)) {
        const page = await openPage(browser, server.url + "/" + hash, { ...SIZE, dark });
        await prepare(page);
        await page.waitForTimeout(700);
        writeFileSync(`${TARGET}/${name}-${dark ? "dark" : "light"}.png`, shrink(await page.screenshot()));
        await page.context().close();
      }
      const phone = await openPage(browser, `${server.url}/#/session/${ids.rich}`, { width: 360, height: 720, dark });
      await phone.getByText("Read more in").waitFor();
      await phone.waitForTimeout(700);
      writeFileSync(`${TARGET}/phone-${dark ? "dark" : "light"}.png`, shrink(await phone.screenshot()));
      await phone.context().close();
    }
  } finally {
    await browser.close();
    await stage.end();
  }
}
