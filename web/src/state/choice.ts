// Which agent, model and variant answer the next prompt.
import { createSignal } from "solid-js";
import type { Agent, Model, Provider, Session } from "../api";
import type { Place } from "./place";
import { prefs, setPrefs, toFront, type ModelRef } from "./prefs";

/** Agents that a prompt can be sent to. */
export function primaryAgents(place: Place): Agent[] {
  return (place.agents() ?? []).filter((agent) => agent.mode !== "subagent" && !agent.hidden);
}

/** Choices for a session that are newer than its last prompt. */
const [chosen, setChosen] = createSignal<Record<string, { agent?: string; model?: ModelRef }>>({});

function key(place: Place, session: Session | undefined): string {
  return session?.id ?? place.directory;
}

export function currentAgent(place: Place, session?: Session): string | undefined {
  const agents = primaryAgents(place);
  const names = [chosen()[key(place, session)]?.agent, session?.agent, place.config()?.default_agent, prefs.agent];
  return names.find((name) => name && agents.some((agent) => agent.name === name)) ?? agents[0]?.name;
}

export function chooseAgent(place: Place, session: Session | undefined, agent: string): void {
  setChosen((all) => ({ ...all, [key(place, session)]: { ...all[key(place, session)], agent } }));
  if (!session) setPrefs("agent", agent);
}

export function findModel(place: Place, ref: ModelRef | null | undefined): { provider: Provider; model: Model } | undefined {
  if (!ref) return undefined;
  const provider = place.providers()?.providers.find((one) => one.id === ref.providerID);
  const model = provider?.models[ref.modelID];
  return provider && model ? { provider, model } : undefined;
}

export function parseModel(name: string | undefined): ModelRef | null {
  const at = name?.indexOf("/") ?? -1;
  return name && at > 0 ? { providerID: name.slice(0, at), modelID: name.slice(at + 1) } : null;
}

export function currentModel(place: Place, session?: Session): ModelRef | undefined {
  const agent = place.agents()?.find((one) => one.name === currentAgent(place, session));
  const providers = place.providers();
  const first = providers?.providers.find((provider) => Object.keys(provider.models).length > 0);
  const refs: (ModelRef | null | undefined)[] = [
    chosen()[key(place, session)]?.model,
    session?.model && { providerID: session.model.providerID, modelID: session.model.id },
    agent?.model,
    session ? null : prefs.model,
    parseModel(place.config()?.model),
    ...prefs.recent.map(parseModel),
    first && { providerID: first.id, modelID: providers?.default[first.id] ?? Object.keys(first.models)[0] ?? "" },
  ];
  const ref = refs.find((one) => findModel(place, one) !== undefined);
  return ref ? { providerID: ref.providerID, modelID: ref.modelID } : undefined;
}

export function chooseModel(place: Place, session: Session | undefined, model: ModelRef): void {
  setChosen((all) => ({ ...all, [key(place, session)]: { ...all[key(place, session)], model } }));
  if (!session) setPrefs("model", model);
  setPrefs("recent", toFront(prefs.recent, modelName(model), 8));
}

export function modelName(ref: ModelRef): string {
  return `${ref.providerID}/${ref.modelID}`;
}

export function variantsOf(place: Place, ref: ModelRef | undefined): string[] {
  return Object.keys(findModel(place, ref)?.model.variants ?? {});
}

export function currentVariant(place: Place, ref: ModelRef): string | undefined {
  const name = prefs.variants[modelName(ref)];
  return name && variantsOf(place, ref).includes(name) ? name : undefined;
}

export function chooseVariant(ref: ModelRef, variant: string | undefined): void {
  setPrefs("variants", modelName(ref), variant as string);
}
