// The actions on a session, in lists and in its head, and their dialogs.
import { createSignal, type JSX } from "solid-js";
import { archive, attempt, compact, fork, remove, rename, togglePin, unshare } from "../state/actions";
import { state } from "../state/mirror";
import { prefs } from "../state/prefs";
import { t } from "../text";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Menu, type MenuEntry } from "../ui/menu";
import { openDialog } from "./dialogs";
import { redraw } from "./lists";
import { exportSession } from "../state/export";

export function renameDialog(id: string): void {
  openDialog((dialog) => {
    const [title, setTitle] = createSignal(state.sessions[id]?.title ?? "");
    const save = async () => {
      if (!title().trim()) return;
      await attempt(() => rename(id, title().trim()));
      dialog.close();
    };
    return (
      <Dialog
        title={t.renameSession}
        onClose={dialog.close}
        foot={
          <>
            <Button onClick={dialog.close}>{t.cancel}</Button>
            <Button kind="primary" onClick={() => void save()}>
              {t.save}
            </Button>
          </>
        }
      >
        <input
          class="field"
          aria-label={t.title}
          autofocus
          value={title()}
          onInput={(event) => setTitle(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && void save()}
        />
      </Dialog>
    );
  });
}

export function sessionEntries(id: string): MenuEntry[] {
  const session = state.sessions[id];
  const isArchived = session?.time.archived !== undefined;
  return [
    { label: t.rename, icon: "edit", run: () => renameDialog(id) },
    { label: prefs.pinned.includes(id) ? t.unpin : t.pin, icon: "pin", run: () => togglePin(id) },
    { label: t.forkSession, icon: "fork", run: () => fork(id) },
    { label: t.compact, icon: "spark", run: () => compact(id) },
    "line",
    { label: t.exportSession, icon: "download", run: () => void attempt(() => exportSession(id, "markdown")) },
    { label: t.exportJson, icon: "download", run: () => void attempt(() => exportSession(id, "json")) },
    // Sharing is not offered, because no server supports it. A session that is shared elsewhere can stop it.
    ...(session?.share ? [{ label: t.unshare, icon: "globe" as const, run: () => unshare(id) }] : []),
    "line",
    {
      label: isArchived ? t.unarchive : t.archive,
      icon: "archive",
      run: () => archive(id, isArchived ? undefined : Date.now()),
    },
    { label: t.delete, icon: "trash", danger: true, run: () => remove(id, redraw) },
  ];
}

export function SessionMenu(props: { id: string }): JSX.Element {
  return (
    <Menu
      small
      label={`${t.more}: ${state.sessions[props.id]?.title ?? ""}`}
      entries={() => sessionEntries(props.id)}
    />
  );
}
