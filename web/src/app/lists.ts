// The sessions as they are listed: grouped by what needs attention, then by day.
import { createMemo, createRoot, createSignal } from "solid-js";
import { isDeleting } from "../state/actions";
import { isBusy, rootOf, state, type KnownSession } from "../state/mirror";
import { prefs } from "../state/prefs";
import { dayGroup } from "../text/format";
import { t } from "../text";

export interface Group {
  id: "waiting" | "running" | "pinned" | "today" | "yesterday" | "thisWeek" | "earlier";
  title: string;
  sessions: KnownSession[];
}

const [redraws, setRedraws] = createSignal(0);
export const redraw = (): void => void setRedraws((count) => count + 1);

/** Returns the ids of the sessions that wait for the user, or whose subagents wait. */
export function waitingRoots(): Set<string> {
  return new Set([...state.permissions, ...state.questions].map((request) => rootOf(request.sessionID)));
}

/** Returns the ids of the sessions that run, or whose subagents run. */
export function runningRoots(): Set<string> {
  return new Set(Object.keys(state.statuses).filter(isBusy).map(rootOf));
}

const roots = createRoot(() =>
  createMemo((): KnownSession[] => {
    redraws();
    const found = Object.values(state.sessions).filter(
      (session) => !session.parentID && session.time.archived === undefined && !isDeleting(session.id),
    );
    // Each property of a stored object costs more than the comparison.
    return found
      .map((session) => ({ session, updated: session.time.updated }))
      .sort((a, b) => b.updated - a.updated)
      .map(({ session }) => session);
  }),
);
/** Returns the sessions without subagents and archived ones, newest first. */
export const rootSessions = (): KnownSession[] => roots();

export function groupSessions(sessions: KnownSession[]): Group[] {
  const [waiting, running, pinned] = [waitingRoots(), runningRoots(), new Set(prefs.pinned)];
  const titles = {
    waiting: t.waitsForYou,
    running: t.running,
    pinned: t.pinned,
    today: t.today,
    yesterday: t.yesterday,
    thisWeek: t.thisWeek,
    earlier: t.earlier,
  };
  const groups = (Object.keys(titles) as Group["id"][]).map((id) => ({
    id,
    title: titles[id],
    sessions: [] as KnownSession[],
  }));
  const now = Date.now();
  for (const session of sessions) {
    const id = waiting.has(session.id)
      ? "waiting"
      : running.has(session.id)
        ? "running"
        : pinned.has(session.id)
          ? "pinned"
          : dayGroup(session.time.updated, now);
    groups.find((group) => group.id === id)?.sessions.push(session);
  }
  return groups.filter((group) => group.sessions.length > 0);
}

/** Returns what a session waits for, in words. */
export function waitsFor(id: string): string {
  if (state.questions.some((request) => rootOf(request.sessionID) === id)) return t.waitsForAnswer;
  return state.permissions.some((request) => rootOf(request.sessionID) === id) ? t.waitsForPermission : "";
}

const all = createRoot(() => createMemo(() => groupSessions(rootSessions())));
/** Returns the groups of all sessions. */
export const groups = (): Group[] => all();
