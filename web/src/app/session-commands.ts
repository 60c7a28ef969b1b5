// The commands that concern a session.
import {
  abort,
  attempt,
  compact,
  currentDirectory,
  redo,
  remove,
  togglePin,
  undoLast,
  unshare,
} from "../state/actions";
import { exportSession } from "../state/export";
import { isBusy, rootOf, state, transcriptOf } from "../state/mirror";
import { placeOf } from "../state/place";
import { t } from "../text";
import { copy } from "../ui/code";
import { draftOf, focusPrompt } from "../views/session/draft";
import { hasSession, openId, withSession, type Command } from "./command";
import { openDirectoryDialog } from "./directory";
import { redraw } from "./lists";
import { openSessions } from "./pickers";
import { go, openSession } from "./router";
import { renameDialog } from "./session-menu";

/** Opens a dialog over the prompts of a session, whose code is loaded with the view of sessions. */
const withPrompts = (open: (dialogs: typeof import("../views/session/timeline"), id: string) => void) =>
  withSession((id) => void attempt(async () => open(await import("../views/session/timeline"), id)));
/** Whether the session is a review with an answer. */
function hasFindings(id: string): boolean {
  if (!id) return false;
  const transcript = transcriptOf(id);
  return transcript.order().some((one) => {
    const info = transcript.message(one)?.info();
    return (
      info?.role === "assistant" &&
      typeof info.structured === "object" &&
      info.structured !== null &&
      "findings" in info.structured
    );
  });
}
/** In the field of the search itself, the same key opens the browser's own search. */
const canSearch = () => hasSession() && document.activeElement?.id !== "session-search";

async function undo(id: string): Promise<void> {
  const undone = await undoLast(id);
  const message = undone ? transcriptOf(id).message(undone) : undefined;
  const text = message
    ?.parts()
    .map((part) => part.part())
    .flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
    .join("\n");
  // The text comes back, so that it can be changed and sent again.
  if (text && !draftOf(id).text()) draftOf(id).setText(text);
  focusPrompt();
}

async function copyLast(id: string): Promise<void> {
  const transcript = transcriptOf(id);
  for (const message of transcript
    .order()
    .map((one) => transcript.message(one))
    .reverse()) {
    if (message?.info().role !== "assistant") continue;
    const text = message
      .parts()
      .map((part) => part.part())
      .flatMap((part) => (part.type === "text" ? [part.text] : []))
      .join("\n\n");
    if (text) {
      await copy(text);
      return;
    }
  }
}

export const SESSION_COMMANDS: Command[] = [
  {
    id: "session.new",
    label: t.newSession,
    group: "session",
    keys: "Ctrl Alt N",
    icon: "add",
    slash: ["new", "clear"],
    run: () => go({ name: "new", directory: currentDirectory() }),
  },
  {
    id: "session.list",
    label: t.sessions,
    group: "session",
    keys: "Ctrl Alt L",
    icon: "list",
    slash: ["sessions", "resume", "continue"],
    run: () => openSessions(),
  },
  {
    id: "session.directory",
    label: t.openDirectory,
    group: "session",
    icon: "folder",
    run: () => openDirectoryDialog(),
  },
  {
    id: "session.rename",
    label: t.renameSession,
    group: "session",
    icon: "edit",
    slash: ["rename"],
    when: hasSession,
    run: withSession(renameDialog),
  },
  {
    id: "session.timeline",
    label: t.timeline,
    group: "session",
    keys: "Ctrl Alt G",
    icon: "clock",
    slash: ["timeline"],
    when: hasSession,
    run: withPrompts((dialogs, id) => dialogs.openTimeline(id)),
  },
  {
    id: "session.fork",
    label: t.forkSession,
    group: "session",
    icon: "fork",
    slash: ["fork"],
    when: hasSession,
    run: withPrompts((dialogs, id) => dialogs.openForks(id)),
  },
  {
    id: "session.undo",
    label: t.undo,
    group: "session",
    keys: "Ctrl Alt U",
    icon: "undo",
    slash: ["undo"],
    when: hasSession,
    run: withSession((id) => void undo(id)),
  },
  {
    id: "session.undo.to",
    label: t.undoPrompt,
    group: "session",
    icon: "undo",
    when: hasSession,
    run: withPrompts((dialogs, id) => dialogs.openUndo(id)),
  },
  {
    id: "session.redo",
    label: t.redo,
    group: "session",
    keys: "Ctrl Alt R",
    icon: "redo",
    slash: ["redo"],
    when: () => Boolean(state.sessions[openId() ?? ""]?.revert),
    run: withSession((id) => redo(id, false)),
  },
  {
    id: "session.compact",
    label: t.compact,
    group: "session",
    icon: "spark",
    slash: ["compact", "summarize"],
    when: hasSession,
    run: withSession(compact),
  },
  {
    id: "session.copy",
    label: t.copyLast,
    group: "session",
    keys: "Ctrl Alt Y",
    icon: "copy",
    slash: ["copy"],
    when: hasSession,
    run: withSession((id) => void copyLast(id)),
  },
  {
    id: "session.export",
    label: t.exportSession,
    group: "session",
    icon: "download",
    slash: ["export"],
    when: hasSession,
    run: withSession((id) => void attempt(() => exportSession(id, "markdown"))),
  },
  {
    id: "session.export.json",
    label: t.exportJson,
    group: "session",
    icon: "download",
    when: hasSession,
    run: withSession((id) => void attempt(() => exportSession(id, "json"))),
  },
  {
    id: "session.unshare",
    label: t.unshare,
    group: "session",
    icon: "globe",
    slash: ["unshare"],
    when: () => Boolean(state.sessions[openId() ?? ""]?.share),
    run: withSession(unshare),
  },
  {
    id: "session.move",
    label: t.moveSession,
    group: "session",
    icon: "folder",
    slash: ["move"],
    when: hasSession,
    run: withPrompts((dialogs, id) => dialogs.openMove(id)),
  },
  {
    id: "session.search",
    label: t.searchSession,
    group: "session",
    keys: "Ctrl F",
    icon: "search",
    slash: ["search", "find"],
    when: canSearch,
    run: () => void attempt(async () => (await import("../views/session/search")).openSearch()),
  },
  {
    id: "session.review",
    label: t.reviewChanges,
    group: "session",
    icon: "search",
    slash: ["review"],
    when: () => placeOf(currentDirectory()).canReview(),
    run: () =>
      void attempt(async () => (await import("../views/session/findings")).startReview(currentDirectory(), "")),
  },
  {
    id: "session.findings",
    label: t.findings,
    group: "session",
    icon: "list",
    slash: ["findings"],
    when: () => hasFindings(openId() ?? ""),
    run: withSession((id) => void attempt(async () => (await import("../views/session/findings")).openFindings(id))),
  },
  {
    id: "session.pin",
    label: `${t.pin} / ${t.unpin}`,
    group: "session",
    icon: "pin",
    when: hasSession,
    run: withSession(togglePin),
  },
  {
    id: "session.delete",
    label: t.deleteSession,
    group: "session",
    icon: "trash",
    when: hasSession,
    run: withSession((id) => remove(id, redraw)),
  },
  {
    id: "session.interrupt",
    label: t.stop,
    group: "session",
    keys: "Esc Esc",
    icon: "stop",
    when: () => isBusy(openId() ?? ""),
    run: withSession(abort),
  },
  {
    id: "request.focus",
    label: t.focusRequest,
    group: "session",
    keys: "Ctrl Alt P",
    icon: "shield",
    when: () => document.querySelector(".request") !== null,
    run: () => document.querySelector<HTMLElement>(".request")?.focus(),
  },
  {
    id: "session.parent",
    label: t.parentSession,
    group: "session",
    icon: "back",
    when: () => Boolean(state.sessions[openId() ?? ""]?.parentID),
    run: withSession((id) => openSession(state.sessions[id]?.parentID ?? rootOf(id))),
  },
];
