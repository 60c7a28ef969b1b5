// Text from models, tools, servers and files: which characters are displayed, and in which form.

/** Characters that end lines, move the cursor or change the direction of text. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]/g;
const HIDDEN_LINE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]/g;
const ESCAPES =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])/g;

/** Returns prose without characters that could hide or reorder it. */
export function prose(text: string): string {
  return text.replace(ESCAPES, "").replace(HIDDEN, "");
}

/** Returns a file name or a command on one line, with hidden characters as code points. */
export function plain(text: string): string {
  return text.replace(HIDDEN_LINE, codePoint);
}

/** Returns code of several lines, with hidden characters as code points. */
export function code(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(HIDDEN, codePoint);
}

function codePoint(one: string): string {
  return `‹U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`;
}

/** A piece of a command's output with the classes of its style. */
export interface Run {
  text: string;
  class: string;
}

const STYLES: Record<number, string> = { 1: "ansi-bold", 2: "ansi-dim", 3: "ansi-italic", 4: "ansi-underline" };

/** Returns the styled pieces of a command's output. Only colours and styles have an effect. */
export function ansi(text: string): Run[] {
  const runs: Run[] = [];
  let styles = new Set<string>();
  let at = 0;
  const push = (piece: string) => {
    const clean = lines(piece).replace(HIDDEN, "");
    if (clean) runs.push({ text: clean, class: [...styles].join(" ") });
  };
  for (const match of text.matchAll(ESCAPES)) {
    push(text.slice(at, match.index));
    at = match.index + match[0].length;
    const parameters = /^\u001b\[([\d;]*)m$/.exec(match[0]);
    if (parameters) styles = styled(styles, (parameters[1] ?? "").split(";").map(Number));
  }
  push(text.slice(at));
  return runs;
}

/** Keeps what a carriage return leaves visible: the text after the last one of a line. */
function lines(text: string): string {
  if (!text.includes("\r")) return text;
  return text
    .replace(/\r\n/g, "\n")
    .replace(/[^\n]*\r(?=[^\n])/g, "")
    .replace(/\r/g, "");
}

function styled(before: Set<string>, codes: number[]): Set<string> {
  const after = new Set(before);
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    const style = STYLES[code];
    if (code === 0) after.clear();
    else if (style) after.add(style);
    else if (code === 22) ["ansi-bold", "ansi-dim"].forEach((name) => after.delete(name));
    else if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : 4;
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97) || code === 39) {
      for (const name of after) if (/^ansi-\d/.test(name)) after.delete(name);
      if (code !== 39) after.add(`ansi-${code}`);
    }
  }
  return after;
}
