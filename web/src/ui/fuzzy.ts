// Fuzzy search in lists: all letters in order, with a preference for beginnings of words.

export interface Match<T> {
  item: T;
  score: number;
}

/** Returns the score of a text for a query, or null if it does not match. */
export function score(text: string, query: string): number | null {
  const [hay, needle] = [text.toLowerCase(), query.toLowerCase()];
  if (needle === "") return 0;
  const whole = hay.indexOf(needle);
  if (whole >= 0) return 1_000 - whole - hay.length / 100 + (isStart(hay, whole) ? 200 : 0);
  let total = 0;
  let at = -1;
  let run = 0;
  for (const letter of needle) {
    if (letter === " ") continue;
    const next = hay.indexOf(letter, at + 1);
    if (next < 0) return null;
    run = next === at + 1 ? run + 1 : 0;
    total += run * 4 + (isStart(hay, next) ? 12 : 0) - Math.min(next - at, 8);
    at = next;
  }
  return total - hay.length / 100;
}

function isStart(text: string, at: number): boolean {
  return at === 0 || /[\s/._\-:(]/.test(text[at - 1] ?? "");
}

/** Returns the items that match, the best first. Without a query the order stays. */
export function filter<T>(items: readonly T[], query: string, text: (item: T) => string): T[] {
  const trimmed = query.trim();
  if (!trimmed) return [...items];
  const found: Match<T>[] = [];
  for (const item of items) {
    const value = score(text(item), trimmed);
    if (value !== null) found.push({ item, score: value });
  }
  return found.sort((a, b) => b.score - a.score).map((match) => match.item);
}
