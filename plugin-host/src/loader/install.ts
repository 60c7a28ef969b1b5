/** Installs the module hooks in the way that the runtime offers. */
import * as nodeModule from "node:module";
import { dirname } from "node:path";
import { BUILTIN_NAMES, builtinUrl, REGISTRY, SCHEME } from "./builtin.js";
import { load, resolve } from "./hooks.js";

type SyncHooks = (hooks: { resolve: unknown; load: unknown }) => void;

interface BunRuntime {
  resolveSync(specifier: string, from: string): string;
  plugin(plugin: { name: string; setup(build: BunBuild): void }): void;
}

interface BunBuild {
  onResolve(
    options: { filter: RegExp },
    callback: (args: { path: string; importer: string }) => { path: string; namespace?: string } | undefined,
  ): void;
  onLoad(options: { filter: RegExp; namespace: string }, callback: (args: { path: string }) => unknown): void;
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

/** bun loads TypeScript itself. Only the modules that are missing are ours. */
function installBunHooks(bun: BunRuntime): void {
  const names = BUILTIN_NAMES.filter((name) => builtinUrl(name, "fallback") !== undefined);
  const filter = new RegExp(`^(?:${names.map((name) => name.replace(/[/.\\]/g, "\\$&")).join("|")})$`);
  bun.plugin({
    name: "codewright",
    setup(build) {
      build.onResolve({ filter }, ({ path, importer }) => {
        try {
          bun.resolveSync(path, importer === "" ? process.cwd() : dirname(importer));
          return undefined;
        } catch {
          return { path, namespace: "codewright" };
        }
      });
      build.onLoad({ filter: /.*/, namespace: "codewright" }, ({ path }) => {
        const registry = (globalThis as unknown as Record<symbol, ModuleRegistry>)[REGISTRY] as ModuleRegistry;
        const exports = registry(path.startsWith(SCHEME) ? path.slice(SCHEME.length) : path);
        return { loader: "object", exports: { ...exports, default: exports["default"] ?? exports } };
      });
    },
  });
}
