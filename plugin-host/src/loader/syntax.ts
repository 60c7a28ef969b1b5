/** Finds the place of a syntax error. Node does not report it for JavaScript modules. */
import { extname } from "node:path";
import { walkSources } from "./graph.js";

/** The error with its place in the message, or the same error if the place cannot be found. */
export function locateSyntaxError(error: SyntaxError, entry: string): SyntaxError {
  for (const { file, source } of walkSources(entry)) {
    if (extname(file) === ".json") continue;
    const place = scriptError(source, error.message) ?? transformError(source, file);
    if (place !== undefined) return new SyntaxError(`${error.message} (${file}:${place})`);
  }
  return error;
}

/** Compiles a module as a script. Imports and exports are blanked out, so that lines and columns stay. */
function scriptError(source: string, message: string): string | undefined {
  const blank = (text: string) => text.replace(/[^\n]/g, " ");
  const script = source
    .replace(/^[ \t]*import\b(?!\s*[.(])[^;"']*["'][^"'\n]*["'];?/gm, blank)
    .replace(/^[ \t]*export\s+(?:default\s+)?(?!\*|\{)/gm, blank);
  const vm = require("node:vm") as typeof import("node:vm");
  try {
    new vm.Script(`(async () => {${script}\n})`, { filename: "module" });
    return undefined;
  } catch (error) {
    if (!(error instanceof SyntaxError) || error.message !== message) return undefined;
    const match = /^module:(\d+)\n[^\n]*\n( *)\^/.exec(error.stack ?? "");
    if (match === null) return undefined;
    const line = Number(match[1]);
    const column = (match[2] as string).length + 1;
    return `${line}:${line === 1 ? Math.max(1, column - "(async () => {".length) : column}`;
  }
}

function transformError(source: string, file: string): string | undefined {
  const { transformSource } = require("./transform.js") as typeof import("./transform.js");
  try {
    transformSource(source, file);
    return undefined;
  } catch (error) {
    return /:(\d+:\d+)\)$/.exec((error as Error).message)?.[1];
  }
}
