// Checks that shared types have the shape of `@opencode-ai/sdk` 1.18.33: each name that both packages export must be
// assignable in both directions, and so must the parameters and results of each call that both clients have.
//
// `differences.json` lists the exceptions with their reasons. An exception that is not needed any more is an error.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const OURS = "dist/gen/types.gen.d.ts";
const THEIRS = "node_modules/@opencode-ai/sdk/dist/v2/gen/types.gen.d.ts";
const work = join(root, "node_modules/.parity");
const read = (file) => readFileSync(join(root, file), "utf8");
const names = (file) => [...read(file).matchAll(/^export (?:declare )?type (\w+)/gm)].map(([, name]) => name);
const { types, calls: different } = JSON.parse(read("test/differences.json"));

const theirs = new Set(names(THEIRS));
const shared = names(OURS).filter((name) => theirs.has(name));
const upstream = readRoutes(read("node_modules/@opencode-ai/sdk/dist/v2/gen/sdk.gen.js"));
const calls = read("../api/routes.txt").trim().split("\n").map((line) => line.split(" ")[0]).filter((name) => upstream.has(name));

const lines = [
  `import type * as Ours from "../../${OURS.replace(".d.ts", ".js")}";`,
  `import type * as Theirs from "../../${THEIRS.replace(".d.ts", ".js")}";`,
  `import type { CodewrightClient } from "../../dist/client.js";`,
  `import type { OpencodeClient } from "@opencode-ai/sdk/v2";`,
  "type To<A, B> = [A] extends [B] ? true : false;",
  "type Data<F> = F extends (...args: any[]) => Promise<infer R> ? (R extends { data: infer D } ? Exclude<D, undefined> : R) : never;",
  "type In<F> = F extends (...args: any[]) => any ? Parameters<F>[0] : never;",
];
const checks = [];
const check = (name, direction, from, to) => {
  checks.push({ name, direction, line: lines.length + 1 });
  lines.push(`export const c${checks.length}: To<${from}, ${to}> = true;`);
};
for (const name of shared) {
  check(name, "to", `Ours.${name}`, `Theirs.${name}`);
  check(name, "from", `Theirs.${name}`, `Ours.${name}`);
}
for (const name of calls) {
  const path = name.split(".").map((part) => `["${part}"]`).join("");
  const [our, their] = [`CodewrightClient${path}`, `OpencodeClient${path}`];
  check(`${name}()`, "to", `Data<${our}>`, `Data<${their}>`);
  if (upstream.get(name)) check(`${name}()`, "from", `In<${their}>`, `In<${our}>`);
}
rmSync(work, { recursive: true, force: true });
mkdirSync(work, { recursive: true });
writeFileSync(join(work, "parity.ts"), lines.join("\n"));
const failed = new Set(compile().map((line) => checks.find((entry) => entry.line === line)).map((entry) => `${entry.name} ${entry.direction}`));

const allowed = new Map();
for (const [reason, entries] of Object.entries({ ...types, ...different })) for (const entry of entries) allowed.set(entry, reason);
const missing = [...failed].filter((entry) => !allowed.has(entry));
const stale = [...allowed.keys()].filter((entry) => !failed.has(entry));
for (const entry of missing) console.error(`not the shape of @opencode-ai/sdk: ${entry}`);
for (const entry of stale) console.error(`not different any more: ${entry}`);
console.log(`${shared.length} types and ${calls.length} calls are shared, with ${allowed.size} known differences`);
process.exit(missing.length + stale.length > 0 || shared.length < 1200 || calls.length < 150 ? 1 : 0);

/** Returns the lines with errors. */
function compile() {
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", "--types", "node"];
  try {
    execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), ...options, join(work, "parity.ts")], { encoding: "utf8" });
    return [];
  } catch (error) {
    const found = [...error.stdout.matchAll(/parity\.ts\((\d+),\d+\): error TS(\d+)/g)];
    const broken = found.filter(([, line, code]) => code !== "2322" || Number(line) <= 7);
    if (found.length === 0 || broken.length > 0) throw new Error(error.stdout.slice(0, 3000));
    return found.map(([, line]) => Number(line));
  }
}

/** Returns the calls of a generated client, and whether they have parameters. */
function readRoutes(code) {
  const found = new Map();
  const classes = new Map([...code.matchAll(/^export class (\w+) extends HeyApiClient \{\n(.*?)^\}/gms)].map(([, name, body]) => [name, body]));
  const visit = (name, prefix) => {
    const body = classes.get(name) ?? "";
    for (const [, method, parameters] of body.matchAll(/^    (\w+)\((parameters, )?options\) \{$/gm)) {
      found.set([...prefix, method].join("."), parameters !== undefined);
    }
    for (const [, part, type] of body.matchAll(/^    get (\w+)\(\) \{\s+return \(this\._\w+ \?\?= new (\w+)/gm)) visit(type, [...prefix, part]);
  };
  visit("OpencodeClient", []);
  return found;
}
