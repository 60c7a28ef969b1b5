// Appends every call to the file `calls`, one JSON line each, and changes every output in a visible way.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { tool, type Plugin } from "@opencode-ai/plugin";

const CHANGES: Record<string, (output: any, input: any) => void> = {
  "chat.message": (output) => output.parts.push({ type: "text", text: "added by chat.message" }),
  "chat.params": (output) => {
    output.temperature = 0.25;
  },
  "chat.headers": (output) => {
    output.headers["x-plugin"] = "every-hook";
  },
  "tool.definition": (output, input) => {
    if (input.toolID === "bash") output.description += " (described by the plugin)";
  },
  "tool.execute.before": (output, input) => {
    if (input.tool === "bash") output.args.command = output.args.command.replace("BEFORE", "CHANGED");
  },
  "tool.execute.after": (output) => {
    output.output += "\nadded by tool.execute.after";
  },
  "shell.env": (output) => {
    output.env.FROM_PLUGIN = "from-plugin";
  },
  "experimental.chat.messages.transform": (output) => {
    for (const message of output.messages)
      for (const part of message.parts) if (part.type === "text") part.text = part.text.replace("ORIGINAL", "TRANSFORMED");
  },
  "experimental.chat.system.transform": (output) => output.system.push("added by system.transform"),
  "experimental.text.complete": (output) => {
    output.text = output.text.replace("Done", "Finished");
  },
  "experimental.session.compacting": (output) => output.context.push("added by compacting"),
  "command.execute.before": (output) => output.parts.push({ type: "text", text: "added by command.execute.before" }),
};

const NAMES = [
  ...Object.keys(CHANGES),
  "permission.ask",
  "experimental.provider.small_model",
  "experimental.compaction.autocontinue",
];

export const EveryHook: Plugin = async (input, options) => {
  const write = (name: string, given: unknown, output: unknown) =>
    appendFileSync(join(input.directory, "calls"), `${JSON.stringify({ name, input: given, output })}\n`);
  write("INIT", { keys: Object.keys(input), directory: input.directory, worktree: input.worktree, url: String(input.serverUrl), project: input.project, options: options ?? null }, null);
  const hooks: Record<string, unknown> = {};
  for (const name of NAMES) {
    hooks[name] = async (given: unknown, output: unknown) => {
      write(name, given, output);
      CHANGES[name]?.(output, given);
    };
  }
  return {
    ...hooks,
    config: async (config: unknown) => write("config", config, null),
    event: async ({ event }: any) => write("event", event, null),
    dispose: async () => write("dispose", null, null),
    tool: {
      describe: tool({
        description: "Describes its context",
        args: { text: tool.schema.string().describe("Any text") },
        async execute(args, context) {
          write("tool", args, Object.keys(context).sort());
          return `${args.text} ${context.agent} ${context.directory === input.directory}`;
        },
      }),
    },
  };
};
