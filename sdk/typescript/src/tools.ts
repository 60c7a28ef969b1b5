/**
 * Tools of this program for the agent.
 *
 * `serveTools` offers functions to the model of a session: it listens on a port of this machine as an MCP server and adds
 * itself to the directory. The rules of the user about permissions apply to the tools.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { CodewrightClient } from "./gen/sdk.gen.js";
import { toError } from "./http.js";

export interface ToolDefinition<Args = any> {
  description: string;
  /** JSON Schema of the arguments, an object. With zod: `z.toJSONSchema(z.object({ … }))`. */
  parameters: { [key: string]: unknown };
  /** Returns what the model reads. An error becomes the failure of the call. */
  execute(args: Args, context: { signal: AbortSignal }): Promise<unknown> | unknown;
}

export interface ServedTools {
  url: string;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ServeOptions {
  /** The name of the server, with which the names of its tools begin. */
  name: string;
  tools: { [name: string]: ToolDefinition };
  directory?: string;
  /** Milliseconds for one call. Default: 120000. */
  timeout?: number;
}

type Message = { id?: number | string; method?: string; params?: Record<string, any> };

/** Bytes of one request. */
const MAX_BODY = 8 * 1024 * 1024;
const VERSIONS = ["2025-06-18", "2025-03-26", "2024-11-05"];

/** Checks a definition where it is written. */
export function defineTool<Args>(tool: ToolDefinition<Args>): ToolDefinition<Args> {
  return tool;
}

/** Offers tools to the sessions of a directory until `close` is called. */
export async function serveTools(client: CodewrightClient, options: ServeOptions): Promise<ServedTools> {
  const token = randomBytes(24).toString("base64url");
  const server = createServer((request, response) => {
    void handle(request, response, options, token).catch(() => response.destroy());
  });
  server.requestTimeout = 30_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  server.unref();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const { name, directory } = options;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const config = { type: "remote" as const, url, oauth: false as const, headers: { Authorization: `Bearer ${token}` } };
  const added = await client.mcp.add({ directory, name, config });
  const status = (added.data as { [name: string]: { status: string; error?: string } } | undefined)?.[name];
  if (status?.status !== "connected") {
    await stop();
    throw toError(added.error ?? `the server of the tools is not connected: ${status?.error ?? status?.status}`, undefined, added.response);
  }
  const close = async () => {
    await client.mcp.disconnect({ directory, name }).catch(() => {});
    await stop();
  };
  return { url, close, [Symbol.asyncDispose]: close };
}

async function handle(request: IncomingMessage, response: ServerResponse, options: ServeOptions, token: string): Promise<void> {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  const end = (status: number, body?: unknown) => {
    response.writeHead(status, body === undefined ? {} : { "content-type": "application/json" });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  };
  if (!timingSafeEqual(digest(request.headers.authorization ?? ""), digest(`Bearer ${token}`))) return end(401);
  if (request.method !== "POST") return end(405);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if ((size += chunk.length) > MAX_BODY) return end(413);
    chunks.push(chunk);
  }
  let message: Message;
  try {
    message = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    return end(400);
  }
  if (message.id === undefined) return end(202);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(options.timeout ?? 120_000)]);
  const reply = await answer(message, options, signal);
  end(200, { jsonrpc: "2.0", id: message.id, ...reply });
}

async function answer({ method, params }: Message, { name, tools }: ServeOptions, signal: AbortSignal): Promise<object> {
  switch (method) {
    case "initialize": {
      const protocolVersion = VERSIONS.find((version) => version === params?.["protocolVersion"]) ?? VERSIONS[0];
      return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name, version: "1" } } };
    }
    case "ping":
      return { result: {} };
    case "tools/list":
      return {
        result: {
          tools: Object.entries(tools).map(([tool, { description, parameters }]) => ({
            name: tool,
            description,
            inputSchema: { type: "object", ...parameters },
          })),
        },
      };
    case "tools/call": {
      const tool = Object.hasOwn(tools, params?.["name"]) ? tools[params?.["name"] as string] : undefined;
      if (tool === undefined) return { error: { code: -32602, message: `there is no tool \`${params?.["name"]}\`` } };
      try {
        const result = await race(tool.execute(params?.["arguments"] ?? {}, { signal }), signal);
        return { result: content(typeof result === "string" ? result : (JSON.stringify(result) ?? "")) };
      } catch (error) {
        return { result: { ...content(error instanceof Error ? error.message : String(error)), isError: true } };
      }
    }
    default:
      return { error: { code: -32601, message: `unknown method \`${method}\`` } };
  }
}

function content(text: string): object {
  return { content: [{ type: "text", text }] };
}

/** Ends a call whose tool does not heed the signal. */
function race<T>(work: T | Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    Promise.resolve(work).then(resolve, reject);
  });
}
