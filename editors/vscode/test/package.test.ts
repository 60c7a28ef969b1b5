// The extension is packaged as it is published: only its own files, and no development dependency.
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { test } from "node:test"

/** The largest package, in bytes. */
const MAX_BYTES = 400 << 10
const vsce = path.resolve("node_modules/.bin/vsce")

/** Returns the names in the directory of a zip file. */
function names(zip: Buffer): string[] {
  const found: string[] = []
  for (let at = zip.indexOf("PK\x01\x02"); at !== -1; at = zip.indexOf("PK\x01\x02", at + 4)) {
    found.push(zip.toString("utf8", at + 46, at + 46 + zip.readUInt16LE(at + 28)))
  }
  return found.sort()
}

test("the package contains the extension and nothing else", {
  skip: existsSync(vsce) ? false : "vsce is not installed",
}, () => {
  const folder = mkdtempSync(path.join(tmpdir(), "codewright-vsix-"))
  try {
    const file = path.join(folder, "codewright.vsix")
    const args = [
      "package",
      "--no-dependencies",
      "--allow-missing-repository",
      "--skip-license",
      "--no-rewrite-relative-links",
      "-o",
      file,
    ]
    execFileSync(vsce, args, { stdio: ["ignore", "pipe", "pipe"], timeout: 120_000 })
    const zip = readFileSync(file)
    assert.deepEqual(names(zip), [
      "[Content_Types].xml",
      "extension.vsixmanifest",
      "extension/media/icon.png",
      "extension/media/icon.svg",
      "extension/out/extension.js",
      "extension/out/view.css",
      "extension/out/view.js",
      "extension/package.json",
      "extension/readme.md",
    ])
    assert.ok(zip.length < MAX_BYTES, `${zip.length} bytes`)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test("the lock file names no registry", () => {
  const lock = JSON.parse(readFileSync("package-lock.json", "utf8"))
  const packages = Object.values(lock.packages) as { resolved?: string }[]
  assert.ok(packages.length > 10)
  assert.deepEqual(
    packages.filter((it) => it.resolved !== undefined),
    [],
  )
})
