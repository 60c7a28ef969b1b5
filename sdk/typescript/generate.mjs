// Generates `src/gen/` (declarations) and `src/routes.ts` (the table of calls) from `../api/openapi.json`.
//
// openapi-ts writes types and a client. Only the declarations of its client are kept: its code weighs 140 kB, and the
// table does the same in 14 kB. The table is read from the generated code, so that both place parameters alike.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "@hey-api/openapi-ts";
import { adjust, operations, readDocument } from "../api/adjust.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const outputs = { declarations: join(here, "src/gen"), routes: join(here, "src/routes.ts"), shared: join(here, "../api/routes.txt") };
const work = mkdtempSync(join(tmpdir(), "codewright-sdk-"));
try {
  const document = adjust(readDocument());
  const source = join(work, "source");
  await generate(document, source);
  const table = routes(readFileSync(join(source, "sdk.gen.ts"), "utf8"), document);
  rmSync(outputs.declarations, { recursive: true, force: true });
  declarations(source, outputs.declarations);
  writeFileSync(outputs.shared, table);
  writeFileSync(outputs.routes, `// Generated from the API document by generate.mjs.\nexport const ROUTES: string = \`\n${table}\`;\n`);
} finally {
  rmSync(work, { recursive: true, force: true });
}

async function generate(document, output) {
  mkdirSync(output, { recursive: true });
  const input = join(work, "openapi.json");
  writeFileSync(input, JSON.stringify(document));
  const tsConfigPath = join(work, "tsconfig.json");
  writeFileSync(tsConfigPath, JSON.stringify({ compilerOptions: { module: "nodenext", moduleResolution: "nodenext" } }));
  await createClient({
    input,
    output: { path: output, tsConfigPath, clean: true },
    logs: { level: "silent" },
    plugins: [
      { name: "@hey-api/typescript", exportFromIndex: false },
      {
        name: "@hey-api/sdk",
        operations: { strategy: "single", containerName: "CodewrightClient", methods: "instance" },
        exportFromIndex: false,
        auth: false,
        paramsStructure: "flat",
      },
      { name: "@hey-api/client-fetch", exportFromIndex: false, baseUrl: "http://localhost:4096" },
    ],
  });
}

/** Writes the declarations of the generated modules. */
function declarations(source, target) {
  const tsc = join(here, "node_modules/typescript/bin/tsc");
  const options = ["--declaration", "--emitDeclarationOnly", "--outDir", join(work, "types"), "--skipLibCheck", "--strict"];
  const modules = ["--module", "nodenext", "--moduleResolution", "nodenext", "--target", "es2022", "--lib", "es2022,dom,dom.iterable"];
  writeFileSync(join(source, "package.json"), '{"type":"module"}');
  execFileSync(process.execPath, [tsc, ...options, ...modules, join(source, "sdk.gen.ts")], { stdio: "inherit" });
  for (const entry of readdirSync(join(work, "types"), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const text = readFileSync(file, "utf8").replaceAll(/\n\/\/# sourceMappingURL=.*\n?/g, "\n");
    writeFileSync(file, text);
  }
  cpSync(join(work, "types"), target, { recursive: true });
}

/**
 * Returns the table of calls: a line `name METHOD path` for each, `SSE` for event streams. Parameters that are not in the
 * path belong to the query of GET and to the body otherwise, but for `directory`, `workspace` and `location`. A line
 * ends with the exceptions: `?name` belongs to the query, `=name` is the body itself, `name>key` has another key,
 * and `-` says that there are no parameters.
 */
function routes(code, document) {
  const { calls, parts } = readClasses(code);
  const names = new Map();
  const visit = (type, prefix) => {
    for (const [method, call] of calls.get(type) ?? []) names.set([...prefix, method].join("."), call);
    for (const [getter, inner] of parts.get(type) ?? []) visit(inner, [...prefix, getter]);
  };
  visit("CodewrightClient", []);
  const known = new Set(operations(document).map(({ method, path }) => `${method} ${path}`));
  const lines = [...names].map(([name, { verb, url, isStream, args }]) => {
    if (!known.delete(`${verb} ${url}`)) throw new Error(`${name} is not in the document`);
    const isRead = verb === "GET";
    const exceptions = args.flatMap(({ place, key, map, name: parameter = key }) => {
      if (map === "body") return [`=${parameter}`];
      const usual = url.includes(`{${key}}`) ? "path" : isRead || ["directory", "workspace", "location"].includes(key) ? "query" : "body";
      const mark = place === usual ? "" : { query: "?", body: "!", path: "/" }[place];
      return mark === "" && parameter === key ? [] : [`${mark}${parameter}${parameter === key ? "" : `>${key}`}`];
    });
    // The first argument of a call without parameters is its options.
    if (args.length === 0) exceptions.push("-");
    return [name, isStream ? "SSE" : verb, url, ...exceptions].join(" ");
  });
  if (known.size > 0) throw new Error(`operations without a call: ${[...known].join(", ")}`);
  return `${lines.sort().join("\n")}\n`;
}

/** Returns the calls and the parts of each class of the generated code. */
function readClasses(code) {
  const calls = new Map();
  const parts = new Map();
  for (const [, type, body] of code.matchAll(/^export class (\w+) extends HeyApiClient \{\n(.*?)^\}/gms)) {
    const own = [];
    for (const [, name, text] of body.matchAll(/^    public (\w+)<(.*?)^    \}$/gms)) own.push([name, readCall(text)]);
    calls.set(type, own);
    parts.set(type, [...body.matchAll(/^    get (\w+)\(\): (\w+)/gm)].map(([, name, inner]) => [name, inner]));
  }
  return { calls, parts };
}

function readCall(text) {
  const [, stream, verb] = /this\.client\)\.(sse\.)?(\w+)</.exec(text);
  const [, url] = /url: '([^']+)'/.exec(text);
  const args = [];
  const list = /buildClientParams\(\[.*?\], \[(.*)\]\);/s.exec(text)?.[1] ?? "";
  for (const [, fields] of list.matchAll(/\{((?:\s*\w+: '[^']*',?)+)\s*\}/g)) {
    const field = (name) => new RegExp(`\\b${name}: '([^']*)'`).exec(fields)?.[1];
    args.push({ place: field("in"), key: field("map") && field("in") ? field("map") : field("key"), map: field("in") ? undefined : field("map"), name: field("key") });
  }
  return { verb: verb.toUpperCase(), url, isStream: stream !== undefined, args };
}
