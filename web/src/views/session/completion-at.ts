// What is being completed in the prompt.

export interface Completion {
  kind: "@" | "/";
  query: string;
  start: number;
  end: number;
}

/** Returns what is being completed at a position of a text. */
export function completionAt(text: string, caret: number): Completion | null {
  const before = text.slice(0, caret);
  const slash = /^\/([^\s/]*)$/.exec(before);
  if (slash) return { kind: "/", query: slash[1] ?? "", start: 0, end: caret };
  const at = /(?:^|\s)@([^\s@]*)$/.exec(before);
  if (!at) return null;
  const query = at[1] ?? "";
  return { kind: "@", query, start: caret - query.length - 1, end: caret };
}
