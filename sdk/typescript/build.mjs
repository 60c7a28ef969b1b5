// Builds `dist/`: the code and its declarations.
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Bytes of code that the package may have. */
const LIMIT = 30_000;

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = join(here, "dist");
rmSync(dist, { recursive: true, force: true });
execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "-p", here, "--emitDeclarationOnly"], { stdio: "inherit" });
const sources = readdirSync(join(here, "src")).filter((name) => name.endsWith(".ts"));
await build({
  entryPoints: sources.map((name) => join(here, "src", name)),
  outdir: dist,
  format: "esm",
  target: "es2022",
  minify: true,
  keepNames: false,
});
cpSync(join(here, "src/gen"), join(dist, "gen"), { recursive: true });
copyFileSync(join(here, "../../LICENSE"), join(here, "LICENSE"));
const size = readdirSync(dist, { recursive: true }).filter((name) => name.endsWith(".js")).reduce((sum, name) => sum + statSync(join(dist, name)).size, 0);
console.log(`${size} bytes of code`);
if (size > LIMIT) throw new Error(`the code weighs ${size} bytes, more than ${LIMIT}`);
