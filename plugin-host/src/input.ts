/** The first argument of plugin functions. */
import { createClient } from "./client/sdk.js";
import { ServerFetch } from "./client/server-fetch.js";
import type { Connection } from "./connection.js";
import { MAX_WORKSPACE_ADAPTERS, MAX_WORKSPACE_CHARS } from "./limits.js";
import { log } from "./log.js";
import { isRecord, type Plugin } from "./plugins.js";
import type { InitializeParams } from "./protocol.js";

const DEFAULT_URL = "http://localhost:4096";

/** Makes the input of one plugin after the other. */
export function createInput(params: InitializeParams, connection: Connection): (plugin: Plugin) => unknown {
  const server = new ServerFetch(connection);
  const serverUrl = parseUrl(params.serverUrl);
  routeServerRequests(serverUrl, server);
  const shell = (globalThis as unknown as { Bun: { $: unknown } }).Bun.$;
  const client = createClient({
    baseUrl: serverUrl.origin,
    directory: params.directory,
    fetch: server.fetch as (request: Request) => Promise<Response>,
  });
  return (plugin) => ({
    client,
    project: structuredClone(params.project),
    directory: params.directory,
    worktree: params.worktree,
    serverUrl: new URL(serverUrl),
    $: shell,
    experimental_workspace: {
      register(type: unknown, adapter: unknown) {
        if (plugin.workspaces.size >= MAX_WORKSPACE_ADAPTERS) return;
        const { name, description } = isRecord(adapter) ? adapter : {};
        const text = (value: unknown) => (typeof value === "string" ? value.slice(0, MAX_WORKSPACE_CHARS) : "");
        plugin.workspaces.set(String(type).slice(0, MAX_WORKSPACE_CHARS), {
          name: text(name),
          description: text(description),
        });
        log(
          "info",
          `the workspace adapter ${String(type)} is listed, but this program creates no workspaces`,
          plugin.index,
        );
      },
    },
  });
}

/**
 * Plugins make clients of their own from `serverUrl`. Requests to that address go through the socket, as the server
 * may not listen on a port.
 */
function routeServerRequests(serverUrl: URL, server: ServerFetch): void {
  const network = globalThis.fetch;
  const routed = (input: Request | URL | string, init?: RequestInit): Promise<Response> => {
    const address = input instanceof Request ? input.url : String(input);
    const isServer = address.startsWith(`${serverUrl.origin}/`) || address === serverUrl.origin;
    return isServer ? server.fetch(input, init) : network(input, init);
  };
  globalThis.fetch = Object.assign(routed, network) as typeof fetch;
}

function parseUrl(text: string): URL {
  try {
    return new URL(text);
  } catch {
    return new URL(DEFAULT_URL);
  }
}
