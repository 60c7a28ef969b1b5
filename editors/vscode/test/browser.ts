// The real view in a headless Chromium: the page of the extension, its script and its style sheet.
import { existsSync, readFileSync } from "node:fs"
import type { Browser, Page } from "playwright-core"
import { page as html } from "../src/view"
import type { StubView } from "./stub/vscode"

const ORIGIN = "https://view.test"
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
]

/** Why the browser cannot run, or false. */
export const missing: string | false = !BROWSERS.some((path) => existsSync(path)) ? "chromium is not installed" : false

export async function launch(): Promise<Browser> {
  const { chromium } = await import("playwright-core")
  const executablePath = BROWSERS.find((path) => existsSync(path)) ?? ""
  return chromium.launch({ executablePath, args: FLAGS, timeout: 60_000 })
}

export interface Shown {
  page: Page
  /** Errors of the page, violations of its policy, and requests to other addresses. */
  troubles: string[]
  /** The messages of the view. */
  sent: unknown[]
  post(message: unknown): Promise<void>
}

/** Opens the view. `frame` can put styles of an editor around it. */
export async function open(
  browser: Browser,
  size: { width: number; height: number },
  styles = "",
  scale = 1,
): Promise<Shown> {
  const context = await browser.newContext({ viewport: size, deviceScaleFactor: scale })
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  const troubles: string[] = []
  const sent: unknown[] = []
  page.on("pageerror", (error) => troubles.push(`error: ${error.message}`))
  page.on("console", (message) => {
    if (message.type() === "error") troubles.push(`console: ${message.text()}`)
  })
  await page.route("**/*", async (route) => {
    const url = route.request().url()
    const content = "text/html; charset=utf-8"
    if (url === `${ORIGIN}/`) {
      const body = html({ nonce: "bm9uY2U", source: ORIGIN, script: `${ORIGIN}/view.js`, style: `${ORIGIN}/view.css` })
      return route.fulfill({ contentType: content, body })
    }
    if (url === `${ORIGIN}/view.js`)
      return route.fulfill({ contentType: "text/javascript", body: readFileSync("out/view.js", "utf8") })
    if (url === `${ORIGIN}/view.css`)
      return route.fulfill({ contentType: "text/css", body: styles + readFileSync("out/view.css", "utf8") })
    if (!url.endsWith("/favicon.ico")) troubles.push(`request: ${url}`)
    return route.abort()
  })
  const receivers: ((message: unknown) => void)[] = [(message) => sent.push(message)]
  await page.exposeFunction("__receive", (message: unknown) => receivers.forEach((receive) => receive(message)))
  await page.addInitScript(() => {
    const state: { value: unknown } = { value: undefined }
    Object.assign(window, {
      acquireVsCodeApi: () => ({
        postMessage: (message: unknown) => (window as unknown as { __receive(it: unknown): void }).__receive(message),
        getState: () => state.value,
        setState: (value: unknown) => (state.value = value),
      }),
    })
  })
  await page.goto(`${ORIGIN}/`)
  const post = (message: unknown): Promise<void> =>
    page.evaluate((data) => void window.dispatchEvent(new MessageEvent("message", { data })), message)
  return { page, troubles, sent, post }
}

/** Connects the page with a view of the extension. */
export async function connect(shown: Shown, view: StubView): Promise<void> {
  const { page, post } = shown
  let last: Promise<unknown> = Promise.resolve()
  view.webview.postMessage = (message) => {
    const copy = JSON.parse(JSON.stringify(message))
    last = last
      .then(() => post(copy))
      .catch(() => {
        // The page was closed.
      })
    return Promise.resolve(true)
  }
  const seen = shown.sent.splice(0)
  shown.sent.push = (...messages: unknown[]) => {
    messages.forEach((message) => view.send(message))
    return 0
  }
  seen.forEach((message) => view.send(message))
  await page.waitForSelector("textarea")
}
