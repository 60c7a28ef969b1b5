// Sessions as files.
import { call, type Message, type Part } from "../api";
import { state } from "./mirror";
import { prose } from "../ui/text";

/** Downloads a session. */
export async function exportSession(id: string, kind: "markdown" | "json"): Promise<void> {
  const messages = await call("GET /session/{sessionID}/message", { path: { sessionID: id }, long: true });
  const info = state.sessions[id] ?? (await call("GET /session/{sessionID}", { path: { sessionID: id } }));
  const name =
    (info.title || id)
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .replace(/^-|-$/g, "")
      .slice(0, 60)
      .toLowerCase() || "session";
  if (kind === "json") download(`${name}.json`, "application/json", JSON.stringify({ info, messages }, null, 2));
  else
    download(
      `${name}.md`,
      "text/markdown",
      [`# ${prose(info.title)}`, ...messages.map(asMarkdown)].join("\n\n") + "\n",
    );
}

/** Returns a message as Markdown. */
export function asMarkdown({ info, parts }: { info: Message; parts: Part[] }): string {
  const head = info.role === "user" ? "## Prompt" : `## Answer (${info.agent}, ${info.modelID})`;
  const body = parts.map((part) => {
    switch (part.type) {
      case "text":
        return part.synthetic ? "" : part.text;
      case "reasoning":
        return part.text
          ? part.text
              .trim()
              .split("\n")
              .map((line) => `> ${line}`)
              .join("\n")
          : "";
      case "file":
        return `Attachment: ${part.filename ?? part.mime}`;
      case "tool": {
        const input = fence(JSON.stringify(part.state.input, null, 2), "json");
        const output =
          part.state.status === "completed" ? part.state.output : part.state.status === "error" ? part.state.error : "";
        return `### ${part.tool}\n\n${input}${output ? `\n\n${fence(output, "")}` : ""}`;
      }
      default:
        return "";
    }
  });
  return [head, ...body.filter(Boolean)].join("\n\n");
}

function fence(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((match) => match[0].length));
  const mark = "`".repeat(longest + 1);
  return `${mark}${language}\n${text.trimEnd()}\n${mark}`;
}

/** Downloads a text as a file. */
export function download(name: string, type: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
