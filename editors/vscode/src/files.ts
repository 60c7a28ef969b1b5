// Reads and writes files for the agent through the editor, so that it sees buffers that are not saved, and its changes
// can be undone like those of the user.
import { constants, promises as fs } from "node:fs"
import * as path from "node:path"
import * as vscode from "vscode"
import { RpcError } from "./rpc"
import { lines, replacement } from "./hunks"
import { position } from "./read"

/** The largest file that is read or written, in bytes. */
export const MAX_FILE_BYTES = 32 << 20

/** Returns the document of a file, if the editor has one. */
export function documentOf(file: string): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((it) => it.uri.scheme === "file" && it.uri.fsPath === file && !it.isClosed)
}

/**
 * Returns the present text of a file, also if it is not saved, or null if there is no file. The editor notices changes
 * of the disk late, so a saved document is read from the disk.
 */
export async function currentText(file: string): Promise<string | null> {
  const document = documentOf(file)
  if (document?.isDirty) return document.getText()
  try {
    return await diskText(file)
  } catch (error) {
    // The editor knows more encodings.
    if (document !== undefined && error instanceof NotUtf8) return document.getText()
    throw error
  }
}

class NotUtf8 extends RpcError {}

/** Reads a regular file. Returns null if it does not exist. */
async function diskText(file: string): Promise<string | null> {
  let handle: Awaited<ReturnType<typeof fs.open>>
  try {
    // A pipe would block the open otherwise.
    handle = await fs.open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
  try {
    const info = await handle.stat()
    if (!info.isFile()) throw new RpcError(-32602, `\`${file}\` is not a regular file`)
    if (info.size > MAX_FILE_BYTES) throw new RpcError(-32602, `\`${file}\` is larger than ${MAX_FILE_BYTES >> 20} MiB`)
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await handle.readFile())
  } catch (error) {
    if (error instanceof TypeError) throw new NotUtf8(-32602, `\`${file}\` is not UTF-8`)
    throw error
  } finally {
    await handle.close()
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")
}

/**
 * Checks the path of the agent. Its permission rules have decided about the path as it is written, so a path inside the
 * workspace must not be a link to a file outside.
 */
async function checked(file: string): Promise<string> {
  if (!path.isAbsolute(file) || file.includes("\0")) throw new RpcError(-32602, "the path is not absolute")
  const plain = path.normalize(file)
  const roots = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath)
  if (roots.some((root) => isInside(root, plain))) {
    const real = await realPath(plain)
    const realRoots = await Promise.all(roots.map(realPath))
    if (!realRoots.some((root) => isInside(root, real)))
      throw new RpcError(-32602, `\`${file}\` is a link out of the workspace`)
  }
  return plain
}

export function isInside(root: string, file: string): boolean {
  const relative = path.relative(root, file)
  return relative === "" || (!relative.startsWith(`..${path.sep}`) && relative !== ".." && !path.isAbsolute(relative))
}

/** Resolves the links of a path of which the last parts may be missing. */
async function realPath(file: string): Promise<string> {
  try {
    return await fs.realpath(file)
  } catch (error) {
    const parent = path.dirname(file)
    if (!isMissing(error) || parent === file) throw error
    // The target of a dangling link would be created.
    const isLink = await fs.lstat(file).then(
      (info) => info.isSymbolicLink(),
      () => false,
    )
    if (isLink) throw new RpcError(-32602, `\`${file}\` is a link to a missing file`)
    return path.join(await realPath(parent), path.basename(file))
  }
}

/** Reads a file for the agent. `line` counts from 1. */
export async function readTextFile(params: { path: string; line?: unknown; limit?: unknown }): Promise<string> {
  const file = await checked(params.path)
  const content = await currentText(file)
  if (content === null) throw new RpcError(-32002, `\`${file}\` does not exist`)
  const [line, limit] = [position(params.line), position(params.limit)]
  if (line === undefined && limit === undefined) return content
  const from = Math.max((line ?? 1) - 1, 0)
  return lines(content)
    .slice(from, limit === undefined ? undefined : from + limit)
    .join("")
}

/** Writes a file for the agent. Reports the text before to `before`. */
export async function writeTextFile(
  params: { path: string; content: string },
  before: (file: string, text: string | null) => void,
): Promise<void> {
  const file = await checked(params.path)
  if (params.content.length > MAX_FILE_BYTES)
    throw new RpcError(-32602, `the text is larger than ${MAX_FILE_BYTES >> 20} MiB`)
  before(file, await currentText(file))
  await setText(file, params.content)
}

/** Replaces the text of a file and saves it. Only the part that differs is changed, so cursors keep their places. */
export async function setText(file: string, content: string): Promise<void> {
  const document = documentOf(file)
  // The editor refuses to save a document that is older than the file. It reloads one that has no changes by itself.
  if (document === undefined || (!document.isDirty && (await currentText(file)) !== document.getText())) {
    await fs.mkdir(path.dirname(file), { recursive: true })
    await fs.writeFile(file, content)
    return
  }
  const { start, end, text } = replacement(document.getText(), content)
  const edit = new vscode.WorkspaceEdit()
  edit.replace(document.uri, new vscode.Range(document.positionAt(start), document.positionAt(end)), text)
  if (!(await vscode.workspace.applyEdit(edit))) throw new Error(`the editor did not change \`${file}\``)
  if (!(await document.save())) throw new Error(`the editor did not save \`${file}\``)
}

/** Opens a regular file in an editor. `line` and `character` count from 0. */
export async function showFile(file: string, line?: number, character?: number): Promise<void> {
  const info = await fs.stat(file)
  if (!path.isAbsolute(file) || !info.isFile()) throw new Error(`\`${file}\` is not a file`)
  const at = line === undefined ? undefined : new vscode.Position(line, character ?? 0)
  const options: vscode.TextDocumentShowOptions =
    at === undefined ? { preview: true } : { preview: true, selection: new vscode.Range(at, at) }
  await vscode.window.showTextDocument(vscode.Uri.file(file), options)
}
