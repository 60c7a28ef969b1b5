/**
 * Module hooks for Node and deno: TypeScript everywhere, imports without extensions, and the built-in modules.
 *
 * `resolve` and `load` work both as synchronous hooks in the main thread (Node 22.15 and newer) and as asynchronous
 * hooks in a loader thread (older versions).
 */
import { readFileSync } from "node:fs";
import { dirname, extname, isAbsolute, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { builtinSource, builtinUrl, SCHEME } from "./builtin.js";
import { isFile, probeFile, probePackage, readManifest } from "./probe.js";

type Maybe<T> = T | Promise<T>;

interface Resolved {
  url: string;
  format?: string | null;
  shortCircuit?: boolean;
}

interface LoadResult {
  format: string;
  source?: string | NodeJS.ArrayBufferView | ArrayBuffer | null;
  shortCircuit?: boolean;
}

interface ResolveContext {
  parentURL?: string | undefined;
}

interface LoadContext {
  format?: string | null | undefined;
  importAttributes?: Record<string, string>;
}

/**
 * deno refuses TypeScript in `node_modules` before it calls `load`, so these files have URLs of another scheme there.
 */
export const PACKAGE_SCHEME = "codewright-package:";

const TYPESCRIPT_EXTENSIONS = [".ts", ".tsx", ".mts", ".cts", ".jsx"];
const TEXT_EXTENSIONS = [".txt", ".md", ".html", ".sql"];

/** Older versions take every `.js` file outside a package with `type: "module"` as CommonJS. */
const detectsModules =
  Number(process.versions.node.split(".")[0]) >= 22 || /^20\.(19|[2-9]\d)\./.test(process.versions.node);

export function resolve(
  specifier: string,
  context: ResolveContext,
  next: (specifier: string, context?: ResolveContext) => Maybe<Resolved>,
): Maybe<Resolved> {
  const replacement = builtinUrl(specifier, "always");
  if (replacement !== undefined) return { url: replacement, shortCircuit: true };
  if (specifier.startsWith(SCHEME)) return { url: specifier, shortCircuit: true };
  if (specifier.startsWith("bun:")) throw needsBun(specifier, context);
  return hidden(resolveFile(specifier, fromFile(context), next));
}

/** The context with the URL of the file in place of one of `PACKAGE_SCHEME`. */
function fromFile(context: ResolveContext): ResolveContext {
  const { parentURL } = context;
  return parentURL?.startsWith(PACKAGE_SCHEME)
    ? { ...context, parentURL: `file:${parentURL.slice(PACKAGE_SCHEME.length)}` }
    : context;
}

function hidden(resolved: Maybe<Resolved>): Maybe<Resolved> {
  if (!("Deno" in globalThis)) return resolved;
  if (resolved instanceof Promise) return resolved.then((resolved) => hidden(resolved));
  const { url } = resolved;
  const isRefused =
    url.startsWith("file:") &&
    url.includes("/node_modules/") &&
    TYPESCRIPT_EXTENSIONS.includes(extname(stripQuery(url)));
  return isRefused
    ? { url: PACKAGE_SCHEME + url.slice("file:".length), format: "module", shortCircuit: true }
    : resolved;
}

function resolveFile(
  specifier: string,
  context: ResolveContext,
  next: (specifier: string, context?: ResolveContext) => Maybe<Resolved>,
): Maybe<Resolved> {
  const recover = (error: unknown): Resolved => {
    const url = fallbackUrl(specifier, context.parentURL);
    if (url === undefined) throw error;
    return { url, shortCircuit: true };
  };
  const check = (resolved: Resolved): Resolved =>
    isMissingFile(resolved.url) ? recover(notFound(specifier, context)) : resolved;
  return attempt(() => next(specifier, context), recover, check);
}

/** deno reports a missing file or package only when it loads it. Node throws at once. */
function isMissingFile(url: string): boolean {
  return "Deno" in globalThis && url.startsWith("file:") && !isFile(fileURLToPath(stripQuery(url)));
}

function needsBun(specifier: string, { parentURL }: ResolveContext): Error {
  const importer = parentURL?.startsWith("file:") ? fileURLToPath(stripQuery(parentURL)) : "a plugin";
  return new Error(`${importer} imports ${specifier}, which only bun provides; install bun to use this plugin`);
}

function notFound(specifier: string, { parentURL }: ResolveContext): Error {
  const importer = parentURL?.startsWith("file:") ? fileURLToPath(stripQuery(parentURL)) : "the plugin host";
  const kind = /^(\.|\/|file:)/.test(specifier) ? "module" : "package";
  return Object.assign(new Error(`Cannot find ${kind} '${specifier}' imported from ${importer}`), {
    code: "ERR_MODULE_NOT_FOUND",
  });
}

export function load(
  url: string,
  context: LoadContext,
  next: (url: string, context?: LoadContext) => Maybe<LoadResult>,
): Maybe<LoadResult> {
  if (url.startsWith(SCHEME)) return { format: "module", source: builtinSource(url), shortCircuit: true };
  if (url.startsWith(PACKAGE_SCHEME)) return loadHidden(`file:${stripQuery(url).slice(PACKAGE_SCHEME.length)}`);
  if (!url.startsWith("file:")) return next(url, context);
  const file = fileURLToPath(stripQuery(url));
  const extension = extname(file);
  if (TYPESCRIPT_EXTENSIONS.includes(extension)) return loadTypeScript(file);
  if (context.importAttributes?.["type"] === undefined) {
    if (extension === ".json" && context.format !== "commonjs" && !isRequire(context)) {
      return { format: "module", source: `export default ${readJson(file)};`, shortCircuit: true };
    }
    if (TEXT_EXTENSIONS.includes(extension)) {
      return {
        format: "module",
        source: `export default ${JSON.stringify(readFileSync(file, "utf8"))};`,
        shortCircuit: true,
      };
    }
  }
  if (extension === ".js" && context.format === "commonjs" && !isRequire(context) && mayBeModule(file)) {
    const source = readFileSync(file, "utf8");
    if (isModule(source)) return { format: "module", source, shortCircuit: true };
  }
  return next(url, context);
}

/** Loads a file with a URL of `PACKAGE_SCHEME`. Its own address is that of the file. */
function loadHidden(url: string): LoadResult {
  const file = fileURLToPath(url);
  const own: Record<string, string> = { url, filename: file, dirname: dirname(file) };
  const loaded = loadTypeScript(file);
  const source = String(loaded.source).replace(/\bimport\.meta\.(url|filename|dirname)\b/g, (_, name: string) =>
    JSON.stringify(own[name]),
  );
  return { ...loaded, source };
}

function loadTypeScript(file: string): LoadResult {
  // The transformer is only loaded when a plugin needs it.
  const { transformSource } = require("./transform.js") as typeof import("./transform.js");
  const source = transformSource(readFileSync(file, "utf8"), file);
  const commonjs = extname(file) === ".cts" || (packageType(file) !== "module" && isCommonJs(source));
  return { format: commonjs ? "commonjs" : "module", source, shortCircuit: true };
}

function fallbackUrl(specifier: string, parentURL: string | undefined): string | undefined {
  const [path, query] = splitQuery(specifier);
  let file: string | undefined;
  if (path.startsWith("file:")) {
    file = probeFile(fileURLToPath(path));
  } else if (isAbsolute(path)) {
    file = probeFile(path);
  } else if (parentURL?.startsWith("file:")) {
    const directory = dirname(fileURLToPath(stripQuery(parentURL)));
    const relative = path === "." || path === ".." || path.startsWith("./") || path.startsWith("../");
    file = relative ? probeFile(join(directory, path)) : probePackage(path, directory);
  }
  if (file !== undefined) return pathToFileURL(file).href + query;
  return builtinUrl(specifier, "fallback");
}

/** `type` of the nearest package. */
export function packageType(file: string): string | undefined {
  for (let directory = dirname(file); ; directory = dirname(directory)) {
    const manifest = readManifest(directory);
    if (manifest !== undefined) return typeof manifest.type === "string" ? manifest.type : undefined;
    if (dirname(directory) === directory) return undefined;
  }
}

function hasModuleSyntax(source: string): boolean {
  return /^\s*(?:import\b(?!\s*\()|export\b)|\bimport\.meta\b/m.test(source);
}

/** `npm init` writes `type: "commonjs"`, which bun ignores for files with the syntax of modules. */
function mayBeModule(file: string): boolean {
  const type = packageType(file);
  return type === "commonjs" || (type === undefined && !detectsModules);
}

/** True if a source can only be a module. */
export function isModule(source: string): boolean {
  return hasModuleSyntax(source) && !/\bmodule\.exports\b|\bexports\.\w+\s*=/.test(source);
}

function isCommonJs(source: string): boolean {
  return !hasModuleSyntax(source) && /\bmodule\.exports\b|\bexports\.\w+\s*=|\brequire\s*\(/.test(source);
}

/** `require` of a JSON file goes through the same hooks and wants the file itself. */
function isRequire(context: LoadContext): boolean {
  const conditions = (context as { conditions?: string[] }).conditions;
  return conditions?.includes("require") === true;
}

function readJson(file: string): string {
  const text = readFileSync(file, "utf8");
  try {
    return JSON.stringify(JSON.parse(text));
  } catch (error) {
    throw new SyntaxError(`${(error as Error).message} (${file}:1:1)`);
  }
}

function splitQuery(specifier: string): [string, string] {
  const start = specifier.search(/[?#]/);
  return start < 0 ? [specifier, ""] : [specifier.slice(0, start), specifier.slice(start)];
}

function stripQuery(url: string): string {
  return splitQuery(url)[0];
}

function attempt<T>(run: () => Maybe<T>, recover: (error: unknown) => T, check: (result: T) => T): Maybe<T> {
  let result: Maybe<T>;
  try {
    result = run();
  } catch (error) {
    return recover(error);
  }
  return result instanceof Promise ? result.then(check, recover) : check(result);
}
