/** Loads the modules of plugins and tool files. */
import { readFileSync } from "node:fs";
import { basename, dirname, extname } from "node:path";
import { pathToFileURL } from "node:url";
import { runAs } from "./attribution.js";
import type { Connection } from "./connection.js";
import { withDeadline } from "./deadline.js";
import { describeFailure } from "./errors.js";
import { hooksAreCheap, hooksInstalled, installHooks, prepareForBun } from "./loader/install.js";
import { isModule, packageType } from "./loader/hooks.js";
import { isDirectory, isTuiPackage, packageEntry, probeFile, readManifest } from "./loader/probe.js";
import { log, logError } from "./log.js";
import { describePlugin } from "./describe.js";
import { addPlugin, isRecord, type Hooks, type Plugin, type ToolDefinition } from "./plugins.js";
import type { Loaded, PluginEntry, ToolFileEntry } from "./protocol.js";
import type { V2Module } from "./v2/setup.js";

export interface LoadSettings {
  deadline: number;
  /** The first argument of plugin functions. */
  input(plugin: Plugin): unknown;
  connection: Connection;
}

type PluginFunction = (input: unknown, options?: unknown) => unknown;

export async function loadPlugin(entry: PluginEntry, settings: LoadSettings): Promise<Loaded> {
  const isPackage = isDirectory(entry.entry);
  const plugin: Plugin = {
    index: entry.index,
    name: pluginName(entry, isPackage),
    home: entry.entry,
    hooks: [],
    tools: new Map(),
    workspaces: new Map(),
  };
  return load(plugin, settings.deadline, async () => {
    const file = isPackage ? packageEntry(entry.entry)?.file : probeFile(entry.entry);
    if (file === undefined) {
      if (isPackage && isTuiPackage(entry.entry)) plugin.skipped = "tui";
      else if (isPackage) throw new Error(`the package ${entry.entry} has no module (exports, main or index)`);
      else throw new Error(`the file ${entry.entry} does not exist`);
      return;
    }
    const module = await importFile(file);
    await start(plugin, module, entry, settings);
    if (plugin.skipped === undefined && plugin.hooks.length === 0) {
      throw Object.assign(new Error("the module exports no plugin"), { stack: `Error\n    at ${file}:1:1` });
    }
    collectTools(plugin);
  });
}

export async function loadToolFile(entry: ToolFileEntry, settings: LoadSettings): Promise<Loaded> {
  const plugin: Plugin = {
    index: entry.index,
    name: entry.name,
    home: entry.file,
    hooks: [],
    tools: new Map(),
    workspaces: new Map(),
  };
  return load(plugin, settings.deadline, async () => {
    const module = await importFile(entry.file);
    for (const [key, value] of Object.entries(module)) {
      if (!isTool(value) || key === "module.exports") continue;
      plugin.tools.set(key === "default" ? entry.name : `${entry.name}_${key}`, value);
    }
    if (plugin.tools.size === 0) {
      throw Object.assign(new Error("the module exports no tool"), { stack: `Error\n    at ${entry.file}:1:1` });
    }
  });
}

/** Runs the steps of one plugin under its deadline and describes the result. */
async function load(plugin: Plugin, deadline: number, steps: () => Promise<void>): Promise<Loaded> {
  addPlugin(plugin);
  try {
    await runAs(plugin, () =>
      withDeadline(`loading ${plugin.name}`, deadline, steps, (error) =>
        logError("loading failed after its deadline", error, plugin.index),
      ),
    );
    return describePlugin(plugin);
  } catch (error) {
    plugin.hooks = [];
    plugin.tools.clear();
    plugin.workspaces.clear();
    plugin.error = describeFailure(error);
    plugin.error.file ??= plugin.home;
    return { index: plugin.index, name: plugin.name, hooks: [], tools: [], error: plugin.error };
  }
}

function pluginName(entry: PluginEntry, isPackage: boolean): string {
  if (isPackage) {
    const { name } = readManifest(entry.entry) ?? {};
    if (typeof name === "string" && name !== "") return name;
  }
  const file = basename(entry.entry, extname(entry.entry));
  return file === "index" ? basename(dirname(entry.entry)) : file;
}

let reloads = 0;

/** Imports a file. Without module hooks, the first try may show that the file needs them. */
async function importFile(file: string): Promise<Record<string, unknown>> {
  const needed = hooksAreCheap || needsHooks(file);
  const single = needed && !hooksAreCheap && !hooksInstalled() ? singleFile(file) : undefined;
  if (single !== undefined) {
    try {
      return (await import(single)) as Record<string, unknown>;
    } catch (error) {
      // A missing export, for example. The message of the file itself is readable.
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  if (needed) installHooks();
  prepareForBun(file);
  const url = pathToFileURL(file).href;
  try {
    return (await import(url)) as Record<string, unknown>;
  } catch (error) {
    if (hooksInstalled() || !isLoaderError(error)) throw withPlace(error, file);
    installHooks();
    // Node remembers the failure of a URL.
    return (await import(`${url}?codewright=${++reloads}`)) as Record<string, unknown>;
  }
}

function singleFile(file: string): string | undefined {
  const { singleFileUrl } = require("./loader/single.js") as typeof import("./loader/single.js");
  return singleFileUrl(file);
}

function withPlace(error: unknown, entry: string): unknown {
  if (!(error instanceof SyntaxError) || describeFailure(error).line !== undefined) return error;
  const { locateSyntaxError } = require("./loader/syntax.js") as typeof import("./loader/syntax.js");
  return locateSyntaxError(error, entry);
}

/** True if the text of a file shows that Node cannot load it alone. */
function needsHooks(file: string): boolean {
  if (![".js", ".mjs", ".cjs"].includes(extname(file))) return true;
  try {
    if (extname(file) === ".js" && packageType(file) === "commonjs" && isModule(readFileSync(file, "utf8")))
      return true;
    return /["'](?:bun(?::[\w/-]+)?|@opencode-ai\/(?:plugin|sdk)[\w/]*|zod(?:\/v4)?)["']/.test(
      readFileSync(file, "utf8"),
    );
  } catch {
    return false;
  }
}

/** The codes of errors with which Node refuses what another runtime or bundling would load. */
const LOADER_ERRORS = new Set([
  "ERR_IMPORT_ATTRIBUTE_MISSING",
  "ERR_MODULE_NOT_FOUND",
  "ERR_PACKAGE_PATH_NOT_EXPORTED",
  "ERR_UNKNOWN_FILE_EXTENSION",
  "ERR_UNSUPPORTED_DIR_IMPORT",
  "ERR_UNSUPPORTED_ESM_URL_SCHEME",
  "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING",
]);

function isLoaderError(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" && LOADER_ERRORS.has(code);
}

/** Finds the plugins of a module and runs them. */
async function start(
  plugin: Plugin,
  module: Record<string, unknown>,
  entry: PluginEntry,
  settings: LoadSettings,
): Promise<void> {
  const main = unwrapDefault(module["default"]);
  const options = entry.options;
  if (isRecord(main)) {
    if (typeof main["id"] === "string") plugin.id = main["id"];
    if (typeof main["server"] === "function")
      return run(plugin, main["server"].bind(main) as PluginFunction, options, settings);
    if (typeof main["setup"] === "function") {
      // Few plugins have this form.
      const { setupV2Plugin } = require("./v2/setup.js") as typeof import("./v2/setup.js");
      return setupV2Plugin(plugin, main as unknown as V2Module, options, settings.connection);
    }
    if (typeof main["id"] === "string" && typeof main["effect"] === "function") {
      const { setupV2Plugin } = require("./v2/setup.js") as typeof import("./v2/setup.js");
      const { fromEffect } = require("./v2/effect.js") as typeof import("./v2/effect.js");
      const { module, close } = await fromEffect(main as never, entry.entry);
      try {
        await setupV2Plugin(plugin, module, options, settings.connection);
      } catch (error) {
        await close();
        throw error;
      }
      plugin.hooks.push({ dispose: close });
      return;
    }
    if (typeof main["tui"] === "function") {
      plugin.skipped = "tui";
      return;
    }
  }
  const functions = pluginFunctions(module);
  if (functions.length === 0 && isRecord(main)) functions.push(...pluginFunctions(main));
  for (const candidate of functions) await run(plugin, candidate, options, settings);
}

/** The functions that a module exports, each once, in the order of the exports. */
function pluginFunctions(exports: Record<string, unknown>): PluginFunction[] {
  const found = new Set<PluginFunction>();
  for (const value of Object.values(exports)) {
    const candidate = unwrapDefault(value);
    if (typeof candidate !== "function") continue;
    // A class cannot be a plugin. Packages export error classes next to their plugin.
    if (/^class\b/.test(Function.prototype.toString.call(candidate))) continue;
    found.add(candidate as PluginFunction);
  }
  return [...found];
}

/** CommonJS modules that a compiler wrote have their default export one level deeper. */
function unwrapDefault(value: unknown): unknown {
  return isRecord(value) && value["__esModule"] === true && "default" in value ? value["default"] : value;
}

async function run(plugin: Plugin, start: PluginFunction, options: unknown, settings: LoadSettings): Promise<void> {
  const hooks = await start(settings.input(plugin), options);
  if (isRecord(hooks)) plugin.hooks.push(hooks as Hooks);
  else plugin.hooks.push({});
}

function collectTools(plugin: Plugin): void {
  for (const hooks of plugin.hooks) {
    if (!isRecord(hooks.tool)) continue;
    for (const [name, definition] of Object.entries(hooks.tool)) {
      if (isTool(definition)) plugin.tools.set(name, definition);
      else log("warn", `the tool ${name} has no execute function and was left out`, plugin.index);
    }
  }
}

function isTool(value: unknown): value is ToolDefinition {
  return isRecord(value) && typeof value["execute"] === "function";
}
