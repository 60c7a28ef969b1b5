// The table of commands: what the palette, the shortcuts page, keys and slash commands have in common.
import { abort, compact, currentDirectory, redo, remove, togglePin, undoLast, unshare } from "../state/actions";
import { exportSession } from "../state/export";
import { attempt } from "../state/actions";
import { isBusy, rootOf, state, transcriptOf } from "../state/mirror";
import { placeOf } from "../state/place";
import { prefs, setPrefs } from "../state/prefs";
import { copy } from "../ui/code";
import { t } from "../text";
import type { IconName } from "../ui/icon";
import { openAgents, openModels, openSessions, openSkills, openThemes, openVariants } from "./pickers";
import { openDirectoryDialog } from "./directory";
import { openInEditor } from "./editor";
import { openPalette } from "./palette";
import { isSignedIn, signOut } from "../api/server";
import { go, openSession, route, showPanel, type Panel } from "./router";
import { redraw } from "./lists";
import { renameDialog } from "./session-menu";
import { openTrust } from "../views/trust/trust";
import { draftOf, focusPrompt } from "../views/session/draft";

export interface Command {
  id: string;
  label: string;
  group: "session" | "view" | "agent" | "system";
  keys?: string;
  icon?: IconName;
  slash?: string[];
  /** Whether the command applies now. */
  when?: () => boolean;
  run: () => void;
}

/** The open session, if there is one. */
export function openId(): string | null {
  const now = route();
  return now.name === "session" ? now.id : null;
}

const withSession = (run: (id: string) => void) => () => {
  const id = openId();
  if (id) run(id);
};
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
const hasSession = () => openId() !== null;
/** In the field of the search itself, the same key opens the browser's own search. */
const canSearch = () => hasSession() && document.activeElement?.id !== "session-search";
const panel = (name: Panel) => () => {
  const now = route();
  showPanel(now.name === "session" && now.panel === name ? null : name);
};

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

/** Signs out, and loads the page again, so that nothing of the user stays in its memory. */
export async function leave(): Promise<void> {
  await attempt(signOut);
  location.replace(location.pathname + location.search);
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

export const COMMANDS: Command[] = [
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
  {
    id: "view.changes",
    label: t.changes,
    group: "view",
    keys: "Ctrl Alt D",
    icon: "diff",
    slash: ["diff"],
    when: hasSession,
    run: panel("changes"),
  },
  {
    id: "view.files",
    label: t.files,
    group: "view",
    keys: "Ctrl Alt F",
    icon: "file",
    when: hasSession,
    run: panel("files"),
  },
  {
    id: "view.editor",
    label: t.openDirectoryInEditor,
    group: "view",
    icon: "external",
    slash: ["editor"],
    run: () => openInEditor(currentDirectory(), ""),
  },
  {
    id: "view.terminal",
    label: t.terminal,
    group: "view",
    keys: "Ctrl Alt T",
    icon: "terminal",
    when: hasSession,
    run: panel("terminal"),
  },
  { id: "view.tasks", label: t.tasks, group: "view", icon: "list", when: hasSession, run: panel("tasks") },
  {
    id: "view.status",
    label: t.status,
    group: "view",
    keys: "Ctrl Alt S",
    icon: "plug",
    slash: ["status", "mcps", "mcp"],
    when: hasSession,
    run: panel("status"),
  },
  {
    id: "view.context",
    label: t.contextAndCost,
    group: "view",
    icon: "spark",
    slash: ["context", "cost", "usage"],
    when: hasSession,
    run: panel("context"),
  },
  {
    id: "view.sidebar",
    label: t.toggleSidebar,
    group: "view",
    keys: "Ctrl B",
    icon: "sidebar",
    run: () => setPrefs("sidebar", !prefs.sidebar),
  },
  {
    id: "view.thinking",
    label: t.showThinking,
    group: "view",
    slash: ["thinking"],
    run: () => setPrefs("thinking", !prefs.thinking),
  },
  {
    id: "view.outputs",
    label: t.showOutputs,
    group: "view",
    keys: "Ctrl O",
    slash: ["details"],
    run: () => setPrefs("outputs", !prefs.outputs),
  },
  {
    id: "view.times",
    label: t.showTimes,
    group: "view",
    slash: ["timestamps"],
    run: () => setPrefs("times", !prefs.times),
  },
  {
    id: "model.list",
    label: t.chooseModel,
    group: "agent",
    keys: "Ctrl Alt M",
    icon: "spark",
    slash: ["models", "model"],
    run: () => openModels(),
  },
  { id: "variant.list", label: t.chooseVariant, group: "agent", slash: ["variant"], run: () => openVariants() },
  {
    id: "agent.list",
    label: t.chooseAgent,
    group: "agent",
    keys: "Ctrl Alt A",
    icon: "spark",
    slash: ["agents", "agent"],
    run: () => openAgents(),
  },
  { id: "skill.list", label: "Skills", group: "agent", slash: ["skills"], run: () => openSkills() },
  {
    id: "provider.connect",
    label: t.connectProvider,
    group: "agent",
    icon: "key",
    slash: ["connect", "login"],
    run: () => go({ name: "settings", page: "providers" }),
  },
  {
    id: "command.palette",
    label: t.commands,
    group: "system",
    keys: "Ctrl K",
    icon: "search",
    run: () => openPalette(),
  },
  {
    id: "theme.list",
    label: t.theme,
    group: "system",
    icon: "sun",
    slash: ["themes", "theme"],
    run: () => openThemes(),
  },
  {
    id: "theme.mode",
    label: `${t.scheme}: ${t.light} / ${t.dark}`,
    group: "system",
    icon: "sun",
    run: () => setPrefs("scheme", isDark() ? "light" : "dark"),
  },
  {
    id: "workspace.trust",
    label: t.trust,
    group: "system",
    icon: "shield",
    slash: ["trust"],
    run: () => openTrust(placeOf(currentDirectory())),
  },
  {
    id: "settings",
    label: t.settings,
    group: "system",
    keys: "Ctrl ,",
    icon: "settings",
    run: () => go({ name: "settings", page: "" }),
  },
  {
    id: "shortcuts",
    label: t.shortcuts,
    group: "system",
    keys: "Ctrl /",
    icon: "question",
    slash: ["help"],
    run: () => go({ name: "shortcuts" }),
  },
  {
    id: "bug.report",
    label: t.bugReport,
    group: "system",
    icon: "warn",
    slash: ["bug"],
    run: () => void attempt(async () => (await import("../views/status/bug")).reportBug(currentDirectory())),
  },
  { id: "home", label: t.home, group: "system", icon: "home", run: () => go({ name: "home" }) },
  {
    id: "sign.out",
    label: t.signOutHere,
    group: "system",
    icon: "key",
    when: isSignedIn,
    slash: ["sign-out"],
    run: () => void leave(),
  },
];

export function isDark(): boolean {
  return prefs.scheme === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : prefs.scheme === "dark";
}

export function applies(command: Command): boolean {
  return command.when?.() ?? true;
}
