// Bundles src/ into dist/host.mjs, and compresses that into dist/host.mjs.deflate, which is part of the program. With
// --verify it only compares the result with the file.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { deflateRawSync } from "node:zlib";
import { build } from "esbuild";

const out = fileURLToPath(new URL("dist/host.mjs", import.meta.url));

/** The names that zod exports. Module hooks need them without loading zod. */
const zodExports = {
  name: "zod-exports",
  setup(plugin) {
    plugin.onResolve({ filter: /^zod-exports$/ }, () => ({ path: "zod-exports", namespace: "generated" }));
    plugin.onLoad({ filter: /.*/, namespace: "generated" }, async () => {
      const names = Object.keys(await import("zod")).filter((name) => name !== "default");
      return { contents: `export const ZOD_EXPORTS = ${JSON.stringify(names.join(" "))}.split(" ");` };
    });
  },
};

/** zod has its messages in about fifty languages. The host needs the English ones. */
const englishOnly = {
  name: "english-only",
  setup(plugin) {
    plugin.onLoad({ filter: /zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: `export { default as en } from "./en.js";`,
      loader: "js",
    }));
  },
};

/** The digest of everything that the bundle is made of. A test of `xtask` compares it without Node. */
function sourceDigest() {
  const root = fileURLToPath(new URL(".", import.meta.url));
  const files = readdirSync(`${root}src`, { recursive: true }).filter((name) => name.endsWith(".ts"));
  const names = [...files.map((name) => `src/${name}`), "build.mjs", "package-lock.json"].sort();
  const hash = createHash("sha256");
  for (const name of names) hash.update(`${name}\0`).update(readFileSync(root + name)).update("\0");
  return hash.digest("hex");
}

const result = await build({
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  entryPoints: ["src/main.ts"],
  outfile: out,
  bundle: true,
  write: false,
  metafile: true,
  format: "esm",
  platform: "node",
  target: "node20",
  mainFields: ["module", "main"],
  minify: true,
  keepNames: false,
  legalComments: "none",
  charset: "utf8",
  plugins: [zodExports, englishOnly],
  banner: {
    js: [
      "// Generated from plugin-host/src by `npm run build`. Do not edit. Licenses of bundled libraries: plugin-host/LICENSES.md",
      `// Sources: ${sourceDigest()}`,
    ].join("\n"),
  },
});

const text = result.outputFiles[0].text;
if (process.argv.includes("--verify")) {
  if (readFileSync(out, "utf8") !== text) {
    console.error("dist/host.mjs does not match its sources; run `npm run build`");
    process.exit(1);
  }
} else {
  mkdirSync(fileURLToPath(new URL("dist", import.meta.url)), { recursive: true });
  writeFileSync(out, text);
  writeFileSync(`${out}.deflate`, deflateRawSync(text, { level: 9 }));
}

if (process.argv.includes("--sizes")) {
  const inputs = Object.values(result.metafile.outputs)[0].inputs;
  const groups = new Map();
  for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
    const match = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file);
    const group = match === null ? "the host itself" : match[1];
    groups.set(group, (groups.get(group) ?? 0) + bytesInOutput);
  }
  for (const [group, bytes] of [...groups].sort((a, b) => b[1] - a[1])) console.log(`${bytes}\t${group}`);
}
