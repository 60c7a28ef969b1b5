// What fills the context of a session: an estimate of the parts, scaled to the tokens that the provider counted.
import type { AssistantMessage, Message, Part } from "../api";

/** The parts of a context, in the order of a request. */
export const SHARES = ["system", "tools", "prompts", "files", "outputs", "answers"] as const;
export type ShareName = (typeof SHARES)[number];

export interface ContextShare {
  name: ShareName;
  tokens: number;
}

export interface ContextUse {
  /** The tokens that the provider counted for the last request and its answer. */
  used: number;
  /** The part of the request that came from the provider's cache, from 0 to 1. */
  cached: number;
  shares: ContextShare[];
}

/** Characters of a token, on average over text and code. */
const CHARACTERS = 4;
/** Tools whose results are the content of files. */
const FILE_TOOLS = new Set(["read", "list", "glob", "grep"]);

export interface Entry {
  info: Message;
  parts: Part[];
}

export function usedTokens(info: AssistantMessage): number {
  const { input, output, reasoning, cache } = info.tokens;
  return input + output + reasoning + cache.read + cache.write;
}

/** Returns the messages that a request contains: those from the last summary on. */
export function sinceSummary(entries: Entry[]): Entry[] {
  const at = entries.findLastIndex(
    ({ info }) => info.role === "assistant" && info.summary === true && info.time.completed !== undefined,
  );
  return at < 0 ? entries : entries.slice(at);
}

function characters(part: Part): { name: ShareName; length: number }[] {
  switch (part.type) {
    case "file":
      return [{ name: "files", length: part.source?.text.value.length ?? 0 }];
    case "reasoning":
      return [{ name: "answers", length: part.text.length }];
    case "tool": {
      const input = { name: "answers" as const, length: JSON.stringify(part.state.input ?? {}).length };
      if (part.state.status === "error") return [input, { name: "outputs", length: part.state.error.length }];
      // An old output that was left out of requests takes no space.
      if (part.state.status !== "completed" || part.state.time.compacted !== undefined) return [input];
      return [input, { name: FILE_TOOLS.has(part.tool) ? "files" : "outputs", length: part.state.output.length }];
    }
    default:
      return [];
  }
}

/** Returns the estimated tokens of each part of the conversation. */
function estimate(entries: Entry[]): Map<ShareName, number> {
  const lengths = new Map<ShareName, number>();
  const add = (name: ShareName, length: number) => lengths.set(name, (lengths.get(name) ?? 0) + length / CHARACTERS);
  for (const { info, parts } of entries) {
    for (const part of parts) {
      // What the server adds to a prompt is the content of files that it mentions.
      if (part.type === "text")
        add(info.role === "assistant" ? "answers" : part.synthetic ? "files" : "prompts", part.text.length);
      else for (const { name, length } of characters(part)) add(name, length);
    }
  }
  return lengths;
}

/**
 * Returns what fills the context. The system prompt is what remains of the counted tokens after the tools and the
 * conversation. If the estimates are larger than the count, all of them shrink by the same factor.
 */
export function contextUse(entries: Entry[], toolCharacters: number): ContextUse | undefined {
  const last = entries.findLast(({ info }) => info.role === "assistant" && usedTokens(info) > 0)?.info;
  if (last?.role !== "assistant") return undefined;
  const used = usedTokens(last);
  const request = last.tokens.input + last.tokens.cache.read + last.tokens.cache.write;
  const lengths = estimate(sinceSummary(entries));
  lengths.set("tools", toolCharacters / CHARACTERS);
  const sum = [...lengths.values()].reduce((total, one) => total + one, 0);
  const factor = sum > used ? used / sum : 1;
  const tokens = (name: ShareName) => Math.round((lengths.get(name) ?? 0) * factor);
  const shares = SHARES.map((name) => ({ name, tokens: name === "system" ? 0 : tokens(name) }));
  const known = shares.reduce((total, one) => total + one.tokens, 0);
  return {
    used,
    cached: request > 0 ? last.tokens.cache.read / request : 0,
    shares: shares.map((one) => (one.name === "system" ? { ...one, tokens: Math.max(0, used - known) } : one)),
  };
}
