/** Which plugin runs: for the log and for errors that nothing caught. */
import { AsyncLocalStorage } from "node:async_hooks";
import { sep } from "node:path";

export interface PluginName {
  index: number;
  name: string;
  /** The directory of the package, or the file of a local plugin. */
  home: string;
}

const current = new AsyncLocalStorage<PluginName>();
const plugins: PluginName[] = [];

/** Makes a plugin known, so that stacks can be traced to it. */
export function registerPlugin(plugin: PluginName): void {
  plugins.push(plugin);
}

/** Runs code of a plugin. What it starts belongs to it as well. */
export function runAs<T>(plugin: PluginName, run: () => T): T {
  return current.run(plugin, run);
}

/** Runs code that belongs to no plugin, for example timers of the host. */
export function runAsHost<T>(run: () => T): T {
  return current.exit(run);
}

export function currentPlugin(): PluginName | undefined {
  return current.getStore();
}

/** The plugin whose file is the first one in the stack. */
export function pluginOfStack(stack: string | undefined): PluginName | undefined {
  if (stack === undefined) return undefined;
  for (const line of stack.split("\n")) {
    let best: PluginName | undefined;
    for (const plugin of plugins) {
      const inside =
        line.includes(plugin.home + sep) || line.includes(`${plugin.home}:`) || line.includes(`${plugin.home}?`);
      if (inside && (best === undefined || plugin.home.length > best.home.length)) best = plugin;
    }
    if (best !== undefined) return best;
  }
  return undefined;
}
