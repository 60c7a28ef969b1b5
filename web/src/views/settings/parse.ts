// What the pages of the settings read from the configuration and write to it.
import type { Config } from "../../api";

export const ACTIONS = ["allow", "ask", "deny"] as const;
export type Action = (typeof ACTIONS)[number];
/** Permissions whose rules have no patterns. */
export const PLAIN = new Set(["todowrite", "question", "webfetch", "websearch", "doom_loop"]);

export interface Rule {
  permission: string;
  pattern: string;
  action: Action;
  isPlain: boolean;
}

/** Returns the rules of a configuration in their order. Later ones take precedence. */
export function rulesOf(permission: Config["permission"]): Rule[] {
  if (permission === undefined) return [];
  if (typeof permission === "string") return [{ permission: "*", pattern: "*", action: permission, isPlain: true }];
  return Object.entries(permission).flatMap(([name, value]): Rule[] =>
    typeof value === "string"
      ? [{ permission: name, pattern: "*", action: value, isPlain: true }]
      : Object.entries(value).map(([pattern, action]) => ({ permission: name, pattern, action, isPlain: false })),
  );
}

/** Returns the configuration of a rule. */
export function changeOf(rule: Omit<Rule, "isPlain">, existing: readonly Rule[]): Config {
  if (rule.permission === "*") return { permission: rule.action };
  const own = existing.filter((one) => one.permission === rule.permission);
  const isPlain = rule.pattern === "*" && (own.length === 0 || own.every((one) => one.isPlain));
  if (isPlain || PLAIN.has(rule.permission)) return { permission: { [rule.permission]: rule.action } };
  // A rule without patterns becomes the first of those with patterns.
  const before = Object.fromEntries(own.filter((one) => one.isPlain).map((one) => ["*", one.action]));
  return { permission: { [rule.permission]: { ...before, [rule.pattern]: rule.action } } };
}

/** Returns the change that removes a rule. */
export function removalOf(rule: Rule): { permission: unknown } {
  if (rule.permission === "*" && rule.isPlain) return { permission: null };
  return { permission: { [rule.permission]: rule.isPlain ? null : { [rule.pattern]: null } } };
}

/** Splits a command line into words. Quotes keep spaces together. */
export function words(line: string): string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)].map(
    (match) => match[1]?.replace(/\\(.)/g, "$1") ?? match[2] ?? match[3] ?? "",
  );
}

/** Reads lines such as `NAME=value` or `Name: value`. Returns `null` if one is something else. */
export function pairs(text: string): Record<string, string> | null {
  const found: Record<string, string> = {};
  for (const line of text
    .split("\n")
    .map((one) => one.trim())
    .filter(Boolean)) {
    const match = /^([\w-]+)\s*[=:]\s*(.*)$/.exec(line);
    if (!match?.[1]) return null;
    found[match[1]] = match[2] ?? "";
  }
  return found;
}
