/** Runs the tools of plugins and tool files. */
import { runAs } from "./attribution.js";
import type { Connection } from "./connection.js";
import { withDeadline } from "./deadline.js";
import { DeadlineError } from "./errors.js";
import { describeProblems, toJson } from "./json.js";
import { log, logError } from "./log.js";
import { isRecord, pluginAt, type Plugin, type ToolDefinition } from "./plugins.js";
import { ErrorCode, ProtocolError, type ToolExecuteParams } from "./protocol.js";

export interface ToolSettings {
  connection: Connection;
  deadline: number;
  directory: string;
  worktree: string;
}

export class ToolRunner {
  readonly #running = new Map<string, AbortController>();

  constructor(private readonly settings: ToolSettings) {}

  abort(call: string): void {
    this.#running.get(call)?.abort(new DOMException("the tool call was aborted", "AbortError"));
  }

  async execute(params: ToolExecuteParams): Promise<unknown> {
    const plugin = pluginAt(params.index);
    const definition = plugin?.tools.get(params.tool);
    if (plugin === undefined || definition === undefined) {
      throw new ProtocolError(ErrorCode.invalidParams, `there is no tool ${params.tool} in plugin ${params.index}`);
    }
    const abort = new AbortController();
    this.#running.set(params.call, abort);
    try {
      return await runAs(plugin, () => this.#run(plugin, definition, params, abort));
    } finally {
      this.#running.delete(params.call);
    }
  }

  async #run(
    plugin: Plugin,
    definition: ToolDefinition,
    params: ToolExecuteParams,
    abort: AbortController,
  ): Promise<unknown> {
    // Plugins receive what the model wrote, as in OpenCode: some accept more than their schema describes. The schema is
    // only for the model.
    const args = params.args ?? {};
    const context = this.#context(params, abort.signal);
    const late = (error: unknown) => logError(`${params.tool} failed after its deadline`, error, plugin.index);
    const run = () => definition.execute(args, context);
    try {
      const what = `the tool ${params.tool} of ${plugin.name}`;
      return toolResult(plugin, params.tool, await withDeadline(what, this.settings.deadline, run, late));
    } catch (error) {
      if (error instanceof DeadlineError) abort.abort(error);
      throw error;
    }
  }

  #context(params: ToolExecuteParams, signal: AbortSignal): unknown {
    const { connection, directory, worktree } = this.settings;
    const { call } = params;
    return {
      messages: [],
      directory,
      worktree,
      ...params.context,
      extra: params.context.extra ?? {},
      abort: signal,
      metadata(input: unknown) {
        const { value } = toJson<Record<string, unknown>>(input);
        if (isRecord(value)) connection.notify("tool.metadata", { ...value, call });
      },
      async ask(input: unknown) {
        const { value } = toJson<Record<string, unknown>>(input);
        if (!isRecord(value) || typeof value["permission"] !== "string") throw new Error("ask needs a permission");
        const { permission, patterns = [], always = [], metadata = {} } = value;
        await connection.request("tool.ask", { call, permission, patterns, always, metadata });
      },
    };
  }
}

/** A tool returns a text, or an object with a text. */
function toolResult(plugin: Plugin, tool: string, result: unknown): unknown {
  if (typeof result === "string") return { output: result };
  const { value, problems } = toJson<Record<string, unknown>>(result);
  if (problems.length > 0) log("warn", `result of ${tool}: ${describeProblems(problems)}`, plugin.index);
  if (!isRecord(value)) return { output: value === undefined || value === null ? "" : JSON.stringify(value) };
  if (!("output" in value)) return { output: JSON.stringify(value) };
  const { title, output, metadata, attachments } = value;
  return {
    ...(typeof title === "string" ? { title } : {}),
    output: typeof output === "string" ? output : output === undefined ? "" : JSON.stringify(output),
    ...(isRecord(metadata) ? { metadata } : {}),
    ...(Array.isArray(attachments) ? { attachments } : {}),
  };
}
