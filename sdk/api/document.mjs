// Writes `openapi.json` from a running server, or compares them.
//
//   node document.mjs URL            exit with 1 if openapi.json differs from what the server serves
//   node document.mjs URL --write    replace openapi.json
import { readFileSync, writeFileSync } from "node:fs";
import { format } from "./adjust.mjs";

const [url, flag] = process.argv.slice(2);
const file = new URL("openapi.json", import.meta.url);
const response = await fetch(new URL("/doc", url), { signal: AbortSignal.timeout(20_000) });
if (!response.ok) throw new Error(`GET /doc returned ${response.status}`);
const served = format(await response.json());
if (flag === "--write") {
  writeFileSync(file, served);
} else if (readFileSync(file, "utf8") !== served) {
  console.error("sdk/api/openapi.json differs from GET /doc; run sdk/generate in the root directory");
  process.exit(1);
}
