// Opening files in the editor of the user's machine.
import { createMemo, Show, type JSX } from "solid-js";
import { editorAddress, editorName, EDITORS, patternOf } from "../state/editor";
import { prefs, setPrefs } from "../state/prefs";
import { t } from "../text";
import { Button } from "../ui/button";
import { Icon } from "../ui/icon";
import { Picker } from "../ui/picker";
import { openDialog } from "./dialogs";
import { go } from "./router";

/** Opens an address of an editor. The page stays. */
function follow(address: string | null): void {
  if (address) location.assign(address);
}

/** Opens a file, or a directory without a path, in the editor. Asks for the editor if none is chosen. */
export function openInEditor(directory: string, path: string, line?: number): void {
  if (patternOf(prefs.editor)) {
    follow(editorAddress(prefs.editor, directory, path, line));
    return;
  }
  const other = { id: "", label: t.otherEditor, icon: "settings" as const };
  openDialog((dialog) => (
    <Picker
      title={t.chooseEditor}
      items={[...EDITORS.map(({ id, name }) => ({ id, label: name, icon: "edit" as const })), other]}
      onClose={dialog.close}
      onPick={(item) => {
        dialog.close();
        if (!item.id) {
          go({ name: "settings", page: "general" });
          return;
        }
        setPrefs("editor", item.id);
        follow(editorAddress(item.id, directory, path, line));
      }}
    />
  ));
}

interface Props {
  directory: string;
  path: string;
  line?: number | undefined;
}

/** The button that opens a file in the editor: a link, once an editor is chosen. */
export function EditorButton(props: Props): JSX.Element {
  const address = createMemo(() => editorAddress(prefs.editor, props.directory, props.path, props.line));
  const label = () => t.openIn(editorName(prefs.editor));
  return (
    <Show
      when={address()}
      fallback={
        <Button
          small
          kind="quiet"
          icon="external"
          label={t.openInEditor}
          onClick={() => openInEditor(props.directory, props.path, props.line)}
        />
      }
    >
      {(href) => (
        <a class="button small quiet icon" href={href()} aria-label={label()} title={label()}>
          <Icon name="external" />
        </a>
      )}
    </Show>
  );
}
