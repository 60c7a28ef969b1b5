// What a user does with sessions.
import { call, type FilePartInput, type AgentPartInput, type Session, type TextPartInput } from "../api";
import { fail, toast } from "../ui/toast";
import { t } from "../text";
import { go, openSession, route } from "../app/router";
import { currentAgent, currentModel, currentVariant, isChosen } from "./choice";
import { childrenOf, isBusy, putSession, state, transcriptOf } from "./mirror";
import { placeOf } from "./place";
import { prefs, remember, setPrefs, toFront } from "./prefs";

export type PromptPart = TextPartInput | FilePartInput | AgentPartInput;

export interface Prompt {
  text: string;
  parts: PromptPart[];
  isShell: boolean;
}

/** The time in which a deletion can be undone. */
const DELETE_DELAY_MS = 6_000;

/** Runs an action and shows its failure. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    fail(error);
    return undefined;
  }
}

/** Returns the directory that the user works in. */
export function currentDirectory(): string {
  const now = route();
  if (now.name === "session") return state.sessions[now.id]?.directory ?? state.directory;
  if (now.name === "new" && now.directory) return now.directory;
  return prefs.directories[0] ?? state.directory;
}

export async function createSession(directory: string): Promise<Session> {
  const session = await call("POST /session", { query: { directory }, body: {} });
  putSession(session);
  setPrefs("directories", toFront(prefs.directories, directory, 24));
  return session;
}

/** Sends a prompt. A failure is thrown, so that the caller keeps what was typed. */
export async function sendPrompt(id: string, prompt: Prompt): Promise<void> {
  const session = state.sessions[id];
  const directory = session?.directory ?? state.directory;
  const place = placeOf(directory);
  const path = { sessionID: id };
  const query = { directory };
  const [agent, model] = [currentAgent(place, session), currentModel(place, session)];
  const variant = model ? currentVariant(place, model) : undefined;
  // The server refuses a service for everybody that nobody chose.
  const chosen = isChosen(place, session) ? { chosen: true } : {};
  remember(prompt.isShell ? `!${prompt.text}` : prompt.text);
  if (model) setPrefs("recent", toFront(prefs.recent, `${model.providerID}/${model.modelID}`, 8));
  if (prompt.isShell) {
    const body = { agent: agent ?? "build", command: prompt.text, ...(model ? { model } : {}) };
    // The reply waits for the command.
    void attempt(() => call("POST /session/{sessionID}/shell", { path, query, body, long: true }));
    return;
  }
  const command = await commandOf(directory, prompt.text);
  if (command) {
    const files = prompt.parts.filter((part): part is FilePartInput => part.type === "file");
    const body = {
      ...command,
      ...(agent ? { agent } : {}),
      ...(model ? { model: `${model.providerID}/${model.modelID}` } : {}),
      ...chosen,
      ...(variant ? { variant } : {}),
      ...(files.length > 0 ? { parts: files } : {}),
    };
    void attempt(() => call("POST /session/{sessionID}/command", { path, query, body, long: true }));
    return;
  }
  const body = {
    parts: prompt.parts,
    ...(agent ? { agent } : {}),
    ...(model ? { model } : {}),
    ...chosen,
    ...(variant ? { variant } : {}),
  };
  await call("POST /session/{sessionID}/prompt_async", { path, query, body });
}

/** Returns the server's command at the start of a text, with its arguments. */
async function commandOf(directory: string, text: string): Promise<{ command: string; arguments: string } | null> {
  const match = /^\/(\S+)\s*([\s\S]*)$/.exec(text.trim());
  if (!match?.[1]) return null;
  const known = (await placeOf(directory).commands.load())?.some((command) => command.name === match[1]);
  return known ? { command: match[1], arguments: match[2] ?? "" } : null;
}

export function abort(id: string): void {
  void attempt(() =>
    call("POST /session/{sessionID}/abort", { path: { sessionID: id }, query: { directory: directoryOf(id) } }),
  );
}

function directoryOf(id: string): string {
  return state.sessions[id]?.directory ?? state.directory;
}

export async function rename(id: string, title: string): Promise<void> {
  putSession(await call("PATCH /session/{sessionID}", { path: { sessionID: id }, body: { title } }));
}

/** Archives a session. Without a time it is restored. */
export function archive(id: string, archived: number | undefined): void {
  void attempt(async () => {
    putSession(
      await call("PATCH /session/{sessionID}", {
        path: { sessionID: id },
        body: { time: { archived: archived ?? 0 } },
      }),
    );
    if (archived !== undefined) leave(id);
  });
}

/** Opens another view if a session is open that disappears. */
function leave(id: string): void {
  const now = route();
  if (now.name === "session" && now.id === id) go({ name: "home" });
}

/** The sessions that are about to be deleted, with what deletes them. */
const deleting = new Map<string, () => void>();
addEventListener("pagehide", () => deleting.forEach((run) => run()));

export function isDeleting(id: string): boolean {
  return deleting.has(id);
}

/** Deletes a session after a delay in which the user can undo it. */
export function remove(id: string, redraw: () => void): void {
  const title = state.sessions[id]?.title || t.untitled;
  const run = () => {
    clearTimeout(timer);
    void attempt(() => call("DELETE /session/{sessionID}", { path: { sessionID: id } })).then(() => {
      deleting.delete(id);
      redraw();
    });
  };
  const timer = setTimeout(run, DELETE_DELAY_MS);
  deleting.set(id, run);
  redraw();
  leave(id);
  toast({
    text: t.deleted(title),
    action: {
      label: t.undo,
      run: () => {
        clearTimeout(timer);
        deleting.delete(id);
        redraw();
      },
    },
  });
}

export function togglePin(id: string): void {
  setPrefs("pinned", (all) => (all.includes(id) ? all.filter((one) => one !== id) : [...all, id]));
}

export function fork(id: string, messageID?: string): void {
  void attempt(async () => {
    const session = await call("POST /session/{sessionID}/fork", {
      path: { sessionID: id },
      body: messageID ? { messageID } : {},
    });
    putSession(session);
    openSession(session.id);
  });
}

export function compact(id: string): void {
  const model = currentModel(placeOf(directoryOf(id)), state.sessions[id]);
  if (!model) {
    toast({ text: t.noModel, kind: "bad" });
    return;
  }
  void attempt(() => call("POST /session/{sessionID}/summarize", { path: { sessionID: id }, body: model, long: true }));
}

/** Undoes a prompt and what followed. Running work is stopped first, because undo needs an idle session. */
export async function revert(id: string, messageID: string): Promise<boolean> {
  if (isBusy(id)) await attempt(() => call("POST /session/{sessionID}/abort", { path: { sessionID: id } }));
  const session = await attempt(() =>
    call("POST /session/{sessionID}/revert", { path: { sessionID: id }, body: { messageID }, long: true }),
  );
  if (session) putSession(session);
  return session !== undefined;
}

/** Redoes the next undone prompt, or all. */
export function redo(id: string, all: boolean): void {
  const at = state.sessions[id]?.revert?.messageID;
  if (!at) return;
  const transcript = transcriptOf(id);
  const prompts = transcript.order().filter((one) => transcript.message(one)?.info().role === "user");
  const next = all ? undefined : prompts[prompts.indexOf(at) + 1];
  if (next) {
    void revert(id, next);
    return;
  }
  void attempt(async () =>
    putSession(await call("POST /session/{sessionID}/unrevert", { path: { sessionID: id }, long: true })),
  );
}

/** Undoes the last prompt that is not undone. Returns its id. */
export async function undoLast(id: string): Promise<string | null> {
  const transcript = transcriptOf(id);
  const at = state.sessions[id]?.revert?.messageID;
  const order = transcript.order();
  const end = at ? order.indexOf(at) : order.length;
  const last = order
    .slice(0, end < 0 ? order.length : end)
    .findLast((one) => transcript.message(one)?.info().role === "user");
  if (!last) return null;
  return (await revert(id, last)) ? last : null;
}

export function unshare(id: string): void {
  void attempt(async () => putSession(await call("DELETE /session/{sessionID}/share", { path: { sessionID: id } })));
}

export function loadChildren(id: string): void {
  if (childrenOf(id).length > 0) return;
  void attempt(async () => {
    for (const session of await call("GET /session/{sessionID}/children", { path: { sessionID: id } }))
      putSession(session);
  });
}
