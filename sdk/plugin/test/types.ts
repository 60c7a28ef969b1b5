// The types of the package beside those of `@opencode-ai/plugin` 1.18.33. This file is compiled and not run.
import type * as Theirs from "@opencode-ai/plugin";
import { tool as theirTool } from "@opencode-ai/plugin";
import type * as Ours from "../dist/index.js";
import { tool } from "../dist/index.js";

type To<A, B> = [A] extends [B] ? true : false;
type Same<A, B> = [To<A, B>, To<B, A>] extends [true, true] ? true : false;
type WithoutTools<T> = Omit<T, "tool">;

// A plugin of OpenCode is a plugin of Codewright.
export const plugin: To<Theirs.Plugin, Ours.Plugin> = true;
export const module: To<Theirs.PluginModule, Ours.PluginModule> = true;
export const hooks: To<Theirs.Hooks, Ours.Hooks> = true;
// A plugin of Codewright is a plugin of OpenCode, but for tools with JSON Schema, whose types OpenCode lacks.
export const back: Same<WithoutTools<Theirs.Hooks>, WithoutTools<Ours.Hooks>> = true;
export const input: Same<Theirs.PluginInput, Ours.PluginInput> = true;
export const config: Same<Theirs.Config, Ours.Config> = true;
export const context: Same<Theirs.ToolContext, Ours.ToolContext> = true;
export const result: Same<Theirs.ToolResult, Ours.ToolResult> = true;
export const auth: Same<Theirs.AuthHook, Ours.AuthHook> = true;
export const sign: Same<Theirs.AuthOAuthResult, Ours.AuthOAuthResult> = true;
export const provider: Same<Theirs.ProviderHook, Ours.ProviderHook> = true;
export const adapter: Same<Theirs.WorkspaceAdapter, Ours.WorkspaceAdapter> = true;
export const definition: To<Theirs.ToolDefinition, Ours.ToolDefinition> = true;
// Every name of the package exists.
export type Names = keyof typeof Theirs extends keyof typeof Ours ? true : false;
export const names: Names = true;

// A published plugin, as its authors write it.
const published: Theirs.Plugin = async ({ client, $, directory }) => ({
  event: async ({ event }) => {
    if (event.type === "session.idle") await $`notify-send ${event.properties.sessionID}`.quiet();
  },
  tool: {
    one: theirTool({
      description: "One",
      args: { a: theirTool.schema.number() },
      execute: async ({ a }, { sessionID }) => `${a + 1} ${(await client.session.get({ path: { id: sessionID } })).data?.title} ${directory}`,
    }),
  },
});
export const used: Ours.Plugin = published;

// Arguments have the types of their schema.
tool({
  description: "zod",
  args: { a: tool.schema.number(), b: tool.schema.string().optional() },
  execute: async ({ a, b }) => {
    const number: number = a;
    // @ts-expect-error: `b` may be missing.
    const text: string = b;
    return `${number} ${text}`;
  },
});
tool<{ a: number }>({
  description: "JSON Schema",
  args: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
  execute: async ({ a }) => a.toFixed(1),
});
// @ts-expect-error: a tool returns a text or a result.
tool({ description: "wrong", args: {}, execute: async () => 1 });
