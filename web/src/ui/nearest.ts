// The name that a misspelt one may mean, and the one that a part of a name means.

/** Names with more differences than this are not similar. */
const MAX_DISTANCE = 3;

/** The number of insertions, deletions, replacements and exchanges of neighbours that turn one text into another. */
function distance(a: string, b: string): number {
  let [before, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, (before[j - 2] ?? 0) + 1);
      row.push(best);
    }
    [before, last] = [last, row];
  }
  return last[b.length] ?? 0;
}

/** Returns the name that is most similar to a text, if one is similar. */
export function nearest(text: string, names: readonly string[]): string | undefined {
  const wanted = text.toLowerCase();
  let [best, least] = [undefined as string | undefined, Math.min(MAX_DISTANCE, Math.floor(wanted.length / 2)) + 1];
  for (const name of names) {
    const found =
      name.toLowerCase().startsWith(wanted) && wanted.length > 1 ? 0.5 : distance(wanted, name.toLowerCase());
    if (found < least) [best, least] = [name, found];
  }
  return best;
}

/** Returns the name that a text is, or the only one that contains it; otherwise all that contain it. */
export function uniquePart(text: string, names: readonly string[]): string | string[] {
  const wanted = text.toLowerCase();
  const exact = names.find((name) => name === text) ?? names.find((name) => name.toLowerCase() === wanted);
  if (exact !== undefined) return exact;
  const found = names.filter((name) => name.toLowerCase().includes(wanted));
  return found.length === 1 && found[0] !== undefined ? found[0] : found;
}
