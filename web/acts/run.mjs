// Runs the acts of a user in a browser, and prints how many work.
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
const browsers = settings.firefox
  ? ["firefox"]
  : ["chromium", ...(existsSync(settings["firefox-path"] ?? "") ? ["firefox"] : [])];
let failed = 0;
for (const browser of browsers) failed += await acts(settings, browser);
const wantsWebkit = !settings.firefox && ["", "webkit"].includes(settings.only);
if (wantsWebkit && existsSync(settings.webkit ?? "") && existsSync(settings.browser ?? "")) {
  const { webkit } = await import("./webkit.mjs");
  failed += await webkit(settings);
} else if (wantsWebkit) {
  console.log("skipped: the smoke set in WebKit, because its driver (webkit2gtk-driver) or Xvfb is not installed");
}
if (browsers.length === 1 && !settings.firefox)
  console.log("skipped: the smoke set in Firefox, because firefox-esr is not installed");
process.exit(failed === 0 ? 0 : 1);
