/** Plugins of the v2 form `{id, setup}`. */
import type { Plugin } from "./plugins.js";

/**
 * The v2 form changes agents, commands and providers of the server while it runs, through drafts that the server
 * asks for. The server has no such drafts, so these plugins are reported and not run.
 */
export async function setupV2Plugin(plugin: Plugin, _module: { setup: unknown }, _options: unknown): Promise<void> {
  plugin.skipped = "the v2 plugin form ({id, setup}) is not supported; use the form {id, server}";
}
