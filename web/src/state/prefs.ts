// The user's choices and drafts in this browser. Without storage they last as long as the page.
import { createSignal } from "solid-js";
import { createStore, type SetStoreFunction } from "solid-js/store";

export interface ModelRef {
  providerID: string;
  modelID: string;
}

export interface Prefs {
  theme: string;
  scheme: "system" | "light" | "dark";
  /** Imported theme files, by name. */
  themes: Record<string, unknown>;
  textSize: number;
  split: boolean;
  thinking: boolean;
  outputs: boolean;
  times: boolean;
  notify: boolean;
  enterSends: boolean;
  sidebar: boolean;
  panelWidth: number;
  pinned: string[];
  favourites: string[];
  recent: string[];
  /** The models of services for everybody that the user chose. */
  publicModels: string[];
  /** The variant of each model. */
  variants: Record<string, string>;
  /** The chosen model and agent, by agent and by directory. */
  model: ModelRef | null;
  agent: string;
  directories: string[];
  /** The editor of this machine: a name of `EDITORS`, or an address with `{path}` and `{line}`. */
  editor: string;
  history: string[];
}

const STORE = "codewright.prefs";
const DRAFTS = "codewright.draft.";
const MAX_HISTORY = 200;
const MAX_DRAFT = 200_000;

const DEFAULTS: Prefs = {
  theme: "codewright",
  scheme: "system",
  themes: {},
  textSize: 100,
  split: false,
  thinking: false,
  outputs: false,
  times: false,
  notify: false,
  enterSends: true,
  sidebar: true,
  panelWidth: 440,
  pinned: [],
  favourites: [],
  recent: [],
  publicModels: [],
  variants: {},
  model: null,
  agent: "",
  directories: [],
  editor: "",
  history: [],
};

function read(): Prefs {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORE) ?? "null");
    if (stored === null || typeof stored !== "object") return { ...DEFAULTS };
    // A value of another version may have another type.
    const known = Object.entries(stored).filter(([name, value]) => {
      const expected: unknown = (DEFAULTS as unknown as Record<string, unknown>)[name];
      return (
        expected === null || (typeof value === typeof expected && Array.isArray(value) === Array.isArray(expected))
      );
    });
    return { ...DEFAULTS, ...Object.fromEntries(known) } as Prefs;
  } catch {
    return { ...DEFAULTS };
  }
}

const [store, set] = createStore<Prefs>(read());
export const prefs = store;

let saving = 0;
/** Changes a choice, and stores it. */
export const setPrefs: SetStoreFunction<Prefs> = ((...change: unknown[]) => {
  (set as (...change: unknown[]) => void)(...change);
  clearTimeout(saving);
  saving = window.setTimeout(save, 150);
}) as SetStoreFunction<Prefs>;

/** Whether the browser stores nothing. */
const [isVolatile, setVolatile] = createSignal(false);
export { isVolatile };

function save(): void {
  try {
    localStorage.setItem(STORE, JSON.stringify(store));
  } catch {
    setVolatile(true);
  }
}

addEventListener("pagehide", save);
addEventListener("storage", (event) => {
  // Another tab changed a choice.
  if (event.key === STORE) set(read());
});

/** Adds a prompt to the history. */
export function remember(text: string): void {
  const trimmed = text.trim();
  if (!trimmed || trimmed.length > MAX_DRAFT) return;
  setPrefs("history", (all) => [...all.filter((one) => one !== trimmed), trimmed].slice(-MAX_HISTORY));
}

const drafts = new Map<string, string>();

/** Returns the text that was typed for a session and not sent. */
export function draft(id: string): string {
  try {
    return localStorage.getItem(DRAFTS + id) ?? drafts.get(id) ?? "";
  } catch {
    return drafts.get(id) ?? "";
  }
}

/** Keeps the text that is typed for a session. */
export function setDraft(id: string, text: string): void {
  if (text) drafts.set(id, text);
  else drafts.delete(id);
  try {
    if (text && text.length <= MAX_DRAFT) localStorage.setItem(DRAFTS + id, text);
    else localStorage.removeItem(DRAFTS + id);
  } catch {
    setVolatile(true);
  }
}

/** Moves a value to the front of a list, or adds it. */
export function toFront(list: readonly string[], value: string, max = 12): string[] {
  return [value, ...list.filter((one) => one !== value)].slice(0, max);
}
