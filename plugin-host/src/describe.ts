/** Describes a loaded plugin for the server. */
import { toJson } from "./json.js";
import { log } from "./log.js";
import { authHook, providerHook, type AuthHook, type AuthPrompt, type Plugin, type ToolDefinition } from "./plugins.js";
import type { AuthDescription, Json, Loaded, PromptDescription, ToolDescription } from "./protocol.js";
import { toolParameters } from "./schema/parameters.js";

export function describePlugin(plugin: Plugin): Loaded {
  const loaded: Loaded = {
    index: plugin.index,
    name: plugin.name,
    hooks: hookNames(plugin),
    tools: [...plugin.tools].map(([name, definition]) => describeTool(plugin, name, definition)),
  };
  if (plugin.id !== undefined) loaded.id = plugin.id;
  if (plugin.workspaces.size > 0)
    loaded.workspaces = [...plugin.workspaces].map(([type, about]) => ({ type, ...about }));
  if (plugin.skipped !== undefined) loaded.skipped = plugin.skipped;
  const auth = authHook(plugin);
  if (auth !== undefined) loaded.auth = describeAuth(auth);
  const provider = providerHook(plugin);
  if (provider !== undefined) loaded.provider = { id: provider.id };
  return loaded;
}

const PLAIN_HOOKS = ["event", "config", "dispose"];

function hookNames(plugin: Plugin): string[] {
  const names = new Set<string>();
  for (const hooks of plugin.hooks) {
    for (const [name, value] of Object.entries(hooks)) {
      // The names with a dot are an open set. Other functions are no hooks.
      if (typeof value === "function" && (PLAIN_HOOKS.includes(name) || name.includes("."))) names.add(name);
    }
  }
  return [...names];
}

function describeTool(plugin: Plugin, name: string, definition: ToolDefinition): ToolDescription {
  const description = typeof definition.description === "string" ? definition.description : "";
  try {
    return { name, description, parameters: toolParameters(definition.args) };
  } catch (error) {
    log("warn", `the arguments of the tool ${name} have no JSON Schema: ${(error as Error).message}`, plugin.index);
    return { name, description, parameters: { type: "object", properties: {} } };
  }
}

function describeAuth(auth: AuthHook): AuthDescription {
  const methods = Array.isArray(auth.methods) ? auth.methods : [];
  return {
    provider: auth.provider,
    loader: typeof auth.loader === "function",
    methods: methods.map((method) => {
      const described: AuthDescription["methods"][number] = {
        type: String(method.type),
        label: String(method.label ?? ""),
      };
      if (typeof method.authorize === "function") described.authorizes = true;
      if (Array.isArray(method.prompts)) described.prompts = method.prompts.map(describePrompt);
      return described;
    }),
  };
}

function describePrompt(prompt: AuthPrompt): PromptDescription {
  const described: PromptDescription = {
    type: String(prompt.type),
    key: String(prompt.key),
    message: String(prompt.message ?? ""),
  };
  if (typeof prompt.placeholder === "string") described.placeholder = prompt.placeholder;
  const options = toJson<Json>(prompt.options).value;
  if (options !== undefined) described.options = options;
  const when = toJson<Json>(prompt.when).value;
  if (when !== undefined) described.when = when;
  if (typeof prompt.validate === "function") described.hasValidate = true;
  if (typeof prompt.condition === "function") described.hasCondition = true;
  return described;
}
