// The extension: connects the sessions, the view, the review, the terminal client and the commands.
import * as vscode from "vscode"
import { ProblemActions, problemPrompt } from "./actions"
import { Channel, MAX_PROBLEMS } from "./channel"
import { problems, reference, selected, trackEditor, type Problem } from "./context"
import { showFile } from "./files"
import type { Hunk } from "./hunks"
import { findProgram, locate } from "./program"
import { prompt } from "./prompts"
import { fields, text } from "./read"
import { Review } from "./review"
import { Sessions } from "./sessions"
import { Status } from "./status"
import { Terminals } from "./terminal"
import type { Option } from "./transcript"
import { ChatView, report } from "./view"

/** The session that a window opens again. */
const LAST_SESSION = "codewright.session"

export interface Exports {
  sessions: Sessions
  review: Review
  view: ChatView
  terminals: Terminals
  channel: Channel | null
}

export async function activate(context: vscode.ExtensionContext): Promise<Exports> {
  const log = vscode.window.createOutputChannel("Codewright")
  const status = new Status()
  const settings = (): vscode.WorkspaceConfiguration => vscode.workspace.getConfiguration("codewright")

  const view = new ChatView(
    context.extensionUri,
    () => sessions,
    () => review,
  )
  const review = new Review(
    () => sessions.active?.directory ?? directory() ?? "",
    (files) => view.show({ type: "changes", files }),
  )
  const sessions: Sessions = new Sessions({
    program: findProgram,
    directory,
    show: (message) => view.show(message),
    changed: () => {
      status.update(sessions)
      const isRunning = sessions.active?.isRunning ?? false
      void vscode.commands.executeCommand("setContext", "codewright.isRunning", isRunning)
    },
    requested: (session, request) => {
      const where = settings().get<string>("permissionPrompts", "auto")
      const isSeen = view.isVisible && sessions.active === session
      if (where === "view" || (where === "auto" && isSeen)) return
      prompt(session, request, review).then((choice) => {
        if (choice !== null) sessions.answer(request.id, choice)
      }, report)
    },
    called: (update) => void review.called(update).catch(report),
    written: (file, before) => review.written(file, before),
    settled: () => review.refreshSoon(),
    log: (line) => log.appendLine(line),
    remember: (session) => void context.workspaceState.update(LAST_SESSION, session),
    remembered: () => context.workspaceState.get<string>(LAST_SESSION),
  })

  const channel = settings().get("editorChannel", true) ? await openChannel(review, log) : null
  const terminals = new Terminals(() => (channel === null ? {} : { CODEWRIGHT_EDITOR: channel.value }))
  if (channel !== null) {
    // Terminals that the user opens get the variable too.
    context.environmentVariableCollection.persistent = false
    context.environmentVariableCollection.replace("CODEWRIGHT_EDITOR", channel.value)
    context.subscriptions.push(channel)
  }

  const window = { sessions, review, view, terminals, channel }
  context.subscriptions.push(
    log,
    status,
    review,
    terminals,
    trackEditor(),
    { dispose: () => sessions.dispose() },
    vscode.window.registerWebviewViewProvider("codewright.chat", view),
    vscode.languages.registerCodeActionsProvider({ scheme: "file" }, new ProblemActions(), {
      providedCodeActionKinds: ProblemActions.kinds,
    }),
    vscode.window.onDidChangeActiveTextEditor(() => view.editorChanged()),
    vscode.window.onDidChangeTextEditorSelection(() => view.editorChanged()),
    vscode.languages.onDidChangeDiagnostics(() => view.editorChanged()),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("codewright.path")) sessions.restart().catch(report)
    }),
    ...commands(window, log),
  )
  status.update(sessions)
  return window
}

/** The directory of new sessions: the folder of the active editor, or the first one. */
function directory(): string | null {
  const active = vscode.window.activeTextEditor?.document.uri
  const folder = active === undefined ? undefined : vscode.workspace.getWorkspaceFolder(active)
  return (folder ?? vscode.workspace.workspaceFolders?.[0])?.uri.fsPath ?? null
}

async function openChannel(review: Review, log: vscode.OutputChannel): Promise<Channel | null> {
  try {
    return await Channel.open({
      open: showFile,
      diff: (path, before, after) => review.showTexts(path, before, after),
      selection: () => {
        const found = selected()
        if (found === null) return null
        const { path, start, end, text: content, truncated } = found
        return { path, start, end, text: content, ...(truncated ? { truncated } : {}) }
      },
      problems: () => {
        const found = problems(MAX_PROBLEMS)
        return { problems: found.problems, ...(found.truncated ? { truncated: true } : {}) }
      },
    })
  } catch (error) {
    log.appendLine(`The editor channel is not available: ${String(error)}`)
    return null
  }
}

type Window = Exports

function commands(window: Window, log: vscode.OutputChannel): vscode.Disposable[] {
  const { sessions, review } = window
  const known: Record<string, (...args: unknown[]) => unknown> = {
    focus: () => open(window),
    newSession: async () => {
      await sessions.create()
      await vscode.commands.executeCommand("codewright.chat.focus")
    },
    sessions: () => chooseSession(sessions),
    closeSession: () => (sessions.active === null ? undefined : sessions.close(sessions.active.id)),
    cancel: () => sessions.cancel(),
    selectModel: () => chooseOption(sessions, "model"),
    selectMode: () => chooseOption(sessions, "mode"),
    sendSelection: () => send(window, "@selection "),
    explain: () => say(window, "Explain the selected code. @selection"),
    fixProblems: () => aboutFile(window),
    fixProblem: (uri, diagnostics) => aboutProblems(window, "fix", uri, diagnostics),
    explainProblem: (uri, diagnostics) => aboutProblems(window, "explain", uri, diagnostics),
    openTerminal: () => terminal(window, "open"),
    newTerminal: () => terminal(window, "start"),
    sendReference: () => sendReference(window),
    reviewFile: (node) => onFile(node, (file) => review.showChange(file)),
    acceptFile: (node) => onFile(node, (file) => review.acceptFile(file)),
    rejectFile: (node) => onFile(node, (file) => review.rejectFile(file)),
    acceptHunk: (node) => onHunk(review, node, (file, hunk) => review.acceptHunk(file, hunk)),
    rejectHunk: (node) => onHunk(review, node, (file, hunk) => review.rejectHunk(file, hunk)),
    goToHunk: (node) => onHunk(review, node, (file, hunk) => showFile(file, hunk.after.line)),
    acceptAll: () => review.acceptAll(),
    nextHunk: () => review.nextHunk(),
    locate: async () => {
      if (await locate()) await sessions.restart()
    },
    signIn,
    restart: () => sessions.restart(),
    showLog: () => log.show(),
  }
  return Object.entries(known).map(([name, run]) =>
    vscode.commands.registerCommand(`codewright.${name}`, async (...args: unknown[]) => {
      try {
        await run(...args)
      } catch (error) {
        report(error)
      }
    }),
  )
}

function prefersTerminal(): boolean {
  return vscode.workspace.getConfiguration("codewright").get("preferTerminal", false)
}

async function open(window: Window): Promise<void> {
  if (prefersTerminal()) await terminal(window, "open")
  else await vscode.commands.executeCommand("codewright.chat.focus")
}

/** Puts a text into the composer of the chat. */
async function send(window: Window, content: string): Promise<void> {
  if (prefersTerminal()) await sendReference(window)
  else window.view.insert(content)
}

/** Sends a prompt in the chat. */
async function say(window: Window, content: string): Promise<void> {
  await vscode.commands.executeCommand("codewright.chat.focus")
  await window.sessions.prompt(content)
}

async function terminal(window: Window, how: "open" | "start"): Promise<void> {
  const [program, folder] = [await findProgram(), directory()]
  if (program === null) return void (await locate())
  if (folder === null) throw new Error("Open a folder first.")
  await window.terminals[how](program, folder)
}

/** Sends a reference to the current lines into the terminal client, or into the chat if no client runs. */
async function sendReference(window: Window): Promise<void> {
  const isNeeded = window.terminals.current === undefined && prefersTerminal()
  if (isNeeded) await terminal(window, "open")
  const client = window.terminals.current
  const found = reference(client?.directory ?? window.sessions.active?.directory ?? directory() ?? "")
  if (found === null) return
  if (client === undefined) window.view.insert(`${found} `)
  else await window.terminals.append(client, `${found} `)
}

async function signIn(): Promise<void> {
  const program = await findProgram()
  if (program === null) return void (await locate())
  const shellArgs = ["providers", "login"]
  vscode.window.createTerminal({ name: "Codewright: sign in", shellPath: program, shellArgs }).show()
}

async function chooseSession(sessions: Sessions): Promise<void> {
  const items = (await sessions.stored()).map((it) => ({
    label: it.title,
    description: it.updated.replace("T", " ").slice(0, 16),
    id: it.id,
  }))
  const picked = await vscode.window.showQuickPick(items, { title: "Open a session", matchOnDescription: true })
  if (picked === undefined) return
  await sessions.load(picked.id)
  await vscode.commands.executeCommand("codewright.chat.focus")
}

async function chooseOption(sessions: Sessions, id: string): Promise<void> {
  await sessions.start()
  const option = sessions.active?.options.find((it) => it.id === id)
  if (option === undefined) return
  const picked = await vscode.window.showQuickPick(items(option), { title: option.name, matchOnDescription: true })
  if (picked !== undefined) await sessions.setOption(option.id, picked.value)
}

function items(option: Option): (vscode.QuickPickItem & { value: string })[] {
  return option.values.map(({ name, value }) => {
    const mark = value === option.current ? "$(check) " : ""
    return { label: `${mark}${name}`, description: value === name ? "" : value, value }
  })
}

async function aboutFile(window: Window): Promise<void> {
  const editor = vscode.window.activeTextEditor
  if (editor === undefined) return
  const diagnostics = vscode.languages.getDiagnostics(editor.document.uri)
  if (diagnostics.length === 0) return void vscode.window.showInformationMessage("This file has no problems.")
  await aboutProblems(window, "fix", editor.document.uri, diagnostics)
}

async function aboutProblems(
  window: Window,
  what: "fix" | "explain",
  uri: unknown,
  diagnostics: unknown,
): Promise<void> {
  if (!(uri instanceof vscode.Uri) || !Array.isArray(diagnostics)) return
  const document = await vscode.workspace.openTextDocument(uri)
  const wanted = diagnostics as vscode.Diagnostic[]
  const isWanted = (it: Problem): boolean =>
    wanted.some((one) => one.message.startsWith(it.message) && one.range.start.line === it.start.line)
  const found = problems(MAX_PROBLEMS, uri.fsPath).problems.filter(isWanted)
  await say(window, problemPrompt(what, document, found, window.sessions.active?.directory ?? directory() ?? ""))
}

/** Runs an action on the file of a list entry, of a title button, or of the active editor. */
async function onFile(node: unknown, action: (file: string) => Promise<void>): Promise<void> {
  const own = node instanceof vscode.Uri ? node.fsPath : text(fields(node)["path"], 4096)
  const file = own !== "" ? own : vscode.window.activeTextEditor?.document.uri.fsPath
  if (file !== undefined) await action(file)
}

/** Runs an action on the hunk of a list entry or of a button, or on the one at the cursor. */
async function onHunk(
  review: Review,
  node: unknown,
  action: (file: string, hunk: Hunk) => Promise<void>,
): Promise<void> {
  const given = fields(node)
  const at =
    given["kind"] === "hunk" ? { file: text(given["path"], 4096), hunk: given["hunk"] as Hunk } : review.atCursor()
  if (at === null) return void vscode.window.showInformationMessage("There is no change of Codewright at the cursor.")
  await action(at.file, at.hunk)
}
