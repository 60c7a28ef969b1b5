// The dialog that opens a directory of the server's machine.
import { createMemo, createResource, createSignal, For, Show } from "solid-js";
import { call } from "../api";
import { state } from "../state/mirror";
import { prefs } from "../state/prefs";
import { shortPath } from "../text/format";
import { t } from "../text";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { plain } from "../ui/text";
import { openDialog } from "./dialogs";
import { go } from "./router";

export function openDirectoryDialog(): void {
  openDialog((dialog) => {
    const [path, setPath] = createSignal("");
    const [problem, setProblem] = createSignal("");
    const absolute = (text: string) =>
      (text.startsWith("~") ? state.home + text.slice(1) : text).replace(/(.)\/+$/, "$1");
    const known = createMemo(() => {
      const all = [...prefs.directories, ...state.projects.map((project) => project.worktree), state.directory];
      return [...new Set(all)].filter((one) => one && one !== "/" && one.includes(path().replace("~", state.home)));
    });
    const [inside] = createResource(
      () => {
        const at = absolute(path());
        return at.startsWith("/") ? at.slice(0, at.lastIndexOf("/") + 1) || "/" : null;
      },
      async (parent) => {
        try {
          const nodes = await call("GET /file", { query: { directory: parent, path: "." } });
          return nodes
            .filter((node) => node.type === "directory" && !node.name.startsWith("."))
            .map((node) => `${parent.replace(/\/$/, "")}/${node.name}`);
        } catch {
          return [];
        }
      },
    );
    const below = () =>
      (inside.latest ?? []).filter((one) => one.startsWith(absolute(path())) && !known().includes(one)).slice(0, 40);
    const open = async (directory: string) => {
      try {
        const { directory: found } = await call("GET /path", { query: { directory } });
        dialog.close();
        go({ name: "new", directory: found });
      } catch (error) {
        setProblem(error instanceof Error ? error.message : String(error));
      }
    };
    return (
      <Dialog
        title={t.openDirectory}
        onClose={dialog.close}
        foot={
          <>
            <Button onClick={dialog.close}>{t.cancel}</Button>
            <Button kind="primary" disabled={!path().trim()} onClick={() => void open(absolute(path().trim()))}>
              {t.open}
            </Button>
          </>
        }
      >
        <input
          class="field mono"
          aria-label={t.pathOfDirectory}
          placeholder={t.pathOfDirectory}
          autofocus
          value={path()}
          spellcheck={false}
          onInput={(event) => {
            setPath(event.currentTarget.value);
            setProblem("");
          }}
          onKeyDown={(event) => event.key === "Enter" && path().trim() && void open(absolute(path().trim()))}
        />
        <Show when={problem()}>
          <p class="notice bad" role="alert">
            {problem()}
          </p>
        </Show>
        <ul class="rows">
          <For each={[...known(), ...below()]}>
            {(directory) => (
              <li>
                <button type="button" class="row-button" onClick={() => void open(directory)}>
                  <Icon name="folder" />
                  <span class="clip mono">{plain(shortPath(directory, state.home))}</span>
                </button>
              </li>
            )}
          </For>
        </ul>
      </Dialog>
    );
  });
}
