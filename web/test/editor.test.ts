import { expect, test } from "vitest";
import { editorAddress, EDITORS, isEditorAddress } from "../src/state/editor";

test("an address opens a file at a line", () => {
  for (const [editor, directory, path, line, expected] of [
    ["vscode", "/home/u/repo", "src/a.rs", 7, "vscode://file/home/u/repo/src/a.rs:7"],
    ["vscode", "/home/u/repo/", "/etc/hosts", undefined, "vscode://file/etc/hosts:1"],
    ["zed", "/r", "", undefined, "zed://file/r:1"],
    ["idea", "/r", "a b/ü&line=9.rs", 2, "idea://open?file=/r/a%20b/%C3%BC%26line%3D9.rs&line=2"],
    ["vscode", "C:\\work", "C:\\work\\a.rs", 3, "vscode://file/C:/work/a.rs:3"],
    ["mine://x?f={path}#{line}", "/r", "$&.txt", 4, "mine://x?f=/r/%24%26.txt#4"],
    ["", "/r", "a", 1, null],
    ["unknown", "/r", "a", 1, null],
    ["vscode", "", "", 1, null],
  ] as const)
    expect(editorAddress(editor, directory, path, line), `${editor} ${path}`).toBe(expected);
});

test("an address of the user cannot run anything", () => {
  for (const address of [
    "javascript://%0aalert(1){path}",
    "data://text/html,{path}",
    "blob://{path}",
    "vbscript://{path}",
    "file://{path}",
    "myeditor:{path}",
    "myeditor://x",
    "{path}://x",
    "my editor://{path}",
    "about://{path}",
  ]) {
    expect(isEditorAddress(address), address).toBe(false);
  }
  expect(isEditorAddress("myeditor://open?file={path}&line={line}")).toBe(true);
  for (const { address } of EDITORS) expect(isEditorAddress(address), address).toBe(true);
});
