/** Installs the module hooks in the way that the runtime offers. */
import { readFileSync } from "node:fs";
import * as nodeModule from "node:module";
import { dirname, extname } from "node:path";
import { BUILTIN_NAMES, builtinUrl, REGISTRY, SCHEME } from "./builtin.js";
import { walkSources } from "./graph.js";
import { load, resolve } from "./hooks.js";

type SyncHooks = (hooks: { resolve: unknown; load: unknown }) => void;

interface BunRuntime {
  resolveSync(specifier: string, from: string): string;
  plugin(plugin: { name: string; setup(build: BunBuild): void }): void;
}

interface BunBuild {
  module(name: string, callback: () => unknown): void;
  onLoad(options: { filter: RegExp }, callback: (args: { path: string }) => unknown): void;
}

let installed = false;

/** True if hooks are cheap here, so that they are installed before the first plugin. */
export const hooksAreCheap = "Bun" in globalThis || "registerHooks" in nodeModule;

/** Loads a built-in module by its name. */
export type ModuleRegistry = (name: string) => Record<string, unknown>;

export function provideModules(registry: ModuleRegistry): void {
  Object.defineProperty(globalThis, REGISTRY, { value: registry, configurable: true });
}

export function hooksInstalled(): boolean {
  return installed;
}

/** Installs the hooks once. On Node below 22.15 this starts a loader thread. */
export function installHooks(): void {
  if (installed) return;
  installed = true;
  const bun = bunRuntime();
  if (bun !== undefined) return provideBunModules(bun);
  const registerHooks = (nodeModule as { registerHooks?: SyncHooks }).registerHooks;
  if (registerHooks !== undefined) registerHooks({ resolve, load });
  else nodeModule.register(import.meta.url);
}

function bunRuntime(): BunRuntime | undefined {
  return process.versions["bun"] === undefined ? undefined : (globalThis as { Bun?: BunRuntime }).Bun;
}

const FALLBACKS = BUILTIN_NAMES.filter((name) => builtinUrl(name, "fallback") !== undefined);

/** bun loads TypeScript itself. It only needs the built-in modules, under names of their own. */
function provideBunModules(bun: BunRuntime): void {
  const registry = (globalThis as unknown as Record<symbol, ModuleRegistry>)[REGISTRY] as ModuleRegistry;
  bun.plugin({
    name: "codewright modules",
    setup(build) {
      for (const name of FALLBACKS) {
        build.module(SCHEME + name, () => {
          const exports = registry(name);
          return { loader: "object", exports: { ...exports, default: exports["default"] ?? exports } };
        });
      }
    },
  });
}

/**
 * Prepares the files of a plugin on bun. bun offers no hook for the names of packages, so the files that import a
 * missing package are changed to import the built-in module of that name.
 */
export function prepareForBun(entry: string): void {
  const bun = bunRuntime();
  if (bun === undefined) return;
  const pattern = FALLBACKS.map(escapeExpression).join("|");
  const imports = new RegExp(`(\\b(?:from|import)\\s*\\(?\\s*)(["'])(${pattern})\\2`, "g");
  const rewrite = (source: string, file: string) =>
    source.replace(imports, (whole, head: string, quote: string, name: string, offset: number) =>
      !isInTemplate(source, offset) && isMissing(bun, name, file) ? `${head}${quote}${SCHEME}${name}${quote}` : whole,
    );
  const changed = [...walkSources(entry)].filter(({ file, source }) => rewrite(source, file) !== source);
  if (changed.length === 0) return;
  const filter = new RegExp(`^(?:${changed.map(({ file }) => escapeExpression(file)).join("|")})$`);
  bun.plugin({
    name: "codewright imports",
    setup(build) {
      build.onLoad({ filter }, ({ path }) => ({
        contents: rewrite(readFileSync(path, "utf8"), path),
        loader: LOADERS[extname(path)] ?? "js",
      }));
    },
  });
}

/** True if a position is probably in a text in backticks, whose content must stay. */
function isInTemplate(source: string, offset: number): boolean {
  return (source.slice(0, offset).match(/(?<!\\)`/g)?.length ?? 0) % 2 === 1;
}

const LOADERS: Record<string, string> = { ".ts": "ts", ".mts": "ts", ".cts": "ts", ".tsx": "tsx", ".jsx": "jsx" };

function escapeExpression(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

function isMissing(bun: BunRuntime, name: string, importer: string): boolean {
  try {
    bun.resolveSync(name, dirname(importer));
    return false;
  } catch {
    return true;
  }
}
