// Draws the picture of docs/guides/editors.md: the chat of a real session, in a frame like that of the editor.
//
//   editors/test/stage.sh npm run picture --prefix editors/vscode
import { mkdirSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { connect, launch, open } from "./browser"
import { StubView, stub } from "./stub/vscode"
import { openWindow } from "./window"

const TARGET = path.resolve("../../docs/pictures/vscode.png")
const VIEW = { width: 430, height: 848 }
const FRAME = { width: 1280, height: 940 }
const SCALE = 1.5

/** Colours of the editor's usual dark theme. */
const THEME = `:root {
  --vscode-foreground: #cccccc; --vscode-descriptionForeground: #9d9d9d; --vscode-editor-background: #1f1f1f;
  --vscode-editorWidget-background: #202020; --vscode-panel-border: #2b2b2b; --vscode-widget-border: #313131;
  --vscode-input-background: #313131; --vscode-input-foreground: #cccccc; --vscode-input-border: #3c3c3c;
  --vscode-input-placeholderForeground: #989898; --vscode-focusBorder: #0078d4; --vscode-textLink-foreground: #4daafc;
  --vscode-button-background: #0078d4; --vscode-button-foreground: #ffffff; --vscode-button-hoverBackground: #026ec1;
  --vscode-button-secondaryBackground: #313131; --vscode-button-secondaryForeground: #cccccc;
  --vscode-textCodeBlock-background: #2b2b2b; --vscode-toolbar-hoverBackground: #5a5d5e50;
  --vscode-diffEditor-insertedLineBackground: #9bb95533; --vscode-diffEditor-removedLineBackground: #ff000033;
  --vscode-font-family: "DejaVu Sans", sans-serif; --vscode-font-size: 12.5px;
  --vscode-editor-font-family: "DejaVu Sans Mono", monospace;
}
body { background: #181818; }
`

const CODE = `"""Simple statistics."""


def mean(values):
    """The arithmetic mean of a list of numbers."""
    if not values:
        raise ValueError("mean of an empty list")
    return sum(values) / len(values)


def variance(values):
    center = mean(values)
    return mean([(value - center) ** 2 for value in values])
`
const BEFORE = CODE.replace('    if not values:\n        raise ValueError("mean of an empty list")\n', "")

const stage = process.env["CODEWRIGHT_STAGE"]
if (stage === undefined) throw new Error("run this with editors/test/stage.sh")
const folder = path.join(stage, "statistics")
const file = path.join(folder, "src/stats.py")
mkdirSync(path.dirname(file), { recursive: true })
writeFileSync(file, BEFORE)
stub.settings.set("codewright.path", process.env["CODEWRIGHT_BIN"])
const window = await openWindow(folder)
const view = new StubView()
window.view.resolveWebviewView(view as never)
const browser = await launch()
const shown = await open(browser, VIEW, THEME, SCALE)
await connect(shown, view)
const { page } = shown
await page.getByText("What should we work on?").waitFor()
await page.getByLabel("Prompt").fill("Fix the mean of an empty list in @src/stats.py")
await page.getByLabel("Prompt").press("Enter")
await page.getByText("Run this command?").waitFor()
await page.locator(".changes", { hasText: "1 changed file" }).waitFor()
await stub.open(file)
await page.locator(".chip.add").first().waitFor()
// The frame has no caret that blinks.
await page.getByLabel("Prompt").blur()
const chat = (await page.screenshot({ type: "png", caret: "hide", animations: "disabled" })).toString("base64")

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;")
const coloured = (line: string): string =>
  escaped(line)
    .replace(/("[^"]*")/g, '<i class="s">$1</i>')
    .replace(/\b(def|return|if|not|raise|for|in)\b(?![^<]*<\/i>)/g, '<i class="k">$1</i>')
const rows = CODE.split("\n").map((line, at) => {
  const isNew = at === 5 || at === 6
  const lens = at === 5 ? '<div class="lens">✓ Accept &nbsp;|&nbsp; ↶ Reject &nbsp;|&nbsp; Codewright +2</div>' : ""
  return `${lens}<div class="row ${isNew ? "new" : ""}"><span class="no">${at + 1}</span>${coloured(line) || " "}</div>`
})
const circle = (x: number, y: number): string => `M${x} ${y}a1.5 1.5 0 1 0 .1 0`
const stroke = (d: string): string => `<svg viewBox="0 0 24 24"><path d="${d}"/></svg>`
const TITLE_ICONS = [
  "M12 5v14M5 12h14",
  "M4 12a8 8 0 1 0 2.5-5.8M4 4v4h4M12 8v4l3 2",
  "M3 5h18v14H3zM7 9l3 3-3 3M12.5 15H17",
]
const frame = await (await browser.newContext({ viewport: FRAME, deviceScaleFactor: SCALE })).newPage()
await frame.setContent(`<!DOCTYPE html><html><head><style>
  * { box-sizing: border-box; margin: 0 }
  body { background: #1f1f1f; color: #ccc; font: 12.5px/1.5 "DejaVu Sans", sans-serif; height: 100vh;
         display: flex; flex-direction: column }
  .title { height: 35px; background: #181818; border-bottom: 1px solid #2b2b2b; display: flex;
           align-items: center; justify-content: center; color: #9d9d9d; font-size: 12px }
  .main { flex: 1; display: flex; min-height: 0 }
  .activity { width: 46px; background: #181818; border-right: 1px solid #2b2b2b; padding-top: 6px }
  .activity div { height: 44px; display: grid; place-items: center; border-left: 2px solid transparent; color: #868686 }
  .activity .on { border-color: #0078d4; color: #d7d7d7 }
  .activity svg { width: 22px; height: 22px; fill: none; stroke: currentColor; stroke-width: 1.6;
    stroke-linecap: round; stroke-linejoin: round }
  .side { width: ${VIEW.width}px; background: #181818; border-right: 1px solid #2b2b2b;
          display: flex; flex-direction: column }
  .side h1 { font-size: 11px; font-weight: 400; height: 35px; padding: 0 14px;
             display: flex; align-items: center; gap: 12px; text-transform: uppercase }
  .side svg { width: 16px; height: 16px; fill: none; stroke: currentColor; stroke-width: 1.6;
    stroke-linecap: round; stroke-linejoin: round }
  .side h1 span { flex: 1 }
  .side img { width: ${VIEW.width}px; display: block }
  .editor { flex: 1; display: flex; flex-direction: column; min-width: 0 }
  .tabs { height: 35px; background: #181818; border-bottom: 1px solid #2b2b2b; display: flex }
  .tab { background: #1f1f1f; border-top: 1px solid #0078d4; padding: 7px 16px; color: #fff }
  .tab.off { background: none; border-color: transparent; color: #9d9d9d }
  .crumbs { color: #8a8a8a; font-size: 11.5px; padding: 3px 18px }
  .code { font: 13px/1.55 "DejaVu Sans Mono", monospace; padding-top: 4px; white-space: pre }
  .row { padding-left: 6px } .row.new { background: #9bb95526 }
  .no { display: inline-block; width: 44px; padding-right: 20px; text-align: right; color: #6e7681 }
  .lens { color: #999; font: 11px/1.7 "DejaVu Sans", sans-serif; padding-left: 84px }
  i { font-style: normal } .k { color: #c586c0 } .s { color: #ce9178 }
  .status { height: 22px; background: #181818; border-top: 1px solid #2b2b2b; display: flex;
            align-items: center; gap: 16px; padding: 0 10px; font-size: 11.5px; color: #ccc }
  .status .w { background: #7a6400; color: #fff; padding: 2px 7px; margin-left: auto }
</style></head><body>
<div class="title">stats.py — statistics</div>
<div class="main">
  <div class="activity">
    <div>${stroke("M7 3h8l4 4v14H7zM15 3v4h4")}</div>
    <div>${stroke("M11 4a7 7 0 1 0 0 14a7 7 0 1 0 0-14zM16 16l5 5")}</div>
    <div>${stroke(`M7 6v12M7 12c0-4 10-2 10-6${circle(7, 4)}${circle(17, 4)}${circle(7, 18)}`)}</div>
    <div class="on">${stroke("M8.5 6 3 12l5.500 6M15.500 6 21 12l-5.500 6M13.600 4.500l-3.200 15")}</div>
  </div>
  <div class="side"><h1>Codewright: Chat<span></span>${TITLE_ICONS.map(stroke).join("")}</h1>
    <img src="data:image/png;base64,${chat}"></div>
  <div class="editor">
    <div class="tabs"><div class="tab">stats.py</div><div class="tab off">stats.py (before Codewright ↔ now)</div></div>
    <div class="crumbs">src › stats.py › mean</div>
    <div class="code">${rows.join("")}</div>
  </div>
</div>
<div class="status"><span>main*</span><span>0 errors, 0 warnings</span>
  <span class="w">◆ Codewright ${stub.statusText.replace(/^.*Codewright ?/, "")}</span>
  <span>Ln 6, Col 1</span><span>Python</span></div>
</body></html>`)
await frame.waitForFunction(() => document.images[0]?.complete === true)
writeFileSync(TARGET, await frame.screenshot({ type: "png" }))
console.log(`written: ${TARGET}`)
await browser.close()
window.dispose()
