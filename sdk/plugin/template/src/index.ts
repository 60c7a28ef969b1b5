import { type Plugin, tool } from "@codewright/plugin";

/** Commands have the project in their environment, secrets are not read, and the model can count words. */
export const MyPlugin: Plugin = async ({ directory }) => ({
  "shell.env": async (_input, output) => {
    output.env.PROJECT = directory;
  },
  "tool.execute.before": async (input, output) => {
    if (input.tool === "read" && String(output.args.filePath).endsWith(".env")) throw new Error("Do not read .env files.");
  },
  tool: {
    count_words: tool({
      description: "Counts the words of a text",
      args: { text: tool.schema.string().describe("The text") },
      async execute({ text }) {
        return String(text.split(/\s+/).filter((word) => word !== "").length);
      },
    }),
  },
});
