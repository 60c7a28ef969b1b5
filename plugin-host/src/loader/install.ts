/** Installs the module hooks in the way that the runtime offers. */
import { readFileSync } from "node:fs";
import * as nodeModule from "node:module";
import { dirname, extname } from "node:path";
import { BUILTIN_NAMES, builtinUrl, REGISTRY, SCHEME } from "./builtin.js";
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
  const bun = (globalThis as { Bun?: BunRuntime }).Bun;
  if (process.versions["bun"] !== undefined && bun !== undefined) return installBunHooks(bun);
  const registerHooks = (nodeModule as { registerHooks?: SyncHooks }).registerHooks;
  if (registerHooks !== undefined) registerHooks({ resolve, load });
  else nodeModule.register(import.meta.url);
}

/**
 * bun loads TypeScript itself, and offers no hook for the names of packages. So sources that import a missing package
 * are changed to import the built-in module of that name.
 */
function installBunHooks(bun: BunRuntime): void {
  const names = BUILTIN_NAMES.filter((name) => builtinUrl(name, "fallback") !== undefined);
  const pattern = names.map((name) => name.replace(/[/.\\]/g, "\\$&")).join("|");
  const imports = new RegExp(`(\\b(?:from|import)\\s*\\(?\\s*)(["'])(${pattern})\\2`, "g");
  const registry = (globalThis as unknown as Record<symbol, ModuleRegistry>)[REGISTRY] as ModuleRegistry;
  bun.plugin({
    name: "codewright",
    setup(build) {
      for (const name of names) {
        build.module(SCHEME + name, () => {
          const exports = registry(name);
          return { loader: "object", exports: { ...exports, default: exports["default"] ?? exports } };
        });
      }
      // Packages bring what they import. Only local files may lack it.
      build.onLoad({ filter: /^(?!.*[\\/]node_modules[\\/]).*\.(?:[cm]?[jt]s|[jt]sx)$/ }, ({ path }) => {
        const source = readFileSync(path, "utf8");
        const contents = source.replace(imports, (whole, head: string, quote: string, name: string) =>
          isMissing(bun, name, path) ? `${head}${quote}${SCHEME}${name}${quote}` : whole,
        );
        return { contents, loader: LOADERS[extname(path)] ?? "js" };
      });
    },
  });
}

const LOADERS: Record<string, string> = { ".ts": "ts", ".mts": "ts", ".cts": "ts", ".tsx": "tsx", ".jsx": "jsx" };

function isMissing(bun: BunRuntime, name: string, importer: string): boolean {
  try {
    bun.resolveSync(name, dirname(importer));
    return false;
  } catch {
    return true;
  }
}
