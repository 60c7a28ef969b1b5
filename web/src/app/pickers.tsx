// Pickers of models, variants, agents, sessions, skills and themes.
import { createMemo, createResource, createSignal, lazy, onCleanup, Suspense } from "solid-js";
import { call, type Model } from "../api";
import { currentDirectory, remove, togglePin } from "../state/actions";
import {
  chooseAgent,
  chooseModel,
  chooseVariant,
  currentAgent,
  currentModel,
  currentVariant,
  findModel,
  isAgentic,
  modelName,
  parseModel,
  primaryAgents,
  variantsOf,
} from "../state/choice";
import { putSession, state } from "../state/mirror";
import { placeOf } from "../state/place";
import { prefs, setPrefs } from "../state/prefs";
import { themeNames } from "../state/themes";
import { ago, baseName, count } from "../text/format";
import { t } from "../text";
import { Dialog } from "../ui/dialog";
import { Picker, type PickerItem } from "../ui/picker";
import { prose } from "../ui/text";
import { draftOf, focusPrompt } from "../views/session/draft";
import { openDialog } from "./dialogs";
import { redraw, rootSessions } from "./lists";
import { openSession, route } from "./router";
import { renameDialog } from "./session-menu";

/** Not needed for the first view. */
const Markdown = lazy(async () => ({ default: (await import("../ui/markdown")).Markdown }));

function here() {
  const now = route();
  const session = now.name === "session" ? state.sessions[now.id] : undefined;
  return { session, place: placeOf(session?.directory ?? currentDirectory()) };
}

/** The context and the price of a model, such as `200K · $3 / $15`. */
function modelFacts(model: Model): string | undefined {
  const { input, output } = model.cost;
  const price = input + output > 0 ? `$${input} / $${output}` : "";
  return [model.limit.context ? count(model.limit.context) : "", price].filter(Boolean).join(" · ") || undefined;
}

/** Opens the list of models, or of those of one provider. */
export function openModels(providerID?: string): void {
  const { session, place } = here();
  openDialog((dialog) => {
    const [showsAll, setShowsAll] = createSignal(false);
    const items = createMemo<PickerItem[]>(() => {
      const current = currentModel(place, session);
      const providers = (place.providers()?.providers ?? []).filter(
        (provider) => providerID === undefined || provider.id === providerID,
      );
      const all = providers
        .flatMap((provider) =>
          Object.entries(provider.models).map(([id, model]) => ({
            ref: { providerID: provider.id, modelID: id },
            provider,
            model,
          })),
        )
        .filter(({ model }) => showsAll() || isAgentic(model));
      const item = (entry: (typeof all)[number], group: string): PickerItem => ({
        id: modelName(entry.ref),
        label: prose(entry.model.name || entry.ref.modelID),
        detail: prose(entry.provider.name || entry.provider.id),
        group,
        words: modelName(entry.ref),
        badge: modelFacts(entry.model),
        current: current !== undefined && modelName(current) === modelName(entry.ref),
      });
      const named = (names: readonly string[]) =>
        names.flatMap((name) => all.filter((entry) => modelName(entry.ref) === name));
      const first = new Set([...prefs.favourites, ...prefs.recent]);
      return [
        ...named(prefs.favourites).map((entry) => item(entry, t.favourites)),
        ...named(prefs.recent.filter((name) => !prefs.favourites.includes(name))).map((entry) =>
          item(entry, t.recentModels),
        ),
        ...all
          .filter((entry) => !first.has(modelName(entry.ref)))
          .map((entry) => item(entry, prose(entry.provider.name || entry.provider.id))),
      ];
    });
    const pick = (picked: PickerItem) => {
      const ref = parseModel(picked.id);
      if (ref) chooseModel(place, session, ref);
      dialog.close();
      focusPrompt();
    };
    const favour = (picked: PickerItem) =>
      setPrefs("favourites", (all) =>
        all.includes(picked.id) ? all.filter((one) => one !== picked.id) : [...all, picked.id],
      );
    return (
      <Picker
        title={t.chooseModel}
        items={items()}
        onPick={pick}
        onClose={dialog.close}
        loading={place.providers() === undefined}
        empty={`${t.noModel}. ${t.noModelHint}`}
        actions={[
          { key: "f", label: t.favourite, run: favour },
          { key: "a", label: showsAll() ? t.onlyAgents : t.allModels, run: () => setShowsAll(!showsAll()) },
        ]}
      />
    );
  });
}

export function openVariants(): void {
  const { session, place } = here();
  const model = currentModel(place, session);
  if (!model) return;
  openDialog((dialog) => {
    const current = currentVariant(place, model);
    const items = ["", ...variantsOf(place, model)].map((name) => ({
      id: name,
      label: name || t.defaultVariant,
      current: (current ?? "") === name,
    }));
    const pick = (item: PickerItem) => {
      chooseVariant(model, item.id || undefined);
      dialog.close();
      focusPrompt();
    };
    return (
      <Picker
        title={`${t.chooseVariant}: ${findModel(place, model)?.model.name ?? model.modelID}`}
        items={items}
        onPick={pick}
        onClose={dialog.close}
      />
    );
  });
}

export function openAgents(): void {
  const { session, place } = here();
  openDialog((dialog) => {
    const items = () =>
      primaryAgents(place).map((agent) => ({
        id: agent.name,
        label: prose(agent.name),
        detail: prose(agent.description ?? ""),
        current: currentAgent(place, session) === agent.name,
      }));
    const pick = (item: PickerItem) => {
      chooseAgent(place, session, item.id);
      dialog.close();
      focusPrompt();
    };
    return (
      <Picker
        title={t.chooseAgent}
        items={items()}
        onPick={pick}
        onClose={dialog.close}
        loading={place.agents() === undefined}
      />
    );
  });
}

/** Chooses the next agent or the one before. */
export function cycleAgent(by: number): void {
  const { session, place } = here();
  const agents = primaryAgents(place);
  const at = agents.findIndex((agent) => agent.name === currentAgent(place, session));
  const next = agents.at((at + by) % agents.length);
  if (next) chooseAgent(place, session, next.name);
}

export function openSessions(): void {
  openDialog((dialog) => {
    const [query, setQuery] = createSignal("");
    let timer = 0;
    const search = (text: string) => {
      clearTimeout(timer);
      timer = window.setTimeout(() => setQuery(text.trim()), 120);
    };
    onCleanup(() => clearTimeout(timer));
    const [found] = createResource(query, async (text) =>
      text ? call("GET /experimental/session", { query: { roots: "true", search: text, limit: 60 } }) : [],
    );
    const items = createMemo<PickerItem[]>(() => {
      const sessions = query() ? (found.latest ?? []) : rootSessions();
      return sessions.map((session) => ({
        id: session.id,
        label: prose(session.title) || t.untitled,
        detail: baseName(session.directory),
        badge: ago(session.time.updated),
        icon: prefs.pinned.includes(session.id) ? "pin" : undefined,
      }));
    });
    const pick = (item: PickerItem) => {
      const session = found.latest?.find((one) => one.id === item.id);
      if (session && !state.sessions[session.id]) putSession(session as never);
      dialog.close();
      openSession(item.id);
    };
    return (
      <Picker
        title={t.searchSessions}
        items={items()}
        onPick={pick}
        onClose={dialog.close}
        onQuery={search}
        loading={found.loading}
        actions={[
          { key: "f", label: t.pin, run: (item) => togglePin(item.id) },
          { key: "r", label: t.rename, run: (item) => renameDialog(item.id) },
          { key: "d", label: t.delete, run: (item) => remove(item.id, redraw) },
        ]}
      />
    );
  });
}

export function openSkills(): void {
  const { session, place } = here();
  openDialog((dialog) => {
    const [skills] = createResource(() => call("GET /skill", { query: { directory: place.directory } }));
    const items = () =>
      (skills.latest ?? []).map((skill) => ({
        id: skill.name,
        label: prose(skill.name),
        detail: prose(skill.description ?? ""),
      }));
    const show = (item: PickerItem) => {
      const skill = skills.latest?.find((one) => one.name === item.id);
      openDialog((inner) => (
        <Dialog wide title={item.label} onClose={inner.close}>
          <Suspense>
            <Markdown text={skill?.content ?? ""} />
          </Suspense>
        </Dialog>
      ));
    };
    const pick = (item: PickerItem) => {
      dialog.close();
      draftOf(session?.id ?? "new").setText(`/${item.id} `);
      focusPrompt();
    };
    return (
      <Picker
        title="Skills"
        items={items()}
        onPick={pick}
        onClose={dialog.close}
        loading={skills.loading}
        actions={[{ key: "e", label: t.showOutput, run: show }]}
      />
    );
  });
}

export function openThemes(): void {
  const before = prefs.theme;
  openDialog((dialog) => {
    let picked = false;
    onCleanup(() => {
      if (!picked) setPrefs("theme", before);
    });
    const items = themeNames().map((name) => ({ id: name, label: name, current: name === before }));
    return (
      <Picker
        title={t.theme}
        items={items}
        onClose={dialog.close}
        onSelect={(item) => item && setPrefs("theme", item.id)}
        onPick={(item) => {
          picked = true;
          setPrefs("theme", item.id);
          dialog.close();
        }}
      />
    );
  });
}
