// The table of commands.
import { attempt, currentDirectory } from "../state/actions";
import { placeOf } from "../state/place";
import { prefs, setPrefs } from "../state/prefs";
import { t } from "../text";
import { openAgents, openModels, openSkills, openThemes, openVariants } from "./pickers";
import { openInEditor } from "./editor";
import { openPalette } from "./palette";
import { isSignedIn, signOut } from "../api/server";
import { go, route, showPanel, type Panel } from "./router";
import { openTrust } from "../views/trust/trust";
import { hasSession, type Command } from "./command";
import { SESSION_COMMANDS } from "./session-commands";

const panel = (name: Panel) => () => {
  const now = route();
  showPanel(now.name === "session" && now.panel === name ? null : name);
};

/** Signs out, and loads the page again, so that nothing of the user stays in its memory. */
export async function leave(): Promise<void> {
  await attempt(signOut);
  location.replace(location.pathname + location.search);
}

export const COMMANDS: Command[] = [
  ...SESSION_COMMANDS,
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
    run: () => openPalette(COMMANDS),
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
