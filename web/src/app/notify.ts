// The title of the page and notifications: what waits for the user, and what is done.
import { createEffect, on } from "solid-js";
import type { EventSessionError } from "../api";
import { listen, lineage, rootOf, state } from "../state/mirror";
import { prefs } from "../state/prefs";
import { prose } from "../ui/text";
import { toast } from "../ui/toast";
import { t } from "../text";
import { waitingRoots } from "./lists";
import { openSession, route } from "./router";

function titleOf(id: string): string {
  return prose(state.sessions[id]?.title ?? "") || t.untitled;
}

function notify(id: string, what: string): void {
  if (!prefs.notify || typeof Notification === "undefined" || Notification.permission !== "granted") return;
  const now = route();
  // Whoever looks at the session sees it.
  if (document.visibilityState === "visible" && document.hasFocus() && now.name === "session" && now.id === id) return;
  const shown = new Notification(titleOf(id), { body: what, tag: id });
  shown.onclick = () => {
    focus();
    openSession(id);
    shown.close();
  };
}

/** Shows the failure of a session that is open or that is not known, and notifies about the others. */
function failed({ sessionID, error }: EventSessionError["properties"]): void {
  if (!error || error.name === "MessageAbortedError") return;
  const now = route();
  const root = sessionID ? rootOf(sessionID) : undefined;
  if (root && !(now.name === "session" && now.id === root)) notify(root, t.notifyFailed);
  else toast({ text: prose("message" in error.data ? String(error.data.message) : error.name), kind: "bad" });
}

export function followAttention(): void {
  createEffect(() => {
    const now = route();
    const title = now.name === "session" ? titleOf(now.id) : "";
    const waiting = waitingRoots().size;
    document.title = `${waiting > 0 ? `${t.waitingTitle(waiting)} ` : ""}${title ? `${title} · ` : ""}${t.app}`;
    const badge = navigator as Navigator & { setAppBadge?: (count: number) => Promise<void> };
    // An installed app shows the number at its icon. Browsers may refuse that.
    badge.setAppBadge?.(waiting).catch(() => {});
  });
  createEffect(
    on(
      () => state.ready,
      () => {
        listen((event) => {
          if (event.type === "permission.asked") notify(rootOf(event.properties.sessionID), t.notifyPermission);
          if (event.type === "question.asked") notify(rootOf(event.properties.sessionID), t.notifyQuestion);
          if (event.type === "session.error") failed(event.properties);
          if (event.type === "session.idle" && lineage(event.properties.sessionID).length === 1)
            notify(event.properties.sessionID, t.notifyDone);
        });
      },
      { defer: true },
    ),
  );
}
