// A copy of the server's sessions, requests and projects, kept up to date by events.
import { batch, createSignal } from "solid-js";
import { createStore, produce, reconcile } from "solid-js/store";
import {
  call,
  callWithHeaders,
  type Event,
  type GlobalSession,
  type PermissionRequest,
  type Project,
  type QuestionRequest,
  type Session,
  type SessionStatus,
  type Todo,
} from "../api";
import { FIRST, PAGE } from "../api/first";
import { forgetSignIn } from "../api/server";
import { follow, type StreamState } from "../api/stream";
import { afterFirstView, idle } from "../ui/idle";
import { fail, toast } from "../ui/toast";
import { t } from "../text";
import { EventQueue } from "./event-queue";
import { placeOf } from "./place";
import { lookForUpdate } from "./version";
import { Transcript, type TranscriptEvent } from "./transcript";

/** Transcripts that stay loaded. */
const MAX_TRANSCRIPTS = 8;
const MAX_LINEAGE = 32;

export type KnownSession = Session & Partial<Pick<GlobalSession, "access" | "project">>;

interface State {
  connection: StreamState;
  /** Whether the lists have been loaded once. */
  ready: boolean;
  error: string;
  sessions: Record<string, KnownSession>;
  statuses: Record<string, SessionStatus>;
  permissions: PermissionRequest[];
  questions: QuestionRequest[];
  todos: Record<string, Todo[]>;
  projects: Project[];
  /** The directory of the server. */
  directory: string;
  home: string;
  /** Whether older sessions exist that are not loaded. */
  hasMore: boolean;
}

const [state, set] = createStore<State>({
  connection: "connecting",
  ready: false,
  error: "",
  sessions: {},
  statuses: {},
  permissions: [],
  questions: [],
  todos: {},
  projects: [],
  directory: "",
  home: "",
  hasMore: false,
});
export { state };

const [attempt, setAttempt] = createSignal(0);
export { attempt };

const transcripts = new Map<string, Transcript>();
let cursor: number | null = null;

/** Returns the transcript of a session, and loads it if it is not loaded. */
export function transcriptOf(id: string): Transcript {
  const known = transcripts.get(id);
  if (known) {
    // The most recently opened one is the last.
    transcripts.delete(id);
    transcripts.set(id, known);
    return known;
  }
  const made = new Transcript(id);
  transcripts.set(id, made);
  if (transcripts.size > MAX_TRANSCRIPTS) transcripts.delete(transcripts.keys().next().value ?? "");
  void made.refresh();
  return made;
}

/** Listeners of events that are not part of the mirror. */
type Listener = (event: Event, directory: string | undefined) => void;
const listeners = new Set<Listener>();
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// Sessions

export function putSession(session: KnownSession): void {
  // Only the list of all directories has the project.
  const project = session.project ?? state.sessions[session.id]?.project;
  set("sessions", session.id, reconcile(project ? { ...session, project } : session));
}

/** Returns a session, and fetches it if it is not known. */
export async function fetchSession(id: string): Promise<Session | null> {
  const known = state.sessions[id];
  if (known) return known;
  try {
    const session = await call("GET /session/{sessionID}", { path: { sessionID: id } });
    putSession(session);
    return session;
  } catch {
    return null;
  }
}

/** Returns a session and those above it, the nearest first. */
export function lineage(id: string): string[] {
  const ids: string[] = [];
  for (
    let at: string | undefined = id;
    at && ids.length < MAX_LINEAGE && !ids.includes(at);
    at = state.sessions[at]?.parentID
  )
    ids.push(at);
  return ids;
}

/** Returns the session that began a chain of subagents. */
export function rootOf(id: string): string {
  return lineage(id).at(-1) ?? id;
}

export function childrenOf(id: string): Session[] {
  return Object.values(state.sessions)
    .filter((session) => session.parentID === id)
    .sort((a, b) => a.time.created - b.time.created);
}

export function isBusy(id: string): boolean {
  const status = state.statuses[id];
  return status !== undefined && status.type !== "idle";
}

/** What a session or one of its subagents waits for. */
export function waiting(id: string): { permissions: PermissionRequest[]; questions: QuestionRequest[] } {
  const isBelow = (other: string) => other === id || lineage(other).includes(id);
  return {
    permissions: state.permissions.filter((request) => isBelow(request.sessionID)),
    questions: state.questions.filter((request) => isBelow(request.sessionID)),
  };
}

async function loadLists(listed?: () => void): Promise<void> {
  const [list, projects, place, active] = await Promise.all([
    callWithHeaders("GET /experimental/session", { query: FIRST["GET /experimental/session"] }),
    call("GET /project"),
    call("GET /path"),
    // A server of another version may not have it. Then only the sessions of its directory are known to run.
    call("GET /api/session/active").catch(() => ({ data: {} })),
  ]);
  cursor = Number(list.headers.get("x-next-cursor")) || null;
  batch(() => {
    // Rows of sessions that did not change stay.
    const fresh = list.reply.filter((session) => !state.sessions[session.id]);
    for (const session of list.reply)
      if (state.sessions[session.id]) set("sessions", session.id, reconcile(session as KnownSession));
    set(
      "sessions",
      produce((sessions) => {
        for (const session of fresh) sessions[session.id] = session as KnownSession;
      }),
    );
    set({ projects, directory: place.directory, home: place.home, hasMore: cursor !== null, ready: true, error: "" });
  });
  listed?.();
  await new Promise<void>(afterFirstView);
  await loadActive(Object.keys(active.data as Record<string, unknown>));
}

/** Loads what running sessions do and wait for, in their directories. */
async function loadActive(ids: string[]): Promise<void> {
  const running = await Promise.all(ids.map(fetchSession));
  const directories = new Set(running.flatMap((session) => (session ? [session.directory] : [])));
  directories.add(state.directory);
  const replies = await Promise.all(
    [...directories].map((directory) =>
      Promise.all([
        call("GET /session/status", { query: { directory } }),
        call("GET /permission", { query: { directory } }),
        call("GET /question", { query: { directory } }),
      ]),
    ),
  );
  const requests = replies.flatMap(([, permissions, questions]) => [...permissions, ...questions]);
  await Promise.all(requests.map(({ sessionID }) => fetchLineage(sessionID)));
  batch(() => {
    set("statuses", reconcile(Object.assign({}, ...replies.map(([statuses]) => statuses)) as State["statuses"]));
    set("permissions", reconcile(replies.flatMap(([, permissions]) => permissions)));
    set("questions", reconcile(replies.flatMap(([, , questions]) => questions)));
  });
}

/** Fetches a session and those above it, so that its requests are displayed where the chain began. */
async function fetchLineage(id: string): Promise<void> {
  let at: string | undefined = id;
  for (let steps = 0; at && steps < MAX_LINEAGE; steps += 1) at = (await fetchSession(at))?.parentID;
}

/** Loads the next older sessions of the list. */
export async function loadMoreSessions(): Promise<void> {
  if (cursor === null) return;
  const before = cursor;
  cursor = null;
  try {
    const { reply, headers } = await callWithHeaders("GET /experimental/session", {
      query: { roots: "true", limit: PAGE, cursor: before },
    });
    cursor = Number(headers.get("x-next-cursor")) || null;
    batch(() => {
      set(
        "sessions",
        produce((sessions) => {
          for (const session of reply) sessions[session.id] ??= session as KnownSession;
        }),
      );
      set("hasMore", cursor !== null);
    });
  } catch (error) {
    cursor = before;
    fail(error);
  }
}

export function setTodos(id: string, todos: Todo[]): void {
  set("todos", id, reconcile(todos));
}

/** Loads the sessions that fit a search. */
export async function searchSessions(search: string): Promise<void> {
  try {
    const found = await call("GET /experimental/session", { query: { roots: "true", limit: PAGE, search } });
    batch(() => found.forEach((session) => putSession(session as KnownSession)));
  } catch (error) {
    fail(error);
  }
}

// Events

const isMessageEvent = (event: Event): event is TranscriptEvent => event.type.startsWith("message.");

function apply(event: Event, directory: string | undefined): void {
  if (isMessageEvent(event)) {
    transcripts.get(event.properties.sessionID)?.apply(event);
    return;
  }
  switch (event.type) {
    case "session.created":
    case "session.updated":
      putSession(event.properties.info);
      break;
    case "session.deleted":
      forget(event.properties.sessionID);
      break;
    case "session.status":
      set("statuses", event.properties.sessionID, reconcile(event.properties.status));
      break;
    case "session.idle":
      set("statuses", event.properties.sessionID, reconcile({ type: "idle" }));
      break;
    case "todo.updated":
      set("todos", event.properties.sessionID, reconcile(event.properties.todos));
      break;
    case "permission.asked": {
      const request = event.properties;
      set("permissions", (all) => [...all.filter((one) => one.id !== request.id), request]);
      void fetchLineage(request.sessionID);
      break;
    }
    case "permission.replied":
      set("permissions", (all) => all.filter((one) => one.id !== event.properties.requestID));
      break;
    case "question.asked": {
      const request = event.properties;
      set("questions", (all) => [...all.filter((one) => one.id !== request.id), request]);
      void fetchLineage(request.sessionID);
      break;
    }
    case "question.replied":
    case "question.rejected":
      set("questions", (all) => all.filter((one) => one.id !== event.properties.requestID));
      break;
    case "project.updated": {
      const project = event.properties;
      set("projects", (all) => [project, ...all.filter((one) => one.id !== project.id)]);
      break;
    }
    case "tui.toast.show":
      toast({ text: event.properties.message, kind: event.properties.variant === "error" ? "bad" : "good" });
      break;
    default:
      break;
  }
  placeOf.event(event, directory);
  for (const listener of listeners) listener(event, directory);
}

function forget(id: string): void {
  set(
    produce((all) => {
      delete all.sessions[id];
      delete all.statuses[id];
      delete all.todos[id];
    }),
  );
  set("permissions", (all) => all.filter((one) => one.sessionID !== id));
  set("questions", (all) => all.filter((one) => one.sessionID !== id));
  transcripts.delete(id);
}

const queue = new EventQueue(apply);

/** Returns whether an event changes nothing here, before it is parsed. */
function isIgnored(data: string): boolean {
  const head = data.slice(0, 600);
  if (head.includes('"type":"sync"')) return true;
  if (!head.includes('"type":"message.')) return false;
  const session = /"sessionID":"(ses_\w+)"/.exec(head)?.[1];
  return session !== undefined && !transcripts.has(session);
}

/**
 * Fetches the lists again, and what else was requested before a time. Events that arrive meanwhile are applied to the
 * result.
 */
async function refresh(before: number, listed?: () => void): Promise<void> {
  queue.hold();
  try {
    await loadLists(listed);
  } catch (error) {
    set("error", error instanceof Error ? error.message : String(error));
  } finally {
    listed?.();
    queue.release();
  }
  for (const transcript of transcripts.values()) if (transcript.requested < before) void transcript.refresh();
  placeOf.refreshAll(before);
}

let ending: AbortController | null = null;

/** Follows the server's events. Called again after a sign-in. Returns when the lists are there, or cannot be loaded. */
export function connect(): Promise<void> {
  ending?.abort();
  ending = new AbortController();
  let wasLost = false;
  // For a quick first view. The lists are fetched again after it, because the stream opens later.
  let listed = () => {};
  const listing = new Promise<void>((resolve) => (listed = resolve));
  let first: Promise<void> | null = state.ready ? null : refresh(0, listed);
  if (!first) listed();
  const { signal } = ending;
  afterFirstView(
    () =>
      void follow(
        {
          onEvent: (event) => queue.push(event),
          isIgnored,
          onState: (connection, attempt) => {
            if (connection === "open") {
              if (wasLost) {
                toast({ text: t.connectedAgain, kind: "good" });
                void lookForUpdate();
              }
              wasLost = false;
              const opened = performance.now();
              void (first?.then(idle) ?? Promise.resolve()).then(() => refresh(opened));
              first = null;
            }
            if (connection === "lost" && state.ready && attempt > 0) wasLost = true;
            setAttempt(attempt);
            set("connection", connection);
          },
        },
        signal,
      ),
  );
  return listing;
}

/** Stops following the events, because the server wants a password or does not know the sign-in any more. */
export function refuse(): void {
  ending?.abort();
  forgetSignIn();
  set("connection", "refused");
}
