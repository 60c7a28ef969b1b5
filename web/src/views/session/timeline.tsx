// Dialogs over the prompts of a session: jump, fork, undo with a preview of files, and move.
import { createMemo, createResource, For, onMount, Show, type JSX } from "solid-js";
import { openDialog } from "../../app/dialogs";
import { openSession } from "../../app/router";
import { call } from "../../api";
import { attempt, fork, revert } from "../../state/actions";
import { putSession, state, transcriptOf } from "../../state/mirror";
import { clock } from "../../text/format";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Diff } from "../../ui/diff";
import { firstLine } from "../../ui/markdown";
import { Picker, type PickerItem } from "../../ui/picker";
import { plain } from "../../ui/text";
import { draftOf, focusPrompt } from "./draft";
import { promptText } from "./prompt-text";

/** Pages that are loaded for the list of prompts. */
const MAX_PAGES = 20;

function prompts(id: string): PickerItem[] {
  const transcript = transcriptOf(id);
  return transcript.order().flatMap((one) => {
    const message = transcript.message(one);
    const text = message?.info().role === "user" ? promptText(message) : "";
    return message && text ? [{ id: one, label: firstLine(text), badge: clock(message.info().time.created) }] : [];
  });
}

/** Loads older pages while a list is open. */
function loadOlder(id: string): void {
  const load = async () => {
    const transcript = transcriptOf(id);
    for (let pages = 0; !transcript.isComplete() && pages < MAX_PAGES; pages += 1) await transcript.older();
  };
  onMount(() => void load());
}

export function openTimeline(id: string): void {
  openDialog((dialog) => {
    loadOlder(id);
    const items = createMemo(() => prompts(id).reverse());
    return (
      <Picker
        title={t.timeline}
        items={items()}
        onClose={dialog.close}
        onPick={(item) => {
          dialog.close();
          openSession(id, item.id);
        }}
      />
    );
  });
}

export function openForks(id: string): void {
  openDialog((dialog) => {
    loadOlder(id);
    const items = createMemo<PickerItem[]>(() => [
      { id: "", label: t.allSessions === "" ? "" : t.forkSession, icon: "fork" },
      ...prompts(id)
        .reverse()
        .map((item) => ({ ...item, group: t.forkHere })),
    ]);
    return (
      <Picker
        title={t.forkSession}
        items={items()}
        onClose={dialog.close}
        onPick={(item) => {
          dialog.close();
          fork(id, item.id || undefined);
        }}
      />
    );
  });
}

/** Asks before a prompt is undone, and shows which files change. Without a prompt, the user picks one. */
export function openUndo(id: string, messageID?: string): void {
  if (messageID) {
    openDialog((dialog) => <UndoDialog id={id} messageID={messageID} close={dialog.close} />);
    return;
  }
  openDialog((dialog) => {
    loadOlder(id);
    const items = createMemo(() => prompts(id).reverse());
    return (
      <Picker
        title={t.undoPrompt}
        items={items()}
        onClose={dialog.close}
        onPick={(item) => {
          dialog.close();
          openUndo(id, item.id);
        }}
      />
    );
  });
}

function UndoDialog(props: { id: string; messageID: string; close: () => void }): JSX.Element {
  /** The changes of all turns from the prompt on. */
  const [diffs] = createResource(async () => {
    const transcript = transcriptOf(props.id);
    const order = transcript.order();
    const turns = order
      .slice(order.indexOf(props.messageID))
      .filter((one) => transcript.message(one)?.info().role === "user");
    const found = await Promise.all(
      turns.map((messageID) =>
        call("GET /session/{sessionID}/diff", { path: { sessionID: props.id }, query: { messageID } }),
      ),
    );
    return found.flat();
  });
  const undo = async () => {
    const message = transcriptOf(props.id).message(props.messageID);
    if (!(await revert(props.id, props.messageID))) return;
    const draft = draftOf(props.id);
    if (message && !draft.text()) draft.setText(promptText(message));
    props.close();
    focusPrompt();
  };
  return (
    <Dialog
      wide
      title={t.undoPrompt}
      onClose={props.close}
      foot={
        <>
          <Button onClick={props.close}>{t.cancel}</Button>
          <Button kind="primary" icon="undo" onClick={() => void undo()}>
            {t.undo}
          </Button>
        </>
      }
    >
      <p>{t.undoHint}</p>
      <h3>{t.filesChange}</h3>
      <Show when={!diffs.loading} fallback={<p class="muted">{t.loading}</p>}>
        <Show
          when={(diffs() ?? []).length > 0}
          fallback={<p class="muted">{diffs.error ? String(diffs.error) : t.noFilesChange}</p>}
        >
          <For each={diffs()}>
            {(diff) => (
              <Show
                when={diff.patch}
                fallback={
                  <p class="mono">
                    {plain(diff.file ?? "")} <span class="plus">+{diff.additions}</span>{" "}
                    <span class="minus">−{diff.deletions}</span>
                  </p>
                }
              >
                {(patch) => <Diff patch={patch()} title={diff.file ?? ""} />}
              </Show>
            )}
          </For>
        </Show>
      </Show>
    </Dialog>
  );
}

export function openMove(id: string): void {
  openDialog((dialog) => {
    const [directories] = createResource(async () => {
      const projectID = state.sessions[id]?.projectID ?? "";
      const found = await call("GET /project/{projectID}/directories", { path: { projectID } });
      return (found as unknown[]).map((one) =>
        typeof one === "string" ? one : String((one as { directory?: unknown }).directory ?? ""),
      );
    });
    const items = () =>
      (directories.latest ?? []).map((directory) => ({
        id: directory,
        label: plain(directory),
        current: directory === state.sessions[id]?.directory,
      }));
    const pick = (item: PickerItem) => {
      dialog.close();
      void attempt(async () => {
        await call("POST /experimental/control-plane/move-session", {
          body: { sessionID: id, destination: { directory: item.id } },
          long: true,
        });
        putSession(await call("GET /session/{sessionID}", { path: { sessionID: id } }));
      });
    };
    return (
      <Picker
        title={t.moveSession}
        items={items()}
        onClose={dialog.close}
        onPick={pick}
        loading={directories.loading}
      />
    );
  });
}
