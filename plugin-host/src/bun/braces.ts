/** Braces in words and patterns, as a shell expands them. */
import { MAX_BRACE_RESULTS } from "../limits.js";

/** Expands `a{b,c}` as a shell does. Ranges are not expanded. */
export function expandBraces(pattern: string): string[] {
  const open = pattern.indexOf("{");
  const close = open < 0 ? -1 : matchingBrace(pattern, open);
  if (close < 0) return [pattern];
  const head = pattern.slice(0, open);
  const tails = expandBraces(pattern.slice(close + 1));
  const results: string[] = [];
  for (const choice of splitChoices(pattern.slice(open + 1, close)).flatMap(expandBraces)) {
    for (const tail of tails) {
      if (results.length >= MAX_BRACE_RESULTS)
        throw new RangeError(`the pattern expands to more than ${MAX_BRACE_RESULTS} words`);
      results.push(head + choice + tail);
    }
  }
  return results;
}

function matchingBrace(pattern: string, open: number): number {
  let depth = 0;
  for (let index = open; index < pattern.length; index++) {
    if (pattern[index] === "{") depth++;
    else if (pattern[index] === "}" && --depth === 0) return index;
  }
  return -1;
}

function splitChoices(text: string): string[] {
  const choices: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    if (text[index] === "{") depth++;
    else if (text[index] === "}") depth--;
    else if (text[index] === "," && depth === 0) {
      choices.push(text.slice(start, index));
      start = index + 1;
    }
  }
  return [...choices, text.slice(start)];
}
