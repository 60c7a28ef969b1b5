/** Reading the parts of messages. */
import type { Part, ToolPart } from "./gen/types.gen.js";

/** Returns the text of an answer. Text that the program added to a prompt (`synthetic`) is left out. */
export function textOf(message: { parts: readonly Part[] }): string {
  const texts = message.parts.flatMap((part) => (part.type === "text" && !part.synthetic && !part.ignored ? [part.text] : []));
  return texts.join("\n\n").trim();
}

/** Returns the tool calls of an answer. */
export function toolCalls(message: { parts: readonly Part[] }): ToolPart[] {
  return message.parts.filter((part) => part.type === "tool");
}

/** Returns a message as Markdown: its text, and each tool call as a line with its title or error. */
export function toMarkdown(message: { parts: readonly Part[] }): string {
  const blocks = message.parts.flatMap((part) => {
    if (part.type === "text") return part.synthetic || part.ignored ? [] : [part.text];
    if (part.type === "file") return [`- file: ${code(part.filename ?? part.mime)}`];
    if (part.type !== "tool") return [];
    const { state } = part;
    const detail = state.status === "completed" ? state.title : state.status === "error" ? state.error : state.status;
    return [`- ${code(part.tool)}: ${detail.replaceAll(/\s+/g, " ")}`];
  });
  return `${blocks.join("\n\n").trim()}\n`;
}

function code(text: string): string {
  const fence = "`".repeat(1 + Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length)));
  return fence.length > 1 ? `${fence} ${text} ${fence}` : `${fence}${text}${fence}`;
}
