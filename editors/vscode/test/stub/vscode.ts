// A stub of the API of VS Code: as much as the extension uses, in memory, with the files of the disk. `stub` is the
// user and the window of a test.
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { Position, Range, Selection, Uri } from "./values"

export { Position, Range, Selection, Uri }

export class Disposable {
  constructor(private readonly run: () => void) {}
  dispose(): void {
    this.run()
  }
}

export class EventEmitter<T> {
  private listeners = new Set<(value: T) => unknown>()
  readonly event = (listener: (value: T) => unknown): Disposable => {
    this.listeners.add(listener)
    return new Disposable(() => this.listeners.delete(listener))
  }
  fire(value: T): void {
    for (const listener of this.listeners) listener(value)
  }
}

export class TextDocument {
  isDirty = false
  isClosed = false
  constructor(
    readonly uri: Uri,
    private text: string,
    readonly languageId: string,
  ) {}
  get lineCount(): number {
    return this.text.split("\n").length
  }
  getText(range?: Range): string {
    return range === undefined ? this.text : this.text.slice(this.offsetAt(range.start), this.offsetAt(range.end))
  }
  offsetAt({ line, character }: Position): number {
    const lines = this.text.split("\n")
    if (line >= lines.length) return this.text.length
    const before = lines.slice(0, line).reduce((sum, it) => sum + it.length + 1, 0)
    return before + Math.min(character, (lines[line] ?? "").length)
  }
  positionAt(offset: number): Position {
    const lines = this.text.slice(0, offset).split("\n")
    return new Position(lines.length - 1, (lines.at(-1) ?? "").length)
  }
  /** Types as the user does, without saving. */
  type(text: string): void {
    this.text = text
    this.isDirty = true
    events.changed.fire({ document: this })
  }
  save(): Promise<boolean> {
    writeFileSync(this.uri.fsPath, this.text)
    this.isDirty = false
    events.saved.fire(this)
    return Promise.resolve(true)
  }
}

export interface TextEditor {
  document: TextDocument
  selection: Selection
  revealRange(range: Range): void
}

const events = {
  changed: new EventEmitter<{ document: TextDocument }>(),
  saved: new EventEmitter<TextDocument>(),
  activeEditor: new EventEmitter<TextEditor | undefined>(),
  selection: new EventEmitter<object>(),
  diagnostics: new EventEmitter<object>(),
  configuration: new EventEmitter<{ affectsConfiguration(name: string): boolean }>(),
  closedTerminal: new EventEmitter<object>(),
}

export interface StubTerminal {
  name: string
  options: Record<string, unknown>
  show(): void
}

/** The window and the user of a test. */
export const stub = {
  folder: "",
  settings: new Map<string, unknown>(),
  workspaceState: new Map<string, unknown>(),
  diagnostics: new Map<string, { uri: Uri; list: unknown[] }>(),
  /** Answers the prompts of the extension. */
  answer: (_kind: string, _text: string, _items: unknown[]): unknown => undefined,
  prompts: [] as { kind: string; text: string; items: unknown[] }[],
  /** Commands of the editor that were executed, with their arguments. */
  executed: [] as unknown[][],
  commands: new Map<string, (...args: unknown[]) => unknown>(),
  context: new Map<string, unknown>(),
  terminals: [] as StubTerminal[],
  opened: [] as string[],
  log: [] as string[],
  statusText: "",
  statusTooltip: "",
  providers: {} as Record<string, unknown>,
  closeTerminal(terminal: StubTerminal): void {
    stub.terminals = stub.terminals.filter((it) => it !== terminal)
    events.closedTerminal.fire(terminal)
  },
  async open(file: string): Promise<TextEditor> {
    return window.showTextDocument(await workspace.openTextDocument(Uri.file(file)))
  },
  select(editor: TextEditor, range: Range): void {
    editor.selection = new Selection(range.start, range.end)
    events.selection.fire({})
  },
  diagnose(file: string, list: unknown[]): void {
    stub.diagnostics.set(file, { uri: Uri.file(file), list })
    events.diagnostics.fire({})
  },
}

/** A view of the extension whose messages a test reads. */
export class StubView {
  visible = true
  received: unknown[] = []
  readonly listeners = new EventEmitter<unknown>()
  readonly disposed = new EventEmitter<void>()
  readonly onDidDispose = this.disposed.event
  readonly webview = {
    html: "",
    options: {},
    cspSource: "vscode-resource:",
    asWebviewUri: (uri: Uri): string => `vscode-resource:${uri.path}`,
    onDidReceiveMessage: this.listeners.event,
    postMessage: (message: unknown): Promise<boolean> => {
      // Messages are copied, as between two processes.
      this.received.push(JSON.parse(JSON.stringify(message)))
      return Promise.resolve(true)
    },
  }
  send(message: unknown): void {
    this.listeners.fire(message)
  }
}

function ask(kind: string, text: string, items: unknown[]): Promise<unknown> {
  stub.prompts.push({ kind, text, items })
  return Promise.resolve(stub.answer(kind, text, items))
}

function message(kind: string) {
  return (text: string, ...items: unknown[]): Promise<unknown> => ask(kind, text, items)
}

const documents = new Map<string, TextDocument>()
const languagesByEnd: Record<string, string> = { ".py": "python", ".ts": "typescript", ".rs": "rust" }

export const workspace = {
  get workspaceFolders() {
    return stub.folder === "" ? undefined : [{ uri: Uri.file(stub.folder), name: "project", index: 0 }]
  },
  get textDocuments(): TextDocument[] {
    return [...documents.values()]
  },
  getWorkspaceFolder(uri: Uri) {
    return uri.fsPath.startsWith(`${stub.folder}/`) ? workspace.workspaceFolders?.[0] : undefined
  },
  getConfiguration(section: string) {
    return {
      get: (name: string, fallback?: unknown): unknown => stub.settings.get(`${section}.${name}`) ?? fallback,
      inspect: (name: string) => ({ globalValue: stub.settings.get(`${section}.${name}`) }),
      update: (name: string, value: unknown): Promise<void> => {
        stub.settings.set(`${section}.${name}`, value)
        events.configuration.fire({ affectsConfiguration: (it) => it === `${section}.${name}` })
        return Promise.resolve()
      },
    }
  },
  openTextDocument(uri: Uri): Promise<TextDocument> {
    const known = documents.get(uri.fsPath)
    if (known !== undefined) return Promise.resolve(known)
    const language = languagesByEnd[path.extname(uri.fsPath)] ?? "plaintext"
    const document = new TextDocument(uri, readFileSync(uri.fsPath, "utf8"), language)
    documents.set(uri.fsPath, document)
    return Promise.resolve(document)
  },
  applyEdit(edit: WorkspaceEdit): Promise<boolean> {
    for (const { uri, range, text } of edit.edits) {
      const document = documents.get(uri.fsPath)
      if (document === undefined) return Promise.resolve(false)
      const old = document.getText()
      document.type(old.slice(0, document.offsetAt(range.start)) + text + old.slice(document.offsetAt(range.end)))
    }
    return Promise.resolve(true)
  },
  findFiles(pattern: string): Promise<Uri[]> {
    const wanted = pattern.replace("**/", "").replaceAll("*", "")
    const known = ["src/util.py", "README.md"].filter((name) => name.includes(wanted))
    return Promise.resolve(known.map((name) => Uri.file(path.join(stub.folder, name))))
  },
  fs: {
    stat(uri: Uri): Promise<{ type: number }> {
      if (!existsSync(uri.fsPath)) return Promise.reject(new Error("missing"))
      return Promise.resolve({ type: statSync(uri.fsPath).isFile() ? 1 : 2 })
    },
    delete(uri: Uri): Promise<void> {
      rmSync(uri.fsPath)
      documents.delete(uri.fsPath)
      return Promise.resolve()
    },
    writeFile(uri: Uri, content: Uint8Array): Promise<void> {
      mkdirSync(path.dirname(uri.fsPath), { recursive: true })
      writeFileSync(uri.fsPath, content)
      return Promise.resolve()
    },
  },
  registerTextDocumentContentProvider(scheme: string, provider: unknown): Disposable {
    stub.providers[scheme] = provider
    return new Disposable(() => delete stub.providers[scheme])
  },
  onDidChangeTextDocument: events.changed.event,
  onDidSaveTextDocument: events.saved.event,
  onDidChangeConfiguration: events.configuration.event,
}

let activeTextEditor: TextEditor | undefined

export const window = {
  get activeTextEditor(): TextEditor | undefined {
    return activeTextEditor
  },
  get activeTerminal(): StubTerminal | undefined {
    return stub.terminals.at(-1)
  },
  get tabGroups() {
    return { all: [{ tabs: [...documents.values()].map((document) => ({ input: new TabInputText(document.uri) })) }] }
  },
  async showTextDocument(target: TextDocument | Uri, options?: { selection?: Range }): Promise<TextEditor> {
    const document = target instanceof Uri ? await workspace.openTextDocument(target) : target
    const at = options?.selection ?? new Range(0, 0, 0, 0)
    const editor = { document, selection: new Selection(at.start, at.end), revealRange: () => {} }
    activeTextEditor = editor
    stub.opened.push(`${document.uri.fsPath}:${at.start.line}`)
    events.activeEditor.fire(editor)
    return editor
  },
  showInformationMessage: message("information"),
  showWarningMessage: message("warning"),
  showErrorMessage: message("error"),
  showQuickPick: (items: unknown[], options: { title?: string }): Promise<unknown> =>
    ask("pick", options.title ?? "", items),
  showOpenDialog: (options: { title?: string }): Promise<unknown> => ask("dialog", options.title ?? "", []),
  createOutputChannel: () => ({
    appendLine: (line: string) => stub.log.push(line),
    show: () => {},
    dispose: () => {},
  }),
  createStatusBarItem: () => ({
    name: "",
    command: "",
    backgroundColor: undefined,
    set text(value: string) {
      stub.statusText = value
    },
    set tooltip(value: string) {
      stub.statusTooltip = value
    },
    show: () => {},
    dispose: () => {},
  }),
  createTerminal(options: Record<string, unknown>): StubTerminal {
    const terminal = { name: String(options["name"]), options, show: () => {} }
    stub.terminals.push(terminal)
    return terminal
  },
  registerWebviewViewProvider(id: string, provider: unknown): Disposable {
    stub.providers[id] = provider
    return new Disposable(() => {})
  },
  registerTreeDataProvider(id: string, provider: unknown): Disposable {
    stub.providers[id] = provider
    return new Disposable(() => {})
  },
  onDidChangeActiveTextEditor: events.activeEditor.event,
  onDidChangeTextEditorSelection: events.selection.event,
  onDidCloseTerminal: events.closedTerminal.event,
}

export const commands = {
  registerCommand(name: string, run: (...args: unknown[]) => unknown): Disposable {
    stub.commands.set(name, run)
    return new Disposable(() => stub.commands.delete(name))
  },
  async executeCommand(name: string, ...args: unknown[]): Promise<unknown> {
    if (name === "setContext") stub.context.set(String(args[0]), args[1])
    const known = stub.commands.get(name)
    if (known !== undefined) return known(...args)
    stub.executed.push([name, ...args])
    return undefined
  },
}

export const languages = {
  getDiagnostics(uri?: Uri): unknown {
    if (uri !== undefined) return stub.diagnostics.get(uri.fsPath)?.list ?? []
    return [...stub.diagnostics.values()].map((it) => [it.uri, it.list])
  },
  registerCodeLensProvider(_selector: unknown, provider: unknown): Disposable {
    stub.providers["lenses"] = provider
    return new Disposable(() => {})
  },
  registerCodeActionsProvider(_selector: unknown, provider: unknown): Disposable {
    stub.providers["actions"] = provider
    return new Disposable(() => {})
  },
  onDidChangeDiagnostics: events.diagnostics.event,
}

export const env = {
  openExternal(uri: Uri): Promise<boolean> {
    stub.executed.push(["openExternal", uri.toString()])
    return Promise.resolve(true)
  },
}

export class WorkspaceEdit {
  readonly edits: { uri: Uri; range: Range; text: string }[] = []
  replace(uri: Uri, range: Range, text: string): void {
    this.edits.push({ uri, range, text })
  }
}

export class CodeLens {
  constructor(
    readonly range: Range,
    readonly command: { title: string; command: string; arguments: unknown[] },
  ) {}
}

export class CodeAction {
  diagnostics: unknown[] = []
  command: { command: string; arguments: unknown[] } | undefined
  constructor(
    readonly title: string,
    readonly kind: unknown,
  ) {}
}

export class Diagnostic {
  source: string | undefined
  constructor(
    readonly range: Range,
    readonly message: string,
    readonly severity: number,
  ) {}
}

export class TreeItem {
  constructor(
    readonly label: unknown,
    readonly collapsibleState?: number,
  ) {}
}

export class TabInputText {
  constructor(readonly uri: Uri) {}
}

export class ThemeColor {
  constructor(readonly id: string) {}
}

export class ThemeIcon {
  constructor(readonly id: string) {}
}

export const CodeActionKind = { QuickFix: "quickfix" }
export const TreeItemCollapsibleState = { None: 0, Collapsed: 1, Expanded: 2 }
export const StatusBarAlignment = { Left: 1, Right: 2 }
export const ViewColumn = { Active: -1, Beside: -2 }
export const ConfigurationTarget = { Global: 1, Workspace: 2 }
export const FileType = { Unknown: 0, File: 1, Directory: 2, SymbolicLink: 64 }
export const DiagnosticSeverity = { Error: 0, Warning: 1, Information: 2, Hint: 3 }
export const TextEditorRevealType = { Default: 0, InCenterIfOutsideViewport: 2 }
