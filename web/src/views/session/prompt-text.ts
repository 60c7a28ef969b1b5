// The text of a prompt.
import type { MessageNode } from "../../state/transcript";

/** Returns the text of a prompt without what the server added. */
export function promptText(node: MessageNode): string {
  return node
    .parts()
    .map((part) => part.part())
    .flatMap((part) => (part.type === "text" && !part.synthetic && !part.ignored ? [part.text] : []))
    .join("\n");
}
