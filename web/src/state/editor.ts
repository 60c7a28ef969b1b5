// The editor of the user's machine: which addresses open a file in it.

export interface Editor {
  id: string;
  name: string;
  address: string;
}

/** Editors that register addresses. `{path}` begins with a slash. */
export const EDITORS: readonly Editor[] = [
  { id: "vscode", name: "VS Code", address: "vscode://file{path}:{line}" },
  { id: "vscodium", name: "VSCodium", address: "vscodium://file{path}:{line}" },
  { id: "cursor", name: "Cursor", address: "cursor://file{path}:{line}" },
  { id: "windsurf", name: "Windsurf", address: "windsurf://file{path}:{line}" },
  { id: "zed", name: "Zed", address: "zed://file{path}:{line}" },
  { id: "idea", name: "IntelliJ IDEA", address: "idea://open?file={path}&line={line}" },
  { id: "pycharm", name: "PyCharm", address: "pycharm://open?file={path}&line={line}" },
  { id: "webstorm", name: "WebStorm", address: "webstorm://open?file={path}&line={line}" },
  { id: "rustrover", name: "RustRover", address: "rustrover://open?file={path}&line={line}" },
];

/** Schemes that run or display what they contain. */
const REFUSED = /^(?:javascript|data|blob|vbscript|file|about|view-source|filesystem|ws|wss):/i;
const SHAPE = /^[a-z][a-z0-9+.-]*:\/\/[\x21-\x7e]+$/i;

/** Returns whether a text of the user is an address with a place for the file. */
export function isEditorAddress(address: string): boolean {
  return SHAPE.test(address) && !REFUSED.test(address) && address.indexOf("{path}") > address.indexOf("://");
}

/** Returns the pattern of an editor: the name of a known one, or an address of the user. */
export function patternOf(editor: string): string | null {
  const known = EDITORS.find((one) => one.id === editor);
  if (known) return known.address;
  return isEditorAddress(editor) ? editor : null;
}

export function editorName(editor: string): string {
  return EDITORS.find((one) => one.id === editor)?.name ?? editor.split(":", 1)[0] ?? "";
}

/** Returns the address that opens a file, which is absolute or relative to a directory. */
export function editorAddress(editor: string, directory: string, path: string, line = 1): string | null {
  const pattern = patternOf(editor);
  const isAbsolute = /^(?:\/|[a-z]:[\\/])/i.test(path);
  const whole = isAbsolute ? path : path ? `${directory.replace(/[\\/]+$/, "")}/${path}` : directory;
  if (!pattern || !whole) return null;
  const slashed = /^[a-z]:/i.test(whole) ? `/${whole.replaceAll("\\", "/")}` : whole;
  const encoded = slashed
    .split("/")
    .map(encodeURIComponent)
    .join("/")
    .replace(/^\/([A-Za-z])%3A/, "/$1:");
  return pattern.replaceAll("{path}", () => encoded).replaceAll("{line}", String(Math.max(1, Math.trunc(line))));
}
