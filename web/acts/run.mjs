// Runs the acts of a user in a browser, and prints how many work.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { acts } from "./acts.mjs";
import { options } from "./stage.mjs";

const settings = options(process.argv.slice(2));
if (settings.bench) {
  const { bench } = await import("./bench.mjs");
  await bench(settings);
  process.exit(0);
}
if (settings.pictures) {
  const { pictures } = await import("./pictures.mjs");
  await pictures(settings);
  process.exit(0);
}
/** The oldest Firefox that has the commands by which it is driven. */
const OLDEST_FIREFOX = 143;

/** Returns why Firefox cannot be driven, or nothing. */
function whyNoFirefox(path) {
  if (!path || !existsSync(path)) return "firefox-esr is not installed";
  const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8", timeout: 20_000 });
  const version = Number(/Firefox (\d+)/.exec(stdout ?? "")?.[1] ?? 0);
  return version < OLDEST_FIREFOX ? `Firefox ${version} is older than ${OLDEST_FIREFOX}` : "";
}

const noFirefox = whyNoFirefox(settings["firefox-path"]);
const browsers = [...(settings.firefox ? [] : ["chromium"]), ...(noFirefox ? [] : ["firefox"])];
let failed = 0;
for (const browser of browsers) failed += await acts(settings, browser);
const wantsWebkit = !settings.firefox && ["", "webkit"].includes(settings.only);
if (wantsWebkit && existsSync(settings.webkit ?? "") && existsSync(settings.browser ?? "")) {
  const { webkit } = await import("./webkit.mjs");
  failed += await webkit(settings);
} else if (wantsWebkit) {
  console.log("skipped: the smoke set in WebKit, because its driver (webkit2gtk-driver) or Xvfb is not installed");
}
if (noFirefox) console.log(`skipped: the smoke set in Firefox, because ${noFirefox}`);
process.exit(failed === 0 ? 0 : 1);
