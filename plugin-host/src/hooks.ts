/** Runs a hook in all plugins that have it, one after the other, on the same objects. */
import { runAs } from "./attribution.js";
import type { Connection } from "./connection.js";
import { withDeadline } from "./deadline.js";
import { DeadlineError, describeFailure } from "./errors.js";
import { describeProblems, toJsonText } from "./json.js";
import { MAX_LINE_BYTES } from "./limits.js";
import { logError } from "./log.js";
import { allPlugins, hookFunctions, isRecord, type Plugin } from "./plugins.js";
import type { HookFailure, HookParams } from "./protocol.js";

/** The hook before a tool call. */
const BEFORE_CALL = "tool.execute.before";
/** The hook that adds headers to a request. */
const HEADERS = "chat.headers";
/** The names and values that HTTP allows. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
/** The characters of a name that a message quotes. */
const MAX_NAME_CHARS = 100;
/** The share of a line that the value of a hook may take. */
const MAX_VALUE_BYTES = MAX_LINE_BYTES - 64 * 1024;

export interface HookSettings {
  connection: Connection;
  deadline: number;
}

interface HookState {
  name: string;
  /** The value that goes back to the server: the input of `config`, otherwise the output. */
  value: { current: unknown };
  /** The last value that JSON could carry. */
  text: string;
  failures: HookFailure[];
  known: Set<string>;
}

export async function runHook(params: HookParams, id: number, settings: HookSettings): Promise<unknown> {
  const { name, output, skip = [] } = params;
  const isConfig = name === "config";
  const input = { current: params.input };
  const value = isConfig ? input : { current: output };
  const state: HookState = {
    name,
    value,
    text: JSON.stringify(value.current) ?? "null",
    failures: [],
    known: new Set(),
  };
  for (const plugin of allPlugins()) {
    if (skip.includes(plugin.index)) continue;
    const functions = hookFunctions(plugin, name);
    if (functions.length === 0) continue;
    for (const hook of functions) {
      settings.connection.notify("at", { id, index: plugin.index });
      const flushed = settings.connection.flush();
      if (flushed !== undefined) await flushed;
      await runOne(plugin, state, settings, () => hook(input.current, isConfig ? output : value.current));
    }
    keepJson(plugin, state);
    if (name === HEADERS) dropInvalidHeaders(plugin, state);
    // A plugin forbids a call by throwing an error before it, and a guard that does not end has not allowed it. The
    // plugins after it must not act on that call.
    if (name === BEFORE_CALL && state.failures.some((failure) => failure.thrown === true || failure.timeout === true))
      break;
  }
  const result = JSON.parse(state.text) as unknown;
  const { failures } = state;
  if (!isConfig) return { output: result, failures };
  const agents = agentOrder(result);
  return { input: result, output: output ?? {}, failures, ...(agents === undefined ? {} : { agents }) };
}

/** The agents that exist without a configuration. */
const BUILT_IN = ["build", "compaction", "explore", "general", "plan", "summary", "title"];
/** Before a plugin can replace it. */
const { sort } = Array.prototype;

/**
 * The names of the configured agents in the order that a plugin chose, or undefined if no plugin chose one.
 *
 * OpenCode sorts its agents in the process of the plugins: the default agent first, the others by name. Plugins choose
 * another order by replacing `sort` for lists of their agents, so the list is sorted here once with each function.
 */
function agentOrder(config: unknown): string[] | undefined {
  if (Array.prototype.sort === sort || !isRecord(config) || !isRecord(config["agent"])) return undefined;
  const first = config["default_agent"] ?? "build";
  const agents = [...new Set([...BUILT_IN, ...Object.keys(config["agent"])])].map((name) => ({ name }));
  const rank = ({ name }: { name: string }) => (name === first ? 0 : 1);
  const compare = (a: { name: string }, b: { name: string }) =>
    rank(a) - rank(b) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  try {
    const chosen = [...agents].sort(compare).map(({ name }) => name);
    const usual = (sort.call([...agents], compare as never) as { name: string }[]).map(({ name }) => name);
    return chosen.every((name, at) => name === usual[at]) ? undefined : chosen.map(String);
  } catch (error) {
    logError("the agents cannot be sorted", error, undefined);
    return undefined;
  }
}

async function runOne(plugin: Plugin, state: HookState, settings: HookSettings, run: () => unknown): Promise<void> {
  const late = (error: unknown) => logError(`${state.name} failed after its deadline`, error, plugin.index);
  try {
    await runAs(plugin, () => withDeadline(`${state.name} of ${plugin.name}`, settings.deadline, run, late));
  } catch (error) {
    const { message, file, line } = describeFailure(error);
    const failure: HookFailure = { index: plugin.index, message };
    if (error instanceof DeadlineError) failure.timeout = true;
    else {
      failure.thrown = true;
      if (file !== undefined) failure.file = file;
      if (line !== undefined) failure.line = line;
    }
    state.failures.push(failure);
  }
}

/** Leaves out headers that cannot be sent. They would make every request fail. */
function dropInvalidHeaders(plugin: Plugin, state: HookState): void {
  const value = JSON.parse(state.text) as unknown;
  const headers = isRecord(value) ? value["headers"] : undefined;
  if (!isRecord(headers)) return;
  const isInvalid = ([name, text]: [string, unknown]) =>
    !HEADER_NAME.test(name) ||
    (["string", "number", "boolean"].includes(typeof text) && !HEADER_VALUE.test(String(text)));
  const invalid = Object.entries(headers).filter(isInvalid);
  if (invalid.length === 0) return;
  for (const [name] of invalid) {
    delete headers[name];
    const quoted = JSON.stringify(name.slice(0, MAX_NAME_CHARS));
    state.failures.push({
      index: plugin.index,
      message: `${state.name}: the header ${quoted} is left out, because its name or value is invalid`,
    });
  }
  state.text = JSON.stringify(value);
  state.value.current = value;
}

/** Takes the value after a plugin. A value that is too large is replaced by the one before it. */
function keepJson(plugin: Plugin, state: HookState): void {
  const { text, problems } = toJsonText(state.value.current);
  const fresh = problems.filter((problem) => !state.known.has(problem.path));
  for (const problem of fresh) state.known.add(problem.path);
  if (fresh.length > 0) {
    state.failures.push({ index: plugin.index, message: `${state.name}: ${describeProblems(fresh)}` });
  }
  if (text === undefined) return;
  if (text.length * 3 > MAX_VALUE_BYTES && Buffer.byteLength(text) > MAX_VALUE_BYTES) {
    const message =
      `${state.name}: the value is larger than ${MAX_VALUE_BYTES} bytes; ` + "the changes of the plugin were dropped";
    state.failures.push({ index: plugin.index, message });
    state.value.current = JSON.parse(state.text) as unknown;
    return;
  }
  state.text = text;
}
