/** The plugins of the process and what they offer. */
import { registerPlugin, type PluginName } from "./attribution.js";
import type { FailureReport } from "./protocol.js";

export type HookFunction = (input: unknown, output: unknown) => unknown;

/** What the function of a plugin returns. */
export interface Hooks {
  tool?: Record<string, ToolDefinition>;
  auth?: AuthHook;
  provider?: ProviderHook;
  [name: string]: unknown;
}

export interface ToolDefinition {
  description?: unknown;
  args?: unknown;
  execute(args: unknown, context: unknown): unknown;
}

export interface AuthPrompt {
  type: string;
  key: string;
  message: string;
  placeholder?: string;
  options?: unknown;
  when?: { key: string; op: "eq" | "neq"; value: string };
  validate?: (value: string) => string | undefined;
  condition?: (inputs: Record<string, string>) => boolean;
}

export interface AuthMethod {
  type: "oauth" | "api";
  label: string;
  prompts?: AuthPrompt[];
  authorize?: (inputs?: Record<string, string>) => unknown;
}

export interface AuthHook {
  provider: string;
  loader?: (getAuth: () => Promise<unknown>, provider: unknown) => unknown;
  methods?: AuthMethod[];
}

export interface ProviderHook {
  id: string;
  models?: (provider: unknown, context: { auth?: unknown }) => unknown;
}

/** One plugin, or one tool file. */
export interface Plugin extends PluginName {
  id?: string;
  /** One entry for each plugin function of the module. */
  hooks: Hooks[];
  tools: Map<string, ToolDefinition>;
  /** The workspace adapters that it has registered, by type. */
  workspaces: Map<string, { name: string; description: string }>;
  skipped?: string;
  error?: FailureReport;
}

const plugins = new Map<number, Plugin>();

export function addPlugin(plugin: Plugin): void {
  plugins.set(plugin.index, plugin);
  registerPlugin(plugin);
}

export function pluginAt(index: number): Plugin | undefined {
  return plugins.get(index);
}

/** All plugins in the order of the configuration. */
export function allPlugins(): Iterable<Plugin> {
  return plugins.values();
}

/** The functions of a plugin for one hook. */
export function hookFunctions(plugin: Plugin, name: string): HookFunction[] {
  const found: HookFunction[] = [];
  for (const hooks of plugin.hooks) {
    const hook = hooks[name];
    // The hook may be a method that uses `this`.
    if (typeof hook === "function") found.push((input, output) => hook.call(hooks, input, output));
  }
  return found;
}

export function authHook(plugin: Plugin): AuthHook | undefined {
  return plugin.hooks.find((hooks) => isRecord(hooks.auth) && typeof hooks.auth["provider"] === "string")?.auth;
}

export function providerHook(plugin: Plugin): ProviderHook | undefined {
  return plugin.hooks.find((hooks) => isRecord(hooks.provider) && typeof hooks.provider["id"] === "string")?.provider;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
