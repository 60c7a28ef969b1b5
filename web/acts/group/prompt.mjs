// The prompt: completion, shell mode, history, attachments, queueing and drafts.
import { equal, ok } from "../checks.mjs";

const prompt = (cx) => cx.page.locator("#prompt");

export const table = [
  {
    name: "shift and enter begin a new line",
    run: async (cx) => {
      await cx.fresh();
      await prompt(cx).fill("one");
      await prompt(cx).press("Shift+Enter");
      await prompt(cx).pressSequentially("two");
      equal("text", await prompt(cx).inputValue(), "one\ntwo");
    },
  },
  {
    name: "a draft is there after the page is loaded again",
    run: async (cx) => {
      await prompt(cx).fill("not sent yet");
      await cx.page.reload();
      await prompt(cx).waitFor();
      equal("draft", await prompt(cx).inputValue(), "not sent yet");
      await prompt(cx).fill("");
    },
  },
  {
    name: "an at sign completes files",
    run: async (cx) => {
      await prompt(cx).pressSequentially("look at @sum");
      await cx.page.getByRole("option", { name: "src/sum.ts" }).waitFor();
      await prompt(cx).press("Enter");
      equal("text", await prompt(cx).inputValue(), "look at @src/sum.ts ");
    },
  },
  {
    name: "an at sign completes agents",
    run: async (cx) => {
      await prompt(cx).fill("");
      await prompt(cx).pressSequentially("ask @gen");
      await cx.page.getByRole("option", { name: "@general" }).waitFor();
      await prompt(cx).press("Escape");
      await cx.page.getByRole("option", { name: "@general" }).waitFor({ state: "detached" });
    },
  },
  {
    name: "a mentioned file is sent with the prompt",
    run: async (cx) => {
      await prompt(cx).fill("");
      await prompt(cx).pressSequentially("read @util");
      await cx.page.getByRole("option", { name: "src/util.py" }).waitFor();
      await prompt(cx).press("Tab");
      await prompt(cx).press("Enter");
      await cx.page.locator(".prompt .chip", { hasText: "src/util.py" }).waitFor();
      await cx.shows("Hello from the model");
    },
  },
  {
    name: "a slash completes commands of the project",
    run: async (cx) => {
      await cx.fresh();
      await prompt(cx).pressSequentially("/gre");
      await cx.page.getByRole("option", { name: "/greet" }).waitFor();
      await prompt(cx).press("Enter");
      await prompt(cx).pressSequentially("big world");
      await prompt(cx).press("Enter");
      await cx.shows("greet all=[big world] two=[world]");
    },
  },
  {
    name: "a slash runs commands of the app",
    run: async (cx) => {
      await prompt(cx).pressSequentially("/theme");
      await cx.page.getByRole("option", { name: "/themes" }).waitFor();
      await prompt(cx).press("Enter");
      await cx.page.getByRole("combobox", { name: "Theme" }).waitFor();
      await cx.page.keyboard.press("Escape");
      equal("text", await prompt(cx).inputValue(), "");
    },
  },
  {
    name: "an exclamation mark begins the shell mode",
    run: async (cx) => {
      await prompt(cx).press("!");
      await cx.page.locator(".composer.is-shell").waitFor();
      await prompt(cx).press("Backspace");
      await cx.page.locator(".composer.is-shell").waitFor({ state: "detached" });
    },
  },
  {
    name: "a shell command runs and shows its output",
    run: async (cx) => {
      await prompt(cx).press("!");
      await prompt(cx).fill("echo from-shell-$((40+2))");
      await prompt(cx).press("Enter");
      await cx.shows("from-shell-42");
    },
  },
  {
    name: "earlier prompts are recalled",
    run: async (cx) => {
      await cx.idle();
      await prompt(cx).press("ArrowUp");
      equal("newest", await prompt(cx).inputValue(), "echo from-shell-$((40+2))");
      ok("shell", (await cx.page.locator(".composer.is-shell").count()) === 1);
      await prompt(cx).press("Home");
      await prompt(cx).press("ArrowUp");
      equal("before", await prompt(cx).inputValue(), "/greet big world");
      await prompt(cx).press("End");
      await prompt(cx).press("ArrowDown");
      await prompt(cx).press("End");
      await prompt(cx).press("ArrowDown");
      equal("back", await prompt(cx).inputValue(), "");
      await prompt(cx).press("Escape");
    },
  },
  {
    name: "a picked picture is attached and sent",
    run: async (cx) => {
      await cx.fresh();
      const png = Buffer.from(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
        "base64",
      );
      await cx.page
        .locator('.composer input[type="file"]')
        .setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: png });
      await cx.page.locator(".composer .chip", { hasText: "dot.png" }).waitFor();
      await cx.shows("Plain Model cannot see pictures");
      await cx.say("what is this");
      await cx.page.locator('.prompt .chip-image img[alt="dot.png"]').waitFor();
    },
  },
  {
    name: "a pasted picture is attached and can be removed",
    run: async (cx) => {
      await prompt(cx).evaluate((element) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array([137, 80, 78, 71])], "pasted.png", { type: "image/png" }));
        element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
      });
      const chip = cx.page.locator(".composer .chip", { hasText: "pasted.png" });
      await chip.waitFor();
      await chip.getByRole("button").click();
      await chip.waitFor({ state: "detached" });
    },
  },
  {
    name: "a dropped file is attached",
    run: async (cx) => {
      await cx.page.locator(".composer").evaluate((element) => {
        const data = new DataTransfer();
        data.items.add(new File(["text"], "dropped.txt", { type: "text/plain" }));
        element.dispatchEvent(new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true }));
        element.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
      });
      await cx.page.locator(".composer .chip", { hasText: "dropped.txt" }).getByRole("button").click();
    },
  },
  {
    name: "a file that is too large is refused",
    run: async (cx) => {
      await cx.page.locator(".composer").evaluate((element) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(21 * 1024 * 1024)], "large.bin"));
        element.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
      });
      await cx.shows("large.bin is larger than 20 MiB");
    },
  },
  {
    name: "a second prompt is queued while the first is answered",
    run: async (cx) => {
      await cx.ask("SLOWLY one");
      await cx.shows("word3");
      await cx.say("and a second one");
      await cx.page.locator(".prompt .badge", { hasText: "queued" }).waitFor();
      await cx.press("Stop");
      await cx.page.locator(".prompt .badge", { hasText: "queued" }).waitFor({ state: "detached" });
    },
  },
  {
    name: "what was typed stays if sending fails",
    run: async (cx) => {
      await cx.fresh();
      cx.page.expected.push(/503|status of/);
      await cx.page.route("**/session?*", (route) =>
        route.request().method() === "POST"
          ? route.fulfill({ status: 503, contentType: "application/json", body: '{"data":{"message":"too busy"}}' })
          : route.continue(),
      );
      await cx.say("keep this text");
      await cx.shows("too busy");
      equal("text", await prompt(cx).inputValue(), "keep this text");
      await cx.page.unrouteAll();
      await prompt(cx).fill("");
    },
  },
  {
    name: "an unknown command is an error with the nearest name, and is not sent",
    run: async (cx) => {
      const sent = [];
      const note = (request) => request.method() === "POST" && sent.push(request.url());
      cx.page.on("request", note);
      await prompt(cx).fill("/comapct now");
      await prompt(cx).press("Enter");
      await cx.shows("Unknown command /comapct. Did you mean /compact?");
      equal("text", await prompt(cx).inputValue(), "/comapct now");
      equal("sent", sent, []);
      cx.page.off("request", note);
      await prompt(cx).fill("");
    },
  },
  {
    name: "a path at the start of a prompt is no command",
    run: async (cx) => {
      await cx.ask("/etc/hosts: say hello");
      await cx.page.locator(".prompt", { hasText: "/etc/hosts: say hello" }).waitFor();
      await cx.shows("Hello from the model");
      await cx.idle();
    },
  },
  {
    name: "a command with a part of a name chooses the model",
    run: async (cx) => {
      await prompt(cx).fill("/model other");
      await prompt(cx).press("Enter");
      await cx.page.locator(".pill", { hasText: "Other Model" }).waitFor();
      await prompt(cx).fill("/model mock/plain-model");
      await prompt(cx).press("Enter");
      await cx.page.locator(".pill", { hasText: "Plain Model" }).waitFor();
      await prompt(cx).fill("/model nosuch");
      await prompt(cx).press("Enter");
      await cx.shows("Model “nosuch” does not exist");
      await prompt(cx).fill("");
    },
  },
];
