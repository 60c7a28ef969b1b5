// Builds `dist/`, and copies the plugin host, which the test helper runs.
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const host = join(here, "../../plugin-host");
for (const name of ["dist", "host"]) rmSync(join(here, name), { recursive: true, force: true });
execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "-p", here], { stdio: "inherit" });
mkdirSync(join(here, "host"));
for (const name of ["host.mjs", "bun.cjs", "typescript.cjs", "zod.cjs"]) cpSync(join(host, "dist", name), join(here, "host", name));
copyFileSync(join(host, "LICENSES.md"), join(here, "host/LICENSES.md"));
copyFileSync(join(here, "../../LICENSE"), join(here, "LICENSE"));
