/** Values of plugins as JSON. */
import { MAX_JSON_DEPTH } from "./limits.js";

/** A value that JSON cannot carry, and where it is. */
export interface JsonProblem {
  path: string;
  reason: string;
}

export interface JsonText {
  /** `undefined` if the value itself cannot be sent. */
  text: string | undefined;
  problems: JsonProblem[];
}

/**
 * Serializes a value of a plugin. Functions, symbols, BigInts, cycles and getters that throw are left out and
 * reported. `undefined` is left out as usual.
 */
export function toJsonText(value: unknown): JsonText {
  const problems: JsonProblem[] = [];
  let unusual = false;
  try {
    const text = JSON.stringify(value, (_key, inner: unknown) => {
      if (typeof inner === "function" || typeof inner === "bigint" || typeof inner === "symbol") unusual = true;
      return inner;
    });
    if (!unusual) return { text, problems };
  } catch {
    // A cycle, a getter that throws or deep nesting. The slow way below finds out where.
  }
  const clean = copy(value, { path: "", depth: 0, above: new Set(), problems });
  return { text: clean === undefined ? undefined : JSON.stringify(clean), problems };
}

/** The value as plain JSON, without what JSON cannot carry. */
export function toJson<T = unknown>(value: unknown): { value: T | undefined; problems: JsonProblem[] } {
  const { text, problems } = toJsonText(value);
  return { value: text === undefined ? undefined : (JSON.parse(text) as T), problems };
}

/** A sentence for the log. */
export function describeProblems(problems: JsonProblem[]): string {
  const first = problems.slice(0, 3).map((problem) => `${problem.path || "the value"} is ${problem.reason}`);
  const more = problems.length > 3 ? ` and ${problems.length - 3} more` : "";
  return `${first.join(", ")}${more}; JSON cannot carry that, so it was left out`;
}

interface CopyState {
  path: string;
  depth: number;
  above: Set<object>;
  problems: JsonProblem[];
}

function copy(value: unknown, state: CopyState): unknown {
  const refuse = (reason: string): undefined => {
    state.problems.push({ path: state.path, reason });
    return undefined;
  };
  switch (typeof value) {
    case "function":
      return refuse("a function");
    case "bigint":
      return refuse("a BigInt");
    case "symbol":
      return refuse("a symbol");
    case "object":
      break;
    default:
      return value;
  }
  if (value === null) return null;
  if (state.above.has(value)) return refuse("part of a cycle");
  if (state.depth >= MAX_JSON_DEPTH) return refuse(`nested deeper than ${MAX_JSON_DEPTH} levels`);
  try {
    const toJSON = (value as { toJSON?: unknown }).toJSON;
    if (typeof toJSON === "function") return JSON.parse(JSON.stringify(value) ?? "null");
  } catch {
    return refuse("an object whose toJSON fails");
  }
  state.above.add(value);
  const result = Array.isArray(value) ? copyArray(value, state) : copyObject(value, state);
  state.above.delete(value);
  return result;
}

function copyArray(value: unknown[], state: CopyState): unknown[] {
  return value.map((item, index) => copy(item, below(state, String(index))) ?? null);
}

function copyObject(value: object, state: CopyState): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    let inner: unknown;
    try {
      inner = (value as Record<string, unknown>)[key];
    } catch {
      state.problems.push({ path: below(state, key).path, reason: "a getter that fails" });
      continue;
    }
    const item = copy(inner, below(state, key));
    if (item !== undefined) {
      Object.defineProperty(result, key, { value: item, enumerable: true, configurable: true, writable: true });
    }
  }
  return result;
}

function below(state: CopyState, key: string): CopyState {
  return { ...state, path: state.path === "" ? key : `${state.path}.${key}`, depth: state.depth + 1 };
}
