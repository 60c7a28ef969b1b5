// Bundles src/ into the files of dist/, and compresses each of them into NAME.deflate, which is part of the program.
// With --verify it only compares the results with the files.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { deflateRawSync } from "node:zlib";
import { build } from "esbuild";

const out = fileURLToPath(new URL("dist/", import.meta.url));

/**
 * The entry, and large parts that many plugins or some runtimes do not need. Runtimes read a file as a whole before
 * they run it.
 */
const FILES = [
  { name: "host.mjs", entry: "src/main.ts", format: "esm" },
  { name: "zod.cjs", entry: "src/schema/zod.ts", format: "cjs" },
  { name: "bun.cjs", entry: "src/bun/shim.ts", format: "cjs" },
  { name: "typescript.cjs", entry: "src/loader/transform.ts", format: "cjs" },
];

/** Makes the entry load the other files. */
const separateFiles = {
  name: "separate-files",
  setup(plugin) {
    plugin.onResolve({ filter: /\/(zod|transform|shim)\.js$/ }, ({ kind, path }) => {
      if (kind !== "require-call") return undefined;
      const [file] = FILES.filter(({ entry }) => entry.endsWith(path.replace(/^.*\/(\w+)\.js$/, "/$1.ts")));
      return { path: `./${file.name}`, external: true };
    });
  },
};

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
  for (const name of names)
    hash
      .update(`${name}\0`)
      .update(readFileSync(root + name))
      .update("\0");
  return hash.digest("hex");
}

const root = fileURLToPath(new URL(".", import.meta.url));
const banner = [
  "// Generated from plugin-host/src by `npm run build`. Do not edit. Licenses of bundled libraries: " +
    "plugin-host/LICENSES.md",
  `// Sources: ${sourceDigest()}`,
];
/** Modules have no `require` of their own. */
const require = `import{createRequire as r_}from"node:module";const require=r_(import.meta.url);`;

function bundle({ entry, format }) {
  return build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    format,
    platform: "node",
    target: "node20",
    mainFields: ["module", "main"],
    minify: true,
    keepNames: false,
    legalComments: "none",
    charset: "utf8",
    plugins: [zodExports, englishOnly, separateFiles],
    banner: { js: [...banner, ...(format === "esm" ? [require] : [])].join("\n") },
  });
}

const results = new Map();
for (const file of FILES) results.set(file.name, await bundle(file));

for (const [name, result] of results) {
  const text = result.outputFiles[0].text;
  if (process.argv.includes("--verify")) {
    if (readFileSync(out + name, "utf8") !== text) {
      console.error(`dist/${name} does not match its sources; run \`npm run build\``);
      process.exit(1);
    }
  } else {
    mkdirSync(out, { recursive: true });
    writeFileSync(out + name, text);
    writeFileSync(`${out}${name}.deflate`, deflateRawSync(text, { level: 9 }));
  }
}

if (process.argv.includes("--sizes")) {
  for (const [name, result] of results) {
    const inputs = Object.values(result.metafile.outputs)[0].inputs;
    const groups = new Map();
    for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
      const match = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file);
      const group = match === null ? "the host itself" : match[1];
      groups.set(group, (groups.get(group) ?? 0) + bytesInOutput);
    }
    for (const [group, bytes] of [...groups].sort((a, b) => b[1] - a[1])) console.log(`${name}\t${bytes}\t${group}`);
  }
}
