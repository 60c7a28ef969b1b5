/** The values of the built-in modules. */
import { createClient, createClientV2 } from "./client/sdk.js";
import type { ClientConfig } from "./client/http-client.js";

type Exports = Record<string, unknown>;

/** Returns its argument. It exists for the types, and for `tool.schema`. */
function tool(definition: unknown): unknown {
  return definition;
}

// zod is loaded when the first plugin uses it.
Object.defineProperty(tool, "schema", { get: () => loadZod(), enumerable: true });

export function builtinModule(name: string): Exports {
  switch (name) {
    case "@opencode-ai/plugin":
    case "@opencode-ai/plugin/tool":
    case "@codewright/plugin":
      return { tool };
    case "@opencode-ai/plugin/v2/effect":
    case "@opencode-ai/plugin/v2/effect/plugin":
    case "@opencode-ai/plugin/v2/promise":
      return { define: (plugin: unknown) => plugin };
    case "@opencode-ai/sdk":
    case "@opencode-ai/sdk/client":
      return sdk(createClient);
    case "@opencode-ai/sdk/v2":
    case "@opencode-ai/sdk/v2/client":
      return sdk(createClientV2);
    case "zod":
    case "zod/v4":
      return loadZod();
    case "bun":
      return (globalThis as unknown as { Bun: Exports }).Bun;
    case "bun:sqlite":
      return require("./bun/sqlite.js") as Exports;
    default:
      throw new Error(`there is no built-in module ${name}`);
  }
}

function loadZod(): Exports {
  return (require("./schema/zod.js") as typeof import("./schema/zod.js")).zod as unknown as Exports;
}

function sdk(create: (config: ClientConfig) => unknown): Exports {
  const unsupported = () => {
    throw new Error(
      "a plugin runs inside a server; use `client` of the plugin's input instead of starting another one",
    );
  };
  return {
    createOpencodeClient: (config: ClientConfig = {}) => create({ baseUrl: "http://localhost:4096", ...config }),
    createOpencode: unsupported,
    createOpencodeServer: unsupported,
  };
}
