// Bundles the extension and the view into `out`, and with `--tests` also the tests, for which `vscode` is the stub.
import { build } from "esbuild"
import { readdirSync, rmSync } from "node:fs"

const common = { bundle: true, logLevel: "warning", legalComments: "none", charset: "utf8", sourcemap: false }
const host = { ...common, platform: "node", target: "node20" }

rmSync("out", { recursive: true, force: true })
await Promise.all([
  build({
    ...host,
    entryPoints: ["src/extension.ts"],
    outfile: "out/extension.js",
    format: "cjs",
    external: ["vscode"],
    minify: true,
  }),
  build({
    ...common,
    entryPoints: ["webview/main.ts"],
    outfile: "out/view.js",
    format: "iife",
    target: "es2022",
    minify: true,
  }),
  build({ ...common, entryPoints: ["webview/style.css"], outfile: "out/view.css", minify: true }),
])
if (process.argv.includes("--tests")) {
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts") || name === "picture.ts")
  await build({
    ...host,
    entryPoints: tests.map((name) => `test/${name}`),
    outdir: "out/test",
    outExtension: { ".js": ".mjs" },
    format: "esm",
    alias: { vscode: "./test/stub/vscode.ts" },
    external: ["playwright-core"],
  })
}
