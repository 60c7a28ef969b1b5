/** Files as bun finds them: without extension, with a TypeScript extension, or the index of a directory. */
import { readFileSync, statSync } from "node:fs";
import { dirname, extname, join } from "node:path";

const EXTENSIONS = [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json"];

/** TypeScript sources import the name of the file that the compiler would write. */
const WRITTEN_AS: Record<string, string[]> = {
  ".js": [".ts", ".tsx"],
  ".jsx": [".tsx"],
  ".mjs": [".mts"],
  ".cjs": [".cts"],
};

export function probeFile(path: string): string | undefined {
  if (isFile(path)) return path;
  for (const extension of EXTENSIONS) if (isFile(path + extension)) return path + extension;
  const written = extname(path);
  for (const extension of WRITTEN_AS[written] ?? []) {
    const source = path.slice(0, -written.length) + extension;
    if (isFile(source)) return source;
  }
  for (const extension of EXTENSIONS) {
    const index = join(path, `index${extension}`);
    if (isFile(index)) return index;
  }
  return undefined;
}

/** A file below a package of `node_modules`, for example `pkg/lib/util` without an extension. */
export function probePackage(specifier: string, fromDirectory: string): string | undefined {
  const parts = specifier.split("/");
  const nameLength = specifier.startsWith("@") ? 2 : 1;
  const name = parts.slice(0, nameLength).join("/");
  const rest = parts.slice(nameLength).join("/");
  if (name === "" || parts.includes("..")) return undefined;
  for (let directory = fromDirectory; ; directory = dirname(directory)) {
    const home = join(directory, "node_modules", name);
    if (isDirectory(home)) {
      if (rest !== "") return probeFile(join(home, rest));
      return packageEntry(home)?.file;
    }
    if (dirname(directory) === directory) return undefined;
  }
}

export interface PackageManifest {
  name?: unknown;
  version?: unknown;
  type?: unknown;
  main?: unknown;
  module?: unknown;
  exports?: unknown;
}

export function readManifest(directory: string): PackageManifest | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
    return typeof manifest === "object" && manifest !== null ? manifest : undefined;
  } catch {
    return undefined;
  }
}

export type PackageEntry = { file: string } | undefined;

/** The module of a package: `exports["./server"]`, `exports["."]`, `main`, `module`, the index. */
export function packageEntry(directory: string): PackageEntry {
  const manifest = readManifest(directory) ?? {};
  const candidates = [
    exportTarget(manifest.exports, "./server"),
    exportTarget(manifest.exports, "."),
    manifest.main,
    manifest.module,
    "index",
  ];
  for (const candidate of candidates) {
    if (typeof candidate !== "string") continue;
    const file = probeFile(join(directory, candidate));
    if (file !== undefined) return { file };
  }
  return undefined;
}

/** True if a package offers only an interface for the TUI. */
export function isTuiPackage(directory: string): boolean {
  return exportTarget(readManifest(directory)?.exports, "./tui") !== undefined && packageEntry(directory) === undefined;
}

const CONDITIONS = new Set(["node", "import", "module", "default", ...("Bun" in globalThis ? ["bun"] : [])]);

function exportTarget(exports: unknown, name: string): string | undefined {
  if (exports === undefined || exports === null) return undefined;
  const isMap = typeof exports === "object" && !Array.isArray(exports);
  const hasPaths = isMap && Object.keys(exports).some((key) => key.startsWith("."));
  if (!hasPaths) return name === "." ? conditionTarget(exports, 0) : undefined;
  return conditionTarget((exports as Record<string, unknown>)[name], 0);
}

function conditionTarget(target: unknown, depth: number): string | undefined {
  if (typeof target === "string") return target;
  if (typeof target !== "object" || target === null || depth > 20) return undefined;
  if (Array.isArray(target)) {
    for (const item of target) {
      const found = conditionTarget(item, depth + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  for (const [condition, inner] of Object.entries(target)) {
    if (!CONDITIONS.has(condition)) continue;
    const found = conditionTarget(inner, depth + 1);
    if (found !== undefined) return found;
  }
  const required = (target as Record<string, unknown>)["require"];
  return required === undefined ? undefined : conditionTarget(required, depth + 1);
}

export function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

export function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
