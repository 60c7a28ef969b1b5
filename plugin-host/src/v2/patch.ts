/** The differences between two states of the lists, as a part of the configuration. */
import { isRecord } from "../plugins.js";
import type { Agent, Api, Command, Lists, Model, ModelName, Provider, Rule } from "./drafts.js";

type Part = Record<string, unknown>;

/** The parts of the base configuration that lists of the configuration replace. */
export interface BaseConfig {
  disabled_providers?: unknown;
  skills?: unknown;
  provider?: unknown;
}

export interface Patch {
  config: Part;
  /** Changes that the configuration cannot express. */
  lost: string[];
}

export function patchOf(before: Lists, after: Lists, base: BaseConfig): Patch {
  const patch: Patch = { config: {}, lost: [] };
  agents(before, after, patch);
  commands(before, after, patch);
  catalog(before, after, base, patch);
  skills(before, after, base, patch);
  return patch;
}

function agents(before: Lists, after: Lists, patch: Patch): void {
  const changed: Part = {};
  for (const agent of after.agents) {
    const part = agentPart(
      before.agents.find((known) => known.id === agent.id),
      agent,
      patch,
    );
    if (part !== undefined) changed[agent.id] = part;
  }
  for (const { id } of missing(before.agents, after.agents, (agent) => agent.id)) changed[id] = { disable: true };
  put(patch.config, "agent", changed);
  if (after.defaultAgent !== before.defaultAgent) patch.config["default_agent"] = after.defaultAgent;
}

const isText = (value: unknown) => typeof value === "string";

/** The values that the configuration accepts. One that it refuses would take all other changes of agents with it. */
const AGENT_FIELDS = {
  system: isText,
  description: isText,
  mode: (value: unknown) => value === "primary" || value === "subagent" || value === "all",
  hidden: (value: unknown) => typeof value === "boolean",
  color: isText,
  steps: (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0,
};

function isRule(rule: unknown): rule is Rule {
  return (
    isRecord(rule) &&
    isText(rule["action"]) &&
    isText(rule["resource"]) &&
    ["allow", "ask", "deny"].includes(String(rule["effect"]))
  );
}

function agentPart(before: Agent | undefined, after: Agent, patch: Patch): Part | undefined {
  const part: Part = {};
  const set = (key: string, from: keyof typeof AGENT_FIELDS) => {
    if (after[from] === undefined || same(before?.[from], after[from])) return;
    if (AGENT_FIELDS[from](after[from])) part[key] = after[from];
    else patch.lost.push(`${from} of the agent ${after.id}`);
  };
  set("prompt", "system");
  for (const key of ["description", "mode", "hidden", "color", "steps"] as const) set(key, key);
  if (!same(before?.model, after.model) && after.model !== undefined) {
    part["model"] = modelText(after.model);
    if (after.model.variant !== undefined) part["variant"] = after.model.variant;
  }
  if (!same(before?.request.body ?? {}, after.request.body)) part["options"] = after.request.body;
  if (!same(before?.request.headers ?? {}, after.request.headers))
    patch.lost.push(`the headers of the agent ${after.id}`);
  if (!same(before?.permissions ?? [], after.permissions)) {
    const rules = permissions(before?.permissions ?? [], after.permissions);
    if (rules === undefined) patch.lost.push(`the permissions of the agent ${after.id}`);
    else part["permission"] = rules;
  }
  return before !== undefined && Object.keys(part).length === 0 ? undefined : part;
}

/**
 * Permission rules in the form of the configuration, which has one list of patterns for each action. The last rule that
 * matches decides, so an action that occurs in two places cannot be expressed. Returns `undefined` then.
 */
function permissions(before: Rule[], after: Rule[]): Part | undefined {
  if (!Array.isArray(after) || !after.every(isRule)) return undefined;
  const isExtended = before.every((rule, at) => same(rule, after[at]));
  const rules = isExtended ? after.slice(before.length) : after;
  const config: Record<string, Record<string, string>> = {};
  let last: string | undefined;
  for (const { action, resource, effect } of rules) {
    if (action !== last && Object.hasOwn(config, action)) return undefined;
    last = action;
    config[action] ??= {};
    const patterns = config[action];
    // The order of the keys is the order of the rules.
    delete patterns[resource];
    patterns[resource] = effect;
  }
  return config;
}

function commands(before: Lists, after: Lists, patch: Patch): void {
  const changed: Part = {};
  for (const command of after.commands) {
    if (
      same(
        before.commands.find((known) => known.name === command.name),
        command,
      )
    )
      continue;
    const { name, template, description, agent, model, subtask } = command;
    if (!isText(template) || ![description, agent].every((text) => text === undefined || isText(text))) {
      patch.lost.push(`the command ${name}`);
      continue;
    }
    changed[name] = defined({ template, description, agent, model: model && modelText(model), subtask });
  }
  for (const { name } of missing(before.commands, after.commands, (command: Command) => command.name)) {
    patch.lost.push(`the removal of the command ${name}`);
  }
  put(patch.config, "command", changed);
}

function catalog(before: Lists, after: Lists, base: BaseConfig, patch: Patch): void {
  const changed: Record<string, Part> = {};
  const of = (id: string): Part => (changed[id] ??= {});
  const disabled: string[] = [];
  for (const provider of after.providers) {
    const known = before.providers.find(({ id }) => id === provider.id);
    if (provider.disabled === true) disabled.push(provider.id);
    else if (!same(known, provider)) Object.assign(of(provider.id), providerPart(known, provider));
  }
  disabled.push(...missing(before.providers, after.providers, (provider: Provider) => provider.id).map(({ id }) => id));
  const nameOf = (model: Model) => `${model.providerID}/${model.id}`;
  for (const model of after.models) {
    const known = before.models.find((other) => nameOf(other) === nameOf(model));
    if (same(known, model)) continue;
    if (!model.enabled) hide(of(model.providerID), base, model);
    else merge(of(model.providerID), { models: { [model.id]: modelPart(known, model) } });
  }
  for (const model of missing(before.models, after.models, nameOf)) {
    if (!disabled.includes(model.providerID)) hide(of(model.providerID), base, model);
  }
  put(patch.config, "provider", changed);
  if (disabled.length > 0) patch.config["disabled_providers"] = [...texts(base.disabled_providers), ...disabled];
  const { defaultModel } = after;
  if (defaultModel !== undefined && !same(before.defaultModel, defaultModel)) {
    patch.config["model"] = `${defaultModel.providerID}/${defaultModel.modelID}`;
  }
}

function hide(provider: Part, base: BaseConfig, model: Model): void {
  const known = isRecord(base.provider) ? base.provider[model.providerID] : undefined;
  const hidden = provider["blacklist"] ?? (isRecord(known) ? known["blacklist"] : undefined);
  provider["blacklist"] = [...texts(hidden), model.id];
}

function providerPart(before: Provider | undefined, after: Provider): Part {
  const part: Part = {};
  if (before?.name !== after.name) part["name"] = after.name;
  Object.assign(part, apiPart(before?.api, after.api));
  const options: Part = {};
  for (const from of [(provider: Provider) => provider.api.settings, (provider: Provider) => provider.request.body]) {
    Object.assign(options, changedKeys(before && from(before), from(after)));
  }
  const headers = changedKeys(before?.request.headers, after.request.headers);
  if (Object.keys(headers).length > 0) options["headers"] = headers;
  put(part, "options", options);
  return part;
}

/** The package and the address. Other types than `aisdk` name no package. */
function apiPart(before: Api | undefined, after: Api): Part {
  const part: Part = {};
  if (after.package !== undefined && after.package !== before?.package) part["npm"] = after.package;
  if (after.url !== undefined && after.url !== before?.url) part["api"] = after.url;
  return part;
}

function modelPart(before: Model | undefined, after: Model): Part {
  const part: Part = {};
  const set = (key: string, from: (model: Model) => unknown, value = from(after)) => {
    if (value !== undefined && !same(before && from(before), from(after))) part[key] = value;
  };
  set("id", (model) => model.api.id);
  set("name", (model) => model.name);
  set("family", (model) => model.family);
  set("status", (model) => model.status);
  set("tool_call", (model) => model.capabilities.tools);
  const { input, output } = after.capabilities;
  // A new model without lists has the usual ones.
  if (input.length + output.length > 0)
    set("modalities", (model) => [model.capabilities.input, model.capabilities.output], { input, output });
  if (after.limit.context > 0) set("limit", (model) => model.limit);
  const [cost] = after.cost;
  const price = cost && {
    input: cost.input,
    output: cost.output,
    cache_read: cost.cache?.read ?? 0,
    cache_write: cost.cache?.write ?? 0,
  };
  if (price !== undefined) set("cost", (model) => model.cost, price);
  if (after.time.released > 0)
    set("release_date", (model) => model.time.released, new Date(after.time.released).toISOString().slice(0, 10));
  set("options", (model) => model.request.body);
  set("headers", (model) => model.request.headers);
  set("variants", (model) => model.variants, Object.fromEntries(after.variants.map(({ id, body }) => [id, body])));
  put(part, "provider", apiPart(before?.api, after.api));
  return part;
}

function skills(before: Lists, after: Lists, base: BaseConfig, patch: Patch): void {
  const known = isRecord(base.skills) ? texts(base.skills["paths"]) : [];
  const added: string[] = [];
  for (const source of after.skills.slice(before.skills.length)) {
    if (source.type === "directory" && typeof source.path === "string") added.push(source.path);
    else patch.lost.push(`a source of skills of the type ${String(source.type)}`);
  }
  if (added.length > 0) patch.config["skills"] = { paths: [...known, ...added] };
}

/** Adds a part of the configuration to another one. */
export function merge(into: Part, part: Part): Part {
  for (const [key, value] of Object.entries(part)) {
    const known = into[key];
    if (isRecord(known) && isRecord(value)) merge(known, value);
    else Object.defineProperty(into, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return into;
}

function modelText({ providerID, id }: ModelName): string {
  return `${providerID}/${id}`;
}

function missing<T>(before: T[], after: T[], nameOf: (entry: T) => string): T[] {
  const names = new Set(after.map(nameOf));
  return before.filter((entry) => !names.has(nameOf(entry)));
}

function changedKeys(before: Part | undefined, after: Part | undefined): Part {
  return Object.fromEntries(Object.entries(after ?? {}).filter(([key, value]) => !same(before?.[key], value)));
}

function put(into: Part, key: string, part: Part): void {
  if (Object.keys(part).length > 0) into[key] = part;
}

function defined(part: Part): Part {
  return Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined));
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function same(left: unknown, right: unknown): boolean {
  return left === right || JSON.stringify(left) === JSON.stringify(right);
}
