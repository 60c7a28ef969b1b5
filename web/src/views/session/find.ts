// The search in a session: all places of a text in its messages, whether they are drawn or not.
import type { Part } from "../../api";
import type { Transcript } from "../../state/transcript";

/** More matches than this are not counted. */
export const MAX_MATCHES = 5_000;

export interface Match {
  message: string;
  /** The number of matches before it in the same message. */
  at: number;
}

/** Returns the texts of a part that a user can see. */
export function textsOf(part: Part): string[] {
  switch (part.type) {
    case "text":
      return part.synthetic || part.ignored ? [] : [part.text];
    case "reasoning":
      return [part.text];
    case "file":
      return [part.filename ?? ""];
    case "subtask":
      return [part.description];
    case "tool": {
      const inputs = Object.values(part.state.input ?? {}).filter(
        (value): value is string => typeof value === "string",
      );
      const state = part.state;
      const results =
        state.status === "completed" ? [state.title, state.output] : state.status === "error" ? [state.error] : [];
      return [...inputs, ...results];
    }
    default:
      return [];
  }
}

/** Returns how often a text contains a word. Case does not count unless the word has capital letters. */
export function occurrences(text: string, word: string): number {
  if (!word) return 0;
  const [place, wanted] = word === word.toLowerCase() ? [text.toLowerCase(), word] : [text, word];
  let found = 0;
  for (let at = place.indexOf(wanted); at >= 0 && found < MAX_MATCHES; at = place.indexOf(wanted, at + wanted.length))
    found += 1;
  return found;
}

/** Returns the matches of the messages that are loaded, in their order. */
export function find(transcript: Transcript, word: string, shown: readonly string[]): Match[] {
  const matches: Match[] = [];
  if (!word.trim()) return matches;
  for (const id of shown) {
    const parts = transcript.message(id)?.parts() ?? [];
    const count = parts.reduce(
      (sum, node) => sum + textsOf(node.part()).reduce((inner, text) => inner + occurrences(text, word), 0),
      0,
    );
    for (let at = 0; at < count && matches.length < MAX_MATCHES; at += 1) matches.push({ message: id, at });
    if (matches.length >= MAX_MATCHES) break;
  }
  return matches;
}
