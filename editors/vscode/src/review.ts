// The review of the agent's changes: a list, native differences, and accept and reject for each hunk.
import * as path from "node:path"
import * as vscode from "vscode"
import { Changes, MAX_COMPARED, readSteps } from "./changes"
import { shown } from "./context"
import { currentText, documentOf, setText, showFile } from "./files"
import { accept, hunkAt, hunks, lines, reject, type Hunk } from "./hunks"
import type { ChangedFile } from "./messages"

/** The scheme of the texts on the left side of a difference, and of other texts that are not files. */
export const SCHEME = "codewright-text"
/** How many texts of differences are kept, besides those of changed files. */
const MAX_TEXTS = 50
/** How long the list waits for more changes. */
const SETTLE_MS = 200

type Node =
  | { kind: "file"; path: string; hunks: Hunk[]; isKnown: boolean }
  | { kind: "hunk"; path: string; hunk: Hunk; text: string }

export class Review
  implements vscode.TextDocumentContentProvider, vscode.CodeLensProvider, vscode.TreeDataProvider<Node>
{
  private readonly changes = new Changes()
  private readonly texts = new Map<string, string>()
  private readonly found = new Map<string, Hunk[]>()
  /** The texts that were compared last, so that typing in one file does not compare the others again. */
  private readonly compared = new Map<string, { before: string; current: string; hunks: Hunk[] }>()
  private nextText = 1
  private timer: NodeJS.Timeout | undefined
  private readonly lensesChanged = new vscode.EventEmitter<void>()
  private readonly treeChanged = new vscode.EventEmitter<void>()
  private readonly textChanged = new vscode.EventEmitter<vscode.Uri>()
  private readonly disposables: vscode.Disposable[] = []
  readonly onDidChangeCodeLenses = this.lensesChanged.event
  readonly onDidChangeTreeData = this.treeChanged.event
  readonly onDidChange = this.textChanged.event

  constructor(
    private readonly directory: () => string,
    private readonly show: (files: ChangedFile[]) => void,
  ) {
    this.disposables.push(
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.languages.registerCodeLensProvider({ scheme: "file" }, this),
      vscode.window.registerTreeDataProvider("codewright.changes", this),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (this.changes.has(document.uri.fsPath)) this.refreshSoon()
      }),
      vscode.workspace.onDidSaveTextDocument((document) => {
        if (this.changes.has(document.uri.fsPath)) this.refreshSoon()
      }),
    )
  }

  dispose(): void {
    clearTimeout(this.timer)
    for (const it of this.disposables) it.dispose()
  }

  private get isEnabled(): boolean {
    return vscode.workspace.getConfiguration("codewright").get("reviewChanges", true)
  }

  /** Notes a file that the agent writes through the editor. */
  written(file: string, before: string | null): void {
    if (!this.isEnabled) return
    this.changes.written(file, before)
    this.refreshSoon()
  }

  /** Notes the result of a tool call. */
  async called(update: unknown): Promise<void> {
    if (!this.isEnabled) return
    for (const step of readSteps(update)) {
      if (!path.isAbsolute(step.path)) continue
      // A file that cannot be read is listed without hunks.
      const current = await currentText(step.path).catch(() => "")
      this.changes.stepped(step, current)
    }
    this.refreshSoon()
  }

  refreshSoon(): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => void this.refresh(), SETTLE_MS)
  }

  /** Compares the changed files again. A file without a difference is not listed any more. */
  async refresh(): Promise<void> {
    const files: ChangedFile[] = []
    for (const file of this.found.keys()) if (!this.changes.has(file)) this.drop(file)
    for (const [file, before] of this.changes.entries()) {
      const current = await currentText(file).catch(() => undefined)
      if (before !== undefined && current !== undefined && before === current) {
        this.drop(file)
        continue
      }
      const isComparable = before !== undefined && current !== undefined && (current ?? "").length <= MAX_COMPARED
      const found = isComparable ? this.compare(file, before ?? "", current ?? "") : []
      this.found.set(file, found)
      files.push({
        path: file,
        label: shown(file, this.directory()),
        hunks: found.length,
        added: found.reduce((sum, hunk) => sum + hunk.after.count, 0),
        removed: found.reduce((sum, hunk) => sum + hunk.before.count, 0),
      })
      this.textChanged.fire(beforeUri(file))
    }
    this.show(files)
    this.treeChanged.fire()
    this.lensesChanged.fire()
    void vscode.commands.executeCommand("setContext", "codewright.hasChanges", files.length > 0)
    void vscode.commands.executeCommand(
      "setContext",
      "codewright.changedFiles",
      files.map((file) => file.path),
    )
  }

  private compare(file: string, before: string, current: string): Hunk[] {
    const known = this.compared.get(file)
    if (known?.before === before && known.current === current) return known.hunks
    const found = hunks(before, current)
    this.compared.set(file, { before, current, hunks: found })
    return found
  }

  // The texts of differences.

  provideTextDocumentContent(uri: vscode.Uri): string {
    if (uri.query !== "") return this.texts.get(uri.query) ?? ""
    return this.changes.before(uri.path) ?? ""
  }

  /** Shows two texts side by side. Without `after`, the right side is the file. */
  async showTexts(file: string, before: string, after: string | undefined): Promise<void> {
    const right = after === undefined ? vscode.Uri.file(file) : this.keep(file, after)
    await vscode.commands.executeCommand("vscode.diff", this.keep(file, before), right, path.basename(file), {
      preview: true,
    })
  }

  private keep(file: string, text: string): vscode.Uri {
    const id = String(this.nextText++)
    this.texts.set(id, text)
    const oldest = this.texts.keys().next().value
    if (this.texts.size > MAX_TEXTS && oldest !== undefined) this.texts.delete(oldest)
    return vscode.Uri.from({ scheme: SCHEME, path: file, query: id })
  }

  /** Shows the change of a file as a native difference, or the file if the text before is not known. */
  async showChange(file: string): Promise<void> {
    if (this.changes.before(file) === undefined) return showFile(file)
    const title = `${path.basename(file)} (before Codewright ↔ now)`
    const current = await currentText(file)
    const right = current === null ? this.keep(file, "") : vscode.Uri.file(file)
    await vscode.commands.executeCommand("vscode.diff", beforeUri(file), right, title, { preview: true })
  }

  // Accept and reject.

  async acceptHunk(file: string, hunk: Hunk): Promise<void> {
    await this.settle(file, hunk, (before, current) => {
      this.changes.settle(file, accept(before, current, hunk))
      return Promise.resolve()
    })
  }

  async rejectHunk(file: string, hunk: Hunk): Promise<void> {
    await this.settle(file, hunk, async (before, current) => {
      const wasMissing = this.changes.before(file) === null
      const text = reject(before, current, hunk)
      if (wasMissing && text === "") await this.remove(file)
      else await setText(file, text)
    })
  }

  acceptFile(file: string): Promise<void> {
    this.drop(file)
    return this.refresh()
  }

  private drop(file: string): void {
    this.changes.forget(file)
    this.found.delete(file)
    this.compared.delete(file)
  }

  async rejectFile(file: string): Promise<void> {
    const before = this.changes.before(file)
    if (before === undefined) throw new Error("The text before the change is not known, so it cannot be restored here.")
    if (before === null) await this.remove(file)
    else await setText(file, before)
    await this.acceptFile(file)
  }

  async acceptAll(): Promise<void> {
    this.changes.clear()
    this.found.clear()
    this.compared.clear()
    await this.refresh()
  }

  /** Runs an action if the hunk still fits the texts. */
  private async settle(
    file: string,
    hunk: Hunk,
    action: (before: string, current: string) => Promise<void>,
  ): Promise<void> {
    const before = this.changes.before(file)
    const current = await currentText(file)
    if (before === undefined) return
    const isPresent = hunks(before ?? "", current ?? "").some((it) => same(it, hunk))
    if (!isPresent) throw new Error("The file has changed. Try again.")
    await action(before ?? "", current ?? "")
    await this.refresh()
  }

  /** Moves a file that the agent has created to the trash. */
  private async remove(file: string): Promise<void> {
    if ((await currentText(file)) !== null) await vscode.workspace.fs.delete(vscode.Uri.file(file), { useTrash: true })
  }

  /** The hunk at the cursor of the active editor. */
  atCursor(): { file: string; hunk: Hunk } | null {
    const editor = vscode.window.activeTextEditor
    if (editor === undefined) return null
    const file = editor.document.uri.fsPath
    const hunk = hunkAt(this.found.get(file) ?? [], editor.selection.active.line)
    return hunk === undefined ? null : { file, hunk }
  }

  /** Moves the cursor to the next hunk of the active editor, and from the last one to the first. */
  nextHunk(): void {
    const editor = vscode.window.activeTextEditor
    const found = editor === undefined ? [] : (this.found.get(editor.document.uri.fsPath) ?? [])
    if (editor === undefined || found.length === 0) return
    const line = editor.selection.active.line
    const next = found.find((hunk) => hunk.after.line > line) ?? found[0]
    if (next === undefined) return
    const at = new vscode.Position(next.after.line, 0)
    editor.selection = new vscode.Selection(at, at)
    editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport)
  }

  // The buttons above each hunk.

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    if (!this.isEnabled) return []
    const file = document.uri.fsPath
    return (this.found.get(file) ?? []).flatMap((hunk) => {
      const line = Math.min(hunk.after.line, Math.max(document.lineCount - 1, 0))
      const range = new vscode.Range(line, 0, line, 0)
      const removed = hunk.before.count > 0 ? ` −${hunk.before.count}` : ""
      const added = hunk.after.count > 0 ? ` +${hunk.after.count}` : ""
      const node = { kind: "hunk", path: file, hunk, text: "" }
      return [
        new vscode.CodeLens(range, { title: "$(check) Accept", command: "codewright.acceptHunk", arguments: [node] }),
        new vscode.CodeLens(range, { title: "$(discard) Reject", command: "codewright.rejectHunk", arguments: [node] }),
        new vscode.CodeLens(range, {
          title: `Codewright${removed}${added}`,
          command: "codewright.reviewFile",
          arguments: [node],
        }),
      ]
    })
  }

  // The list.

  getChildren(node?: Node): Node[] {
    if (node === undefined) {
      return this.changes.entries().map(([file, before]) => {
        return { kind: "file", path: file, hunks: this.found.get(file) ?? [], isKnown: before !== undefined }
      })
    }
    if (node.kind === "hunk") return []
    const current = lines(documentOf(node.path)?.getText() ?? "")
    return node.hunks.map((hunk) => {
      return { kind: "hunk", path: node.path, hunk, text: (current[hunk.after.line] ?? "").trim().slice(0, 80) }
    })
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node.kind === "file") {
      const state =
        node.hunks.length > 0 ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.None
      const item = new vscode.TreeItem(vscode.Uri.file(node.path), state)
      item.contextValue = "file"
      item.description = node.isKnown
        ? path.dirname(shown(node.path, this.directory()))
        : "the text before is not known"
      item.command = { title: "Show Change", command: "codewright.reviewFile", arguments: [node] }
      return item
    }
    const { before, after } = node.hunk
    const item = new vscode.TreeItem(`Line ${after.line + 1}  −${before.count} +${after.count}`)
    item.contextValue = "hunk"
    item.description = node.text
    item.command = { title: "Go to Change", command: "codewright.goToHunk", arguments: [node] }
    return item
  }
}

function beforeUri(file: string): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path: file })
}

function same(a: Hunk, b: Hunk): boolean {
  return (
    a.before.line === b.before.line &&
    a.before.count === b.before.count &&
    a.after.line === b.after.line &&
    a.after.count === b.after.count
  )
}
