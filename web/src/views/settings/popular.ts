// The providers that most people use, in the order of their use, with the names before the server's list is loaded.
export const POPULAR: readonly (readonly [id: string, name: string])[] = [
  ["anthropic", "Anthropic"],
  ["openai", "OpenAI"],
  ["google", "Google"],
  ["github-copilot", "GitHub Copilot"],
  ["openrouter", "OpenRouter"],
  ["opencode", "OpenCode Zen"],
  ["vercel", "Vercel AI Gateway"],
];

/** Returns the place of a provider in a list. The others are behind, in their own order. */
export function popularity(id: string): number {
  const at = POPULAR.findIndex(([popular]) => popular === id);
  return at < 0 ? POPULAR.length : at;
}
