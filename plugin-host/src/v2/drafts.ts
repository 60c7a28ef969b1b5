/**
 * The drafts that v2 plugins change: agents, commands, providers with their models, and directories of skills.
 *
 * A draft is a view of the lists that the server sent. Plugins change the lists in place, and `patch.ts` compares them
 * with a copy.
 */
import { isRecord } from "../plugins.js";

export interface ModelName {
  id: string;
  providerID: string;
  variant?: string;
}

interface Request {
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

export interface Rule {
  action: string;
  resource: string;
  effect: string;
}

export interface Agent {
  id: string;
  model?: ModelName;
  request: Request;
  system?: string;
  description?: string;
  mode: string;
  hidden: boolean;
  color?: string;
  steps?: number;
  permissions: Rule[];
}

export interface Command {
  name: string;
  template: string;
  description?: string;
  agent?: string;
  model?: ModelName;
  subtask?: boolean;
}

export interface Api {
  id?: string;
  type: string;
  package?: string;
  url?: string;
  settings?: Record<string, unknown>;
}

export interface Provider {
  id: string;
  name: string;
  disabled?: boolean;
  api: Api;
  request: Request;
}

export interface Model {
  id: string;
  providerID: string;
  family?: string;
  name: string;
  api: Api;
  capabilities: { tools: boolean; input: string[]; output: string[] };
  request: Request;
  variants: { id: string; headers: Record<string, string>; body: Record<string, unknown> }[];
  time: { released: number };
  cost: { input: number; output: number; cache?: { read?: number; write?: number } }[];
  status: string;
  enabled: boolean;
  limit: { context: number; input?: number; output: number };
}

export interface SkillSource {
  type: string;
  path?: string;
  [key: string]: unknown;
}

/** What the server has without the changes of v2 plugins. */
export interface Lists {
  agents: Agent[];
  defaultAgent?: string;
  commands: Command[];
  providers: Provider[];
  models: Model[];
  defaultModel?: { providerID: string; modelID: string };
  skills: SkillSource[];
}

const request = (): Request => ({ headers: {}, body: {} });

export function agentDraft(lists: Lists): unknown {
  return {
    ...entries(
      lists.agents,
      (agent) => agent.id,
      (id): Agent => ({ id, request: request(), mode: "all", hidden: false, permissions: [] }),
    ),
    default: (id: string | undefined) => {
      if (id === undefined) delete lists.defaultAgent;
      else lists.defaultAgent = text(id);
    },
  };
}

export function commandDraft(lists: Lists): unknown {
  return entries(
    lists.commands,
    (command) => command.name,
    (name): Command => ({ name, template: "" }),
  );
}

export function catalogDraft(lists: Lists): unknown {
  const native = (): Api => ({ type: "native", settings: {} });
  const providers = entries(
    lists.providers,
    (provider) => provider.id,
    (id): Provider => ({ id, name: id, api: native(), request: request() }),
  );
  const models = (providerID: string) =>
    entries(
      lists.models,
      (model) => (model.providerID === providerID ? model.id : undefined),
      (id): Model => ({
        id,
        providerID,
        name: id,
        api: { id, ...native() },
        capabilities: { tools: false, input: [], output: [] },
        request: request(),
        variants: [],
        time: { released: 0 },
        cost: [],
        status: "active",
        enabled: true,
        limit: { context: 0, output: 0 },
      }),
    );
  const record = (provider: Provider | undefined) =>
    provider && {
      provider,
      models: new Map(
        lists.models.filter((model) => model.providerID === provider.id).map((model) => [model.id, model]),
      ),
    };
  return {
    provider: {
      list: () => lists.providers.map(record),
      get: (id: string) => record(providers.get(id)),
      update: providers.update,
      remove: providers.remove,
    },
    model: {
      get: (provider: string, id: string) => models(provider).get(id),
      update: (provider: string, id: string, change: (model: Model) => void) => {
        providers.update(provider, () => {});
        models(text(provider)).update(id, change);
      },
      remove: (provider: string, id: string) => models(provider).remove(id),
      default: {
        get: () => lists.defaultModel,
        set: (providerID: string, modelID: string) => {
          lists.defaultModel = { providerID: text(providerID), modelID: text(modelID) };
        },
      },
    },
  };
}

export function skillDraft(lists: Lists): unknown {
  return {
    list: () => [...lists.skills],
    source: (source: SkillSource) => {
      if (isRecord(source)) lists.skills.push(source);
    },
  };
}

/** The functions of a list whose entries have a name. */
function entries<T>(list: T[], nameOf: (entry: T) => string | undefined, create: (name: string) => T) {
  const find = (name: string) => list.find((entry) => nameOf(entry) === name);
  return {
    list: () => list.filter((entry) => nameOf(entry) !== undefined),
    get: find,
    update: (name: string, change: (entry: T) => void) => {
      let entry = find(text(name));
      if (entry === undefined) {
        entry = create(name);
        list.push(entry);
      }
      change(entry);
    },
    remove: (name: string) => {
      const at = list.findIndex((entry) => nameOf(entry) === name);
      if (at >= 0) list.splice(at, 1);
    },
  };
}

function text(name: unknown): string {
  if (typeof name !== "string" || name === "") throw new TypeError("the name must be a text that is not empty");
  return name;
}
