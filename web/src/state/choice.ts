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

export function findModel(
  place: Place,
  ref: ModelRef | null | undefined,
): { provider: Provider; model: Model } | undefined {
  if (!ref) return undefined;
  const provider = place.providers()?.providers.find((one) => one.id === ref.providerID);
  const model = provider?.models[ref.modelID];
  return provider && model ? { provider, model } : undefined;
}

export function parseModel(name: string | undefined): ModelRef | null {
  const at = name?.indexOf("/") ?? -1;
  return name && at > 0 ? { providerID: name.slice(0, at), modelID: name.slice(at + 1) } : null;
}

/** The key of a provider that serves everybody. Its service receives prompts without a sign-in. */
const PUBLIC_KEY = "public";

/** Whether a provider can be used without a key, so that only an explicit choice may send it a prompt. */
export function isPublic(provider: Provider): boolean {
  return provider.options["apiKey"] === PUBLIC_KEY;
}

/** Whether a model can work as an agent: it calls tools and writes text. */
export function isAgentic(model: Model): boolean {
  return model.capabilities.toolcall && model.capabilities.output.text;
}

/** The models that the user chose, or that a session or the configuration names, the most specific first. */
function chosenModels(place: Place, session?: Session): (ModelRef | null | undefined)[] {
  const agent = place.agents()?.find((one) => one.name === currentAgent(place, session));
  /**
   * Stored models of a service for everybody count only if the user chose them, because earlier ones may have been
   * guessed.
   */
  const allowed = (ref: ModelRef | null) => {
    const provider = findModel(place, ref)?.provider;
    return ref && provider && (!isPublic(provider) || prefs.publicModels.includes(modelName(ref))) ? ref : null;
  };
  return [
    chosen()[key(place, session)]?.model,
    session?.model && { providerID: session.model.providerID, modelID: session.model.id },
    agent?.model,
    session ? null : allowed(prefs.model),
    parseModel(place.config()?.model),
    ...prefs.recent.map((name) => allowed(parseModel(name))),
  ];
}

/** The server's choice, which is the same for every client. It is null if the user has no key. */
function guess(place: Place): ModelRef | undefined {
  return place.providers()?.model ?? undefined;
}

export function currentModel(place: Place, session?: Session): ModelRef | undefined {
  const ref = [...chosenModels(place, session), guess(place)].find((one) => findModel(place, one) !== undefined);
  return ref ? { providerID: ref.providerID, modelID: ref.modelID } : undefined;
}

/** Whether the model was guessed, because nothing names one. */
export function isGuessed(place: Place, session?: Session): boolean {
  return (
    currentModel(place, session) !== undefined &&
    !chosenModels(place, session).some((one) => findModel(place, one) !== undefined)
  );
}

/** Whether the user, the session or the configuration named the model. */
export function isChosen(place: Place, session?: Session): boolean {
  return currentModel(place, session) !== undefined && !isGuessed(place, session);
}

/** Whether the server's models are known, and none of them may be used without a choice. */
export function needsChoice(place: Place, session?: Session): boolean {
  return place.providers() !== undefined && place.config() !== undefined && currentModel(place, session) === undefined;
}

export function chooseModel(place: Place, session: Session | undefined, model: ModelRef): void {
  setChosen((all) => ({ ...all, [key(place, session)]: { ...all[key(place, session)], model } }));
  if (!session) setPrefs("model", model);
  setPrefs("recent", toFront(prefs.recent, modelName(model), 8));
  const provider = findModel(place, model)?.provider;
  if (provider && isPublic(provider)) setPrefs("publicModels", toFront(prefs.publicModels, modelName(model), 8));
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
