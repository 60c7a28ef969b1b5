// The panel: changes with comments, files, terminal, tasks and status.
import { equal, ok } from "../checks.mjs";

export const table = [
  {
    name: "the working tree is compared",
    smoke: true,
    run: async (cx) => {
      cx.stage.write("src/util.py", "def add(a, b):\n    return b + a\n");
      await cx.ask("say hello");
      await cx.shows("Hello from the model");
      await cx.page.locator(".head").getByRole("button", { name: "Changes" }).click();
      await cx.page
        .locator(".change", { hasText: "src/util.py" })
        .locator(".diff-line.add", { hasText: "return b + a" })
        .waitFor();
    },
  },
  {
    name: "a diff is displayed side by side",
    run: async (cx) => {
      await cx.page.locator(".changes").getByRole("button", { name: "Side by side" }).click();
      await cx.page.locator(".diff-pair").first().waitFor();
      await cx.page.locator(".changes").getByRole("button", { name: "Unified" }).click();
      await cx.page.locator(".diff-pair").first().waitFor({ state: "detached" });
    },
  },
  {
    name: "a line gets a comment",
    run: async (cx) => {
      const change = cx.page.locator(".change", { hasText: "src/util.py" });
      await change.getByRole("button", { name: "Comment on line 2" }).last().click();
      await cx.page.getByRole("textbox", { name: "Comment" }).fill("keep the order");
      await cx.page.getByRole("textbox", { name: "Comment" }).press("Enter");
      await change.locator(".review", { hasText: "keep the order" }).waitFor();
      await cx.page.locator(".composer .chip", { hasText: "util.py:2" }).waitFor();
    },
  },
  {
    name: "comments are sent with the next prompt",
    run: async (cx) => {
      await cx.say("address it");
      await cx.page
        .locator(".prompt", { hasText: "Comment on src/util.py:2" })
        .locator("text=keep the order")
        .waitFor();
      equal("chips", await cx.page.locator(".composer .chip").count(), 0);
      await cx.idle();
    },
  },
  {
    name: "a file is marked as reviewed",
    run: async (cx) => {
      const change = cx.page.locator(".change", { hasText: "src/util.py" });
      await change.getByRole("button", { name: "Reviewed" }).click();
      await cx.page.locator(".change.reviewed", { hasText: "src/util.py" }).waitFor();
      equal("folded", await change.locator(".diff").count(), 0);
    },
  },
  {
    name: "the changes of the session and its last turn are displayed",
    run: async (cx) => {
      await cx.page.locator(".changes").getByRole("button", { name: "Session", exact: true }).click();
      await cx.shows("No changes");
      await cx.page.locator(".changes").getByRole("button", { name: "Last turn" }).click();
      await cx.shows("No changes");
      await cx.page.locator(".changes").getByRole("button", { name: "Branch" }).click();
      await cx.page.locator(".changes-body").waitFor();
    },
  },
  {
    name: "the tree shows directories and changed files",
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "Files" }).click();
      await cx.page.getByRole("treeitem", { name: /^src/ }).click();
      await cx.page.locator(".tree-row.modified", { hasText: "util.py" }).waitFor();
      await cx.page.locator(".tree-row.ignored", { hasText: "notes.log" }).waitFor();
    },
  },
  {
    name: "the tree is used with the keyboard",
    run: async (cx) => {
      await cx.page.getByRole("treeitem", { name: /^docs/ }).focus();
      await cx.page.keyboard.press("ArrowRight");
      await cx.page.getByRole("treeitem", { name: /read.md/ }).waitFor();
      await cx.page.keyboard.press("ArrowDown");
      ok("focus", (await cx.page.evaluate(() => document.activeElement.textContent)).includes("pixel.png"));
    },
  },
  {
    name: "a picture is displayed",
    run: async (cx) => {
      await cx.page.keyboard.press("Enter");
      await cx.until(() => document.querySelector(".viewer-image")?.naturalWidth === 1);
      await cx.press("Back");
    },
  },
  {
    name: "a Markdown file has a preview",
    run: async (cx) => {
      await cx.page.getByRole("treeitem", { name: /read.md/ }).click();
      await cx.page.locator(".lines .line", { hasText: "# Read" }).waitFor();
      await cx.page.getByRole("button", { name: "Preview" }).click();
      await cx.page.locator(".viewer .markdown em", { hasText: "text" }).waitFor();
      await cx.press("Back");
    },
  },
  {
    name: "a binary file is not displayed as text",
    run: async (cx) => {
      await cx.page.getByRole("treeitem", { name: /binary.bin/ }).click();
      await cx.shows("Binary file");
      await cx.press("Back");
    },
  },
  {
    name: "code in the viewer is highlighted",
    run: async (cx) => {
      await cx.page.getByRole("treeitem", { name: /sum.ts/ }).click();
      await cx.page.locator(".line .hl-keyword", { hasText: "export" }).waitFor();
      await cx.press("Back");
    },
  },
  {
    name: "a file opens in the editor that the user chooses",
    run: async (cx) => {
      // No program of this machine takes the address.
      cx.page.expected.push(/myeditor/);
      await cx.page.getByRole("treeitem", { name: /sum.ts/ }).click();
      await cx.press("Open in the editor");
      await cx.page.getByRole("option", { name: "VS Code", exact: true }).waitFor();
      await cx.page.getByRole("option", { name: "Another editor" }).click();
      await cx.page.getByRole("combobox", { name: "Editor" }).selectOption("other");
      const field = cx.page.getByRole("textbox", { name: "Address that opens a file" });
      await field.fill("javascript://%0adocument.title='owned'//{path}");
      await cx.shows("The address needs a scheme");
      await field.fill("myeditor://open?file={path}&line={line}");
      await cx.page.goBack();
      const link = cx.page.getByRole("link", { name: "Open in myeditor" });
      equal("address", await link.getAttribute("href"), `myeditor://open?file=${cx.stage.directory}/src/sum.ts&line=1`);
      await cx.press("Back");
    },
  },
  {
    name: "files are found by name",
    run: async (cx) => {
      await cx.page.getByRole("searchbox", { name: "Find a file" }).pressSequentially("sumts", { delay: 60 });
      ok("focus", await cx.page.evaluate(() => document.activeElement.type === "search"));
      await cx.page.locator(".hit", { hasText: "src/sum.ts" }).click();
      await cx.page.locator(".line", { hasText: "export function" }).waitFor();
      await cx.press("Back");
    },
  },
  {
    name: "text is found in files and opens at its line",
    run: async (cx) => {
      await cx.page.getByRole("button", { name: "Text", exact: true }).click();
      await cx.page.getByRole("searchbox", { name: "Find in files" }).fill("return b");
      await cx.page.locator(".hit", { hasText: "src/util.py:2" }).click();
      await cx.page.locator(".line.marked", { hasText: "return b" }).waitFor();
    },
  },
  {
    name: "a file is mentioned from the viewer",
    run: async (cx) => {
      await cx.press("Mention in the prompt");
      ok("mention", (await cx.page.locator("#prompt").inputValue()).includes("@src/util.py"));
      await cx.page.locator("#prompt").fill("");
      await cx.press("Back");
      await cx.page.getByRole("searchbox", { name: "Find in files" }).fill("");
    },
  },
  {
    name: "a terminal runs a command",
    smoke: false,
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "Terminal" }).click();
      await cx.press("New terminal");
      await cx.page.locator(".xterm-rows").waitFor();
      await cx.until(
        () =>
          document.querySelector(".xterm-rows").textContent.includes("$") ||
          document.querySelector(".xterm-rows").textContent.includes("#"),
      );
      await cx.page.locator(".screen").click();
      await cx.page.keyboard.type("echo term-$((20+1))\n");
      await cx.until(() => document.querySelector(".xterm-rows").textContent.includes("term-21"));
    },
  },
  {
    name: "a terminal has colours",
    run: async (cx) => {
      await cx.page.keyboard.type("printf '\\033[38;2;10;200;30mrgb\\033[0m \\033[31mred\\033[0m\\n'\n");
      await cx.until(() =>
        [...document.querySelectorAll(".xterm-rows span")].some(
          (span) => span.textContent === "rgb" && getComputedStyle(span).color === "rgb(10, 200, 30)",
        ),
      );
    },
  },
  {
    name: "a terminal is there again with its output after a reload",
    run: async (cx) => {
      await cx.page.reload();
      await cx.until(() => document.querySelector(".xterm-rows")?.textContent.includes("term-21"));
    },
  },
  {
    name: "sequences of a terminal do not reach the page",
    run: async (cx) => {
      await cx.page.locator(".screen").click();
      await cx.page.keyboard.type(
        "printf '\\033]0;owned\\007\\033]8;;javascript:document.title=1\\033\\\\link\\033]8;;\\033\\\\ done-1\\n'\n",
      );
      await cx.until(() => document.querySelector(".xterm-rows").textContent.includes("done-1"));
      ok("title", !(await cx.page.title()).includes("owned"));
      equal("links", await cx.page.locator(".xterm a").count(), 0);
    },
  },
  {
    name: "a second terminal opens and closes",
    run: async (cx) => {
      // It may be closed while it still connects.
      cx.page.expected.push(/404.*connect-token/);
      await cx.press("New terminal");
      await cx.until(() => document.querySelectorAll(".terminal-tab").length === 2);
      await cx.page.locator(".terminal-tab").last().getByRole("button", { name: /Close/ }).click();
      await cx.until(() => document.querySelectorAll(".terminal-tab").length === 1);
    },
  },
  {
    name: "the end of a shell is shown",
    run: async (cx) => {
      await cx.page.locator(".screen").click();
      await cx.page.keyboard.type("exit 3\n");
      await cx.page
        .locator(".banner", { hasText: "ended with code 3" })
        .or(cx.page.getByText("No terminal is open"))
        .first()
        .waitFor();
    },
  },
  {
    name: "tasks show the numbers of the session",
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "Tasks" }).click();
      await cx.page.locator(".panel .facts", { hasText: "Output" }).waitFor();
    },
  },
  {
    name: "the status shows servers, sandbox and trust",
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "Status" }).click();
      for (const text of ["MCP servers", "Language servers", "Formatters", "Sandbox", "Workspace trust"])
        await cx.page.locator(".panel h3", { hasText: text }).waitFor();
    },
  },
  {
    name: "a server for tools is signed in to",
    run: async (cx) => {
      if (!cx.mcp) {
        console.log("skipped: python3 is missing");
        return;
      }
      await cx.server.call("POST", "/mcp", { name: "remote", config: { type: "remote", url: `${cx.mcp}/mcp` } });
      await cx.page.getByRole("tab", { name: "Tasks" }).click();
      await cx.page.getByRole("tab", { name: "Status" }).click();
      const row = cx.page.locator(".status-row", { hasText: "remote" });
      await row.getByText("needs sign-in").waitFor();
      await row.getByRole("button", { name: "Sign in" }).click();
      const link = row.getByRole("link", { name: "Open the page for the sign-in" });
      await link.waitFor();
      const popup = cx.page.context().waitForEvent("page");
      await link.click();
      const page = await popup;
      await row.getByText("connected").waitFor();
      await link.waitFor({ state: "detached" });
      await page.close();
    },
  },
  {
    name: "the sign-in to a server for tools is taken back, and done by pasting a code",
    run: async (cx) => {
      if (!cx.mcp) return;
      const row = cx.page.locator(".status-row", { hasText: "remote" });
      await row.getByRole("button", { name: "Sign out" }).click();
      await row.getByText("needs sign-in").waitFor();
      await row.getByRole("button", { name: "Sign in" }).click();
      const link = row.getByRole("link", { name: "Open the page for the sign-in" });
      const reply = await fetch(await link.getAttribute("href"), { redirect: "manual" });
      await row.getByRole("textbox").fill(reply.headers.get("location"));
      await row.getByRole("button", { name: "Done" }).click();
      await row.getByText("connected").waitFor();
    },
  },
  {
    name: "tabs are used with the keyboard",
    run: async (cx) => {
      await cx.page.getByRole("tab", { name: "Status" }).focus();
      await cx.page.keyboard.press("ArrowLeft");
      await cx.page.getByRole("tab", { name: "Tasks", selected: true }).waitFor();
      equal("focus", await cx.page.evaluate(() => document.activeElement.textContent), "Tasks");
    },
  },
  {
    name: "the panel changes its width with the keyboard",
    run: async (cx) => {
      const width = () => cx.page.locator(".panel").evaluate((element) => element.offsetWidth);
      const before = await width();
      await cx.page.locator(".divider").focus();
      await cx.page.keyboard.press("ArrowLeft");
      equal("width", await width(), before + 32);
    },
  },
  {
    name: "the panel is closed by a key",
    run: async (cx) => {
      await cx.page.keyboard.press("Control+Alt+d");
      await cx.page.locator(".changes").waitFor();
      await cx.page.keyboard.press("Control+Alt+d");
      await cx.page.locator(".panel").waitFor({ state: "detached" });
      cx.stage.git("checkout", "-q", "src/util.py");
    },
  },
];
