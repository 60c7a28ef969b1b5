/**
 * Modules that the host provides when a plugin cannot resolve them itself.
 *
 * Their source runs in the main thread and takes its values from a global registry. The list of names is known
 * without loading the modules, because module hooks may run in another thread.
 */
import { BUN_EXPORTS } from "../bun/names.js";
import { ZOD_EXPORTS } from "zod-exports";

/** The registry: the name of a module to a function that loads it. */
export const REGISTRY = Symbol.for("codewright.plugin-host.modules");

export const SCHEME = "codewright:";

interface BuiltinModule {
  exports: readonly string[];
  /** True if the built-in module is used even if a package of that name is installed. */
  always?: boolean;
}

const tool: BuiltinModule = { exports: ["tool"] };
const zod: BuiltinModule = { exports: ZOD_EXPORTS };
const sdk: BuiltinModule = { exports: ["createOpencodeClient", "createOpencode", "createOpencodeServer"] };

const MODULES: Record<string, BuiltinModule> = {
  "@opencode-ai/plugin": tool,
  "@opencode-ai/plugin/tool": tool,
  "@codewright/plugin": tool,
  "@opencode-ai/plugin/v2/effect": { exports: ["define"] },
  "@opencode-ai/plugin/v2/effect/plugin": { exports: ["define"] },
  "@opencode-ai/plugin/v2/promise": { exports: ["define"] },
  "@opencode-ai/sdk": sdk,
  "@opencode-ai/sdk/client": sdk,
  "@opencode-ai/sdk/v2": sdk,
  "@opencode-ai/sdk/v2/client": sdk,
  zod,
  "zod/v4": zod,
  bun: { exports: BUN_EXPORTS, always: true },
  "bun:sqlite": { exports: ["Database", "constants"], always: true },
};

export const BUILTIN_NAMES = Object.keys(MODULES);

/** The URL of a built-in module. `always` asks for those that replace an installed package. */
export function builtinUrl(specifier: string, which: "always" | "fallback"): string | undefined {
  const module = Object.hasOwn(MODULES, specifier) ? MODULES[specifier] : undefined;
  if (module === undefined) return undefined;
  return (which === "always") === (module.always === true) ? SCHEME + specifier : undefined;
}

/** The source of a built-in module. */
export function builtinSource(url: string): string {
  const name = url.slice(SCHEME.length);
  const module = MODULES[name];
  if (module === undefined) throw new Error(`there is no built-in module ${name}`);
  const lines = module.exports
    .filter((key) => key !== "default")
    .map((key, index) => `const e${index} = m[${JSON.stringify(key)}]; export { e${index} as ${key} };`);
  return [
    `const m = globalThis[Symbol.for("codewright.plugin-host.modules")](${JSON.stringify(name)});`,
    ...lines,
    `export default m.default ?? m;`,
  ].join("\n");
}
