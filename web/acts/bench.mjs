// The figures of the app: first view, a session of 10,000 messages, a long stream, and 20 sessions at once.
import { setTimeout as pause } from "node:timers/promises";
import { quietBrowser } from "./quiet.mjs";
import { launch, openPage, Stage } from "./stage.mjs";

const SESSIONS = 1_000;
const MESSAGES = 10_000;
const FLOOD = { bytes: 2_000_000, deltas: 40_000 };
const PARALLEL = 20;
const RUNS = 9;
/**
 * The time after which a new window of the browser has done its own work, and the time in which a page must be there.
 */
const SETTLE_MS = 1_500;
const VIEW_MS = 1_500;
const LONG = 240_000;

/** Watches for the first view and long tasks from the start of a page on. */
function watch() {
  globalThis.marks = { first: 0, drawn: 0, long: [] };
  new PerformanceObserver((list) =>
    globalThis.marks.long.push(...list.getEntries().map((entry) => Math.round(entry.duration))),
  ).observe({ type: "longtask", buffered: true });
  // The list and the prompt exist and can be used. They are drawn when the task after the next frame runs.
  const look = () => {
    if (globalThis.marks.first !== 0 || !document.querySelector(".session-row a") || !document.querySelector("#prompt"))
      return;
    globalThis.marks.first = performance.now();
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => (globalThis.marks.drawn = performance.now());
      port2.postMessage(null);
    });
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
}

/** Returns the times of a first view: when its elements exist, when their frame is drawn, and when it is displayed. */
function times() {
  const { first, drawn } = globalThis.marks;
  const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0;
  const entries = performance.getEntriesByType("resource");
  const sent = entries.filter((entry) => entry.responseEnd > 0 && entry.responseEnd <= drawn);
  const bytes = sent.reduce(
    (sum, entry) => sum + entry.transferSize,
    performance.getEntriesByType("navigation")[0].transferSize,
  );
  const requests = sent.map(
    (entry) => `${new URL(entry.name).pathname} ${Math.round(entry.startTime)}–${Math.round(entry.responseEnd)}`,
  );
  // Nothing else has content before the view, but a slow machine shows a message that the app connects.
  return { first, drawn, shown: Math.max(paint, drawn), bytes, requests };
}

/** Measures the first view in new windows that are at rest: with an empty cache, and again. */
async function firstViews(settings, url) {
  const browser = quietBrowser(settings.chromium);
  const [empty, cached] = [[], []];
  try {
    for (let run = 0; run < RUNS; run += 1) {
      const page = await browser.blank(watch);
      await pause(SETTLE_MS);
      for (const [views, start] of [
        [empty, () => page.open(url)],
        [cached, page.reload],
      ]) {
        await start();
        // Nothing is asked meanwhile, because that would interrupt the page.
        await pause(VIEW_MS);
        const view = await page.read(times);
        if (view.drawn === 0) throw new Error(`no first view after ${VIEW_MS} ms`);
        views.push(view);
      }
      await page.close();
    }
  } finally {
    await browser.close();
  }
  return { empty, cached };
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const takeLong = (page) => page.evaluate(() => globalThis.marks.long.splice(0));
const worst = (values) =>
  values.length > 0 ? `${values.length} long tasks, the longest ${Math.max(...values)} ms` : "no long task";

/** Returns an exported session with many messages. */
function bigSession(directory) {
  const id = "ses_20000000000bigsession0000";
  const messages = [];
  const time = Date.now() - MESSAGES * 1_000;
  const name = (kind, at) => `${kind}_${(0x100000000000 + at * 16).toString(16)}benchmark00000`.slice(0, 30);
  for (let at = 0; at < MESSAGES; at += 1) {
    const messageID = name("msg", at);
    const isPrompt = at % 2 === 0;
    const created = time + at * 1_000;
    const info = isPrompt
      ? {
          id: messageID,
          sessionID: id,
          role: "user",
          time: { created },
          agent: "build",
          model: { providerID: "mock", modelID: "plain-model" },
        }
      : {
          id: messageID,
          sessionID: id,
          role: "assistant",
          time: { created, completed: created + 500 },
          parentID: name("msg", at - 1),
          modelID: "plain-model",
          providerID: "mock",
          mode: "build",
          agent: "build",
          path: { cwd: directory, root: directory },
          cost: 0,
          tokens: { input: 10, output: 10, reasoning: 0, cache: { read: 0, write: 0 } },
          finish: "stop",
        };
    const text = isPrompt
      ? `Prompt number ${at}`
      : `Answer **${at}** with \`code\`, a list:\n\n- one\n- two\n\n\`\`\`ts\nconst value = ${at};\n\`\`\`\n\n` +
        "And a closing sentence that is long enough to need a second line in the column of the transcript.";
    messages.push({
      info,
      parts: [
        { id: name("prt", at), messageID, sessionID: id, type: "text", text, time: { start: created, end: created } },
      ],
    });
  }
  const info = {
    id,
    slug: "big",
    projectID: "global",
    directory,
    title: "Ten thousand messages",
    version: "1.18.33",
    time: { created: time, updated: Date.now() },
  };
  return { info, messages };
}

/** Returns a stage with a model that floods, and one that writes at the pace of a model. */
async function prepare(settings) {
  const stage = new Stage(settings);
  stage.write("a.txt", "a\n");
  stage.git("init", "-q");
  await stage.model({
    title: "Streaming",
    checks: "off",
    sessions: [
      { match: "FLOOD", turns: [{ steps: [{ flood: FLOOD }] }], loop: true },
      {
        match: "PACED",
        turns: [{ steps: [{ text: "word ".repeat(3_000), chunk_size: 5, chunk_delay_ms: 5 }] }],
        loop: true,
      },
    ],
    default: "Done.",
  });
  return stage;
}

async function measureFirstView(settings, server, figure) {
  const { empty, cached } = await firstViews(settings, server.url);
  const of = (views, name) => views.map((view) => view[name]);
  const both = (values) => `${median(values).toFixed(0)} ms, least ${Math.min(...values).toFixed(0)} ms`;
  figure(`first view with ${SESSIONS} sessions, drawn`, `${both(of(empty, "drawn"))}, of ${RUNS}`, "150 ms");
  console.log(
    `  its elements exist after ${both(of(empty, "first"))}; it is displayed after ${both(of(empty, "shown"))}`,
  );
  console.log(
    `  with cached files: drawn after ${both(of(cached, "drawn"))}; elements after ${both(of(cached, "first"))}`,
  );
  console.log(`  requests of the last run: ${empty.at(-1).requests.join(", ")}`);
  figure("transferred before the first view", `${(Math.max(...of(empty, "bytes")) / 1_000).toFixed(0)} kB`, "250 kB");
}

/** Opens a session of many messages, and scrolls to its start. */
async function measureOpen(page, figure) {
  await takeLong(page);
  const opened = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const start = performance.now();
        const observer = new MutationObserver(() => {
          if (!document.querySelector(".transcript .answer .markdown")) return;
          observer.disconnect();
          requestAnimationFrame(() => resolve(performance.now() - start));
        });
        observer.observe(document, { childList: true, subtree: true });
        location.hash = "#/session/ses_20000000000bigsession0000";
      }),
  );
  figure(`open a session of ${MESSAGES} messages`, `${opened.toFixed(0)} ms`, "200 ms");
  await takeLong(page);
  const loaded = await page.evaluate(async () => {
    const list = document.querySelector(".transcript .virtual");
    const deadline = performance.now() + 120_000;
    // Two screens a frame, upwards, through all pages. At the start, the next page may still be on its way.
    for (let moved = performance.now(); performance.now() < deadline && performance.now() - moved < 3_000; ) {
      list.scrollTop = Math.max(0, list.scrollTop - 1_600);
      await new Promise(requestAnimationFrame);
      if (list.scrollTop > 0) moved = performance.now();
    }
    return document.querySelector(".transcript [data-key]")?.innerText.slice(0, 40);
  });
  figure(
    "scroll to its start",
    `${worst(await takeLong(page))}; the first row is “${loaded.trim()}”`,
    "none over 50 ms",
  );
}

/** Displays a long answer that arrives at once. */
async function measureFlood(page, figure) {
  await page.evaluate(() => {
    location.hash = "#/new";
  });
  await page.locator(".new-session #prompt").fill("FLOOD now");
  await page.locator("#prompt").press("Enter");
  const started = Date.now();
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable");
  const heap = async () =>
    (await cdp.send("Performance.getMetrics")).metrics.find((metric) => metric.name === "JSHeapUsedSize").value;
  let peak = 0;
  await page.locator(".working").waitFor();
  for (const end = Date.now() + LONG; Date.now() < end; ) {
    peak = Math.max(peak, await heap());
    if ((await page.locator(".working").count()) === 0) break;
    await page.waitForTimeout(500);
  }
  // The end of the text is displayed over some frames.
  await page.waitForTimeout(2_000);
  const length = await page
    .locator(".transcript .markdown")
    .last()
    .evaluate((element) => element.textContent.length);
  figure(
    `${FLOOD.bytes / 1e6} MB in ${FLOOD.deltas} deltas`,
    `${((Date.now() - started) / 1000).toFixed(0)} s, ${worst(await takeLong(page))}, ` +
      `heap at most ${(peak / 1e6).toFixed(0)} MB, ${length} characters displayed`,
    "none over 50 ms, 250 MB",
  );
}

/** Types next to streaming sessions. */
async function measureTyping(page, server, figure) {
  const ids = [];
  for (let at = 0; at < PARALLEL; at += 1)
    ids.push((await server.call("POST", "/session", { title: `Parallel ${at}` })).id);
  await Promise.all(
    ids.map((id) =>
      server.call("POST", `/session/${id}/prompt_async`, { parts: [{ type: "text", text: "PACED now" }] }),
    ),
  );
  await page.evaluate((id) => {
    location.hash = `#/session/${id}`;
  }, ids[0]);
  await page.locator(".transcript .markdown").first().waitFor();
  await takeLong(page);
  const delays = [];
  for (let at = 0; at < 20; at += 1) {
    delays.push(
      await page.evaluate(
        () =>
          new Promise((resolve) => {
            const start = performance.now();
            const prompt = document.querySelector("#prompt");
            prompt.value += "x";
            prompt.dispatchEvent(new Event("input", { bubbles: true }));
            requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
          }),
      ),
    );
    await page.waitForTimeout(100);
  }
  figure(
    `a key next to ${PARALLEL} streaming sessions`,
    `${median(delays).toFixed(0)} ms, at most ${Math.max(...delays).toFixed(0)} ms; ${worst(await takeLong(page))}`,
  );
}

export async function bench(settings) {
  const stage = await prepare(settings);
  stage.import(bigSession(stage.directory));
  const server = await stage.serve();
  for (let at = 0; at < SESSIONS; at += 1) await server.call("POST", "/session", { title: `Session number ${at}` });
  let browser = null;
  const figures = [];
  const figure = (name, value, wanted) => {
    figures.push({ name, value });
    console.log(`${name}: ${value}${wanted ? ` (wanted: ${wanted})` : ""}`);
  };
  try {
    await measureFirstView(settings, server, figure);
    browser = await launch(settings);
    const page = await openPage(browser, "about:blank");
    await page.addInitScript(watch);
    await page.goto(server.url);
    await page.waitForFunction(() => globalThis.marks.first > 0);
    await measureOpen(page, figure);
    await measureFlood(page, figure);
    await measureTyping(page, server, figure);
  } finally {
    await browser?.close();
    await stage.end();
  }
}
