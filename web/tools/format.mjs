// The formatter, for the tools that write sources.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BIOME = fileURLToPath(new URL("../node_modules/@biomejs/biome/bin/biome", import.meta.url));
const DEADLINE_MS = 60_000;

/** Returns the text of a source in the format of all sources. */
export function formatted(path, text) {
  const command = [BIOME, "format", `--stdin-file-path=${path}`];
  return execFileSync(process.execPath, command, { cwd: ROOT, input: text, encoding: "utf8", timeout: DEADLINE_MS });
}
