/** Tools that the model can call. */
import { z } from "zod";

/** What a tool knows about its call. */
export type ToolContext = {
  sessionID: string;
  messageID: string;
  agent: string;
  /** The directory of the session. Resolve relative paths against it, not against `process.cwd()`. */
  directory: string;
  /** The root of the repository. */
  worktree: string;
  /** Fires when the call is stopped. */
  abort: AbortSignal;
  /** Changes the title and the metadata of the call while it runs. */
  metadata(input: { title?: string; metadata?: { [key: string]: any } }): void;
  /** Asks the user for permission. Throws if the user refuses. */
  ask(input: { permission: string; patterns: string[]; always: string[]; metadata: { [key: string]: any } }): Promise<void>;
};

export type ToolAttachment = { type: "file"; mime: string; url: string; filename?: string };

/** What the model reads, with an optional title for the user and files. */
export type ToolResult =
  | string
  | { title?: string; output: string; metadata?: { [key: string]: any }; attachments?: ToolAttachment[] };

/** JSON Schema of the arguments of a tool. */
export type JsonSchema = {
  type: "object";
  properties?: { [name: string]: { [key: string]: unknown } };
  required?: readonly string[];
  [key: string]: unknown;
};

/** A tool whose arguments are described with zod. */
export type ZodTool<Args extends z.ZodRawShape> = {
  description: string;
  args: Args;
  execute(args: z.infer<z.ZodObject<Args>>, context: ToolContext): Promise<ToolResult>;
};

/** A tool whose arguments are described with JSON Schema. */
export type JsonTool<Args = any> = {
  description: string;
  args: JsonSchema;
  execute(args: Args, context: ToolContext): Promise<ToolResult>;
};

export type ToolDefinition = ZodTool<z.ZodRawShape> | JsonTool;

/**
 * Returns a tool unchanged; it exists for its types.
 *
 *     tool({ description: "Adds", args: { a: tool.schema.number() }, execute: async ({ a }) => String(a + 1) })
 *     tool<{ a: number }>({ description: "Adds", args: { type: "object", properties: { a: { type: "number" } } }, … })
 *
 * The schema tells the model what to pass. Arguments arrive as the model wrote them, so check what matters.
 */
export function tool<Args>(definition: JsonTool<Args>): JsonTool<Args>;
export function tool<Args extends z.ZodRawShape>(definition: ZodTool<Args>): ZodTool<Args>;
export function tool(definition: unknown): unknown {
  return definition;
}
tool.schema = z;
