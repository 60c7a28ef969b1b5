/** Client, server, events and tools. Browsers use `@codewright/sdk/client`. */
import { type CodewrightClient, createCodewrightClient } from "./client.js";
import { type CodewrightServer, type ServerOptions, createCodewrightServer } from "./server.js";

export * from "./client.js";
export * from "./server.js";
export { type ServedTools, type ServeOptions, defineTool, serveTools, type ToolDefinition } from "./tools.js";

/** Starts a server and returns it with a client. */
export async function createCodewright(options: ServerOptions = {}): Promise<{ client: CodewrightClient; server: CodewrightServer }> {
  const server = await createCodewrightServer(options);
  const directory = options.directory ?? process.cwd();
  const client = createCodewrightClient({ baseUrl: server.url, password: server.password, directory });
  return { client, server };
}
