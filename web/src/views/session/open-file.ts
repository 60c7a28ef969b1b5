// Opens a file of the open session in the panel.
import { createSignal } from "solid-js";
import { showPanel, route } from "../../app/router";
import { state } from "../../state/mirror";

export interface FileTarget {
  path: string;
  line: number | undefined;
}

const [target, setTarget] = createSignal<FileTarget | null>(null, { equals: false });
/** The file that the panel displays. */
export { target, setTarget };

export function openFile(path: string, line?: number): void {
  const now = route();
  if (now.name !== "session") return;
  const directory = state.sessions[now.id]?.directory ?? "";
  const relative = path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : path.replace(/^\.\//, "");
  setTarget({ path: relative, line });
  showPanel("files");
}
