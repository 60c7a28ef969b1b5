/**
 * Loads a plugin that is one file without module hooks.
 *
 * On Node below 22.15, module hooks need a second thread, which takes longer to start than everything else. Most
 * plugins and tool files are one TypeScript file that imports only modules of Node and those that the host provides.
 * Their source is transformed here, the provided modules become `data:` URLs, and so does the file. `sourceURL` keeps
 * its name in stacks.
 */
import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, extname } from "node:path";
import { pathToFileURL } from "node:url";
import { builtinSource, builtinUrl } from "./builtin.js";
import { isModule, packageType } from "./hooks.js";
import { probePackage } from "./probe.js";

/** Longer sources are bundles. */
const MAX_CHARS = 256 * 1024;

const SPECIFIER = /\b(?:from|import)\s*\(?\s*["']([^"'\n]+)["']/g;
/** The end of a statement that imports or exports names of a module, at the beginning of a line. */
const STATEMENT = /^([ \t]*(?:import|export|\})(?:[^"'`\n;=(]*\bfrom)?\s*)(["'])([^"'\n]+)\2/gm;
/** What works only in a file. */
const NEEDS_FILE = /\bimport\s*\.\s*meta\b|\bimport\s*\(|\brequire\b|\b__dirname\b|\b__filename\b/;

/** The URL of a module with the content of a file, or `undefined` if the file needs module hooks. */
export function singleFileUrl(file: string): string | undefined {
  const extension = extname(file);
  if (![".ts", ".mts", ".js"].includes(extension)) return undefined;
  let source: string;
  try {
    source = readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
  if (source.length > MAX_CHARS || NEEDS_FILE.test(source)) return undefined;
  if (extension === ".js" && packageType(file) !== "module" && !isModule(source)) return undefined;
  if (extension !== ".js") {
    const { transformSource } = require("./transform.js") as typeof import("./transform.js");
    source = transformSource(source, file);
  }
  const code = withProvidedModules(source, file);
  if (code === undefined) return undefined;
  const name = `\n//# sourceURL=${pathToFileURL(file).href}`;
  return `data:text/javascript;base64,${Buffer.from(code + name).toString("base64")}`;
}

/** The source with the URLs of provided modules, or `undefined` if it imports others. */
function withProvidedModules(source: string, file: string): string | undefined {
  const all = [...source.matchAll(SPECIFIER)].length;
  let replaced = 0;
  let isSingle = true;
  // Text in backticks may look like statements. Imports are usually before all of it.
  const firstTemplate = source.indexOf("`");
  const code = source.replace(STATEMENT, (whole, head: string, quote: string, specifier: string, offset: number) => {
    replaced += 1;
    if (firstTemplate >= 0 && offset > firstTemplate) isSingle = false;
    if (specifier !== "bun" && isBuiltin(specifier)) return whole;
    const url = providedUrl(specifier, file);
    if (url === undefined) isSingle = false;
    return `${head}${quote}${url}${quote}`;
  });
  // A specifier elsewhere may be part of a text.
  return isSingle && replaced === all ? code : undefined;
}

function providedUrl(specifier: string, file: string): string | undefined {
  const always = builtinUrl(specifier, "always");
  const fallback = builtinUrl(specifier, "fallback");
  const url =
    always ?? (fallback !== undefined && probePackage(specifier, dirname(file)) === undefined ? fallback : undefined);
  return url === undefined
    ? undefined
    : `data:text/javascript;base64,${Buffer.from(builtinSource(url)).toString("base64")}`;
}
