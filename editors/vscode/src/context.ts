// The references of a prompt to the editor: `@selection`, `@problems`, `@open` and `@path`.
import * as path from "node:path"
import * as vscode from "vscode"
import type { Block } from "./agent"
import { documentOf, isInside } from "./files"
import type { EditorState, Image, Mention } from "./messages"

/** The most references of a prompt that are resolved. */
const MAX_MENTIONS = 20
/** The most problems that `@problems` lists, and the longest message of one. */
export const MAX_PROBLEMS = 100
const MAX_PROBLEM_TEXT = 1000
/** The longest selection, in characters. */
export const MAX_SELECTION = 256 << 10
/** The most open files that `@open` names. */
const MAX_OPEN = 50
/** The most files that the completion offers. */
const MAX_COMPLETIONS = 20

export interface Selected {
  path: string
  language: string
  start: { line: number; character: number }
  end: { line: number; character: number }
  text: string
  truncated: boolean
}

export interface Problem {
  path: string
  start: { line: number; character: number }
  end: { line: number; character: number }
  severity: "error" | "warning" | "information" | "hint"
  message: string
  source?: string
}

const SEVERITIES = ["error", "warning", "information", "hint"] as const

/** The editor whose selection counts: the active one, or the one that was active before the chat. */
let lastEditor: vscode.TextEditor | undefined

export function trackEditor(): vscode.Disposable {
  lastEditor = vscode.window.activeTextEditor
  return vscode.window.onDidChangeActiveTextEditor((editor) => {
    if (editor !== undefined) lastEditor = editor
  })
}

export function currentEditor(): vscode.TextEditor | undefined {
  const active = vscode.window.activeTextEditor
  if (active?.document.uri.scheme === "file") return active
  return lastEditor !== undefined && !lastEditor.document.isClosed && lastEditor.document.uri.scheme === "file"
    ? lastEditor
    : undefined
}

/** Returns the selection of the current editor, which can be empty. */
export function selected(): Selected | null {
  const editor = currentEditor()
  if (editor === undefined) return null
  const { start, end } = editor.selection
  const text = editor.document.getText(new vscode.Range(start, end))
  return {
    path: editor.document.uri.fsPath,
    language: editor.document.languageId,
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
    text: text.slice(0, MAX_SELECTION),
    truncated: text.length > MAX_SELECTION,
  }
}

/** Returns the problems of all files, or of one, errors first. */
export function problems(limit: number, file?: string): { problems: Problem[]; truncated: boolean } {
  const all = vscode.languages
    .getDiagnostics()
    .filter(([uri]) => uri.scheme === "file" && (file === undefined || uri.fsPath === file))
    .flatMap(([uri, diagnostics]) => diagnostics.map((diagnostic) => problem(uri.fsPath, diagnostic)))
    .sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity))
  return { problems: all.slice(0, limit), truncated: all.length > limit }
}

function problem(file: string, diagnostic: vscode.Diagnostic): Problem {
  const { start, end } = diagnostic.range
  const found: Problem = {
    path: file,
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
    severity: SEVERITIES[diagnostic.severity] ?? "error",
    message: diagnostic.message.slice(0, MAX_PROBLEM_TEXT),
  }
  return diagnostic.source === undefined ? found : { ...found, source: diagnostic.source.slice(0, 100) }
}

export function editorState(directory: string): EditorState | null {
  const editor = currentEditor()
  if (editor === undefined) return null
  const file = editor.document.uri.fsPath
  const errors = vscode.languages.getDiagnostics(editor.document.uri).filter((it) => it.severity <= 1)
  return {
    file: shown(file, directory),
    lines: editor.selection.isEmpty ? "" : lineRange(editor.selection.start.line, lastLine(editor.selection)),
    problems: errors.length,
  }
}

/** The last selected line. A selection that ends before the first character of a line does not include it. */
function lastLine({ start, end }: { start: { line: number }; end: { line: number; character: number } }): number {
  return end.character === 0 && end.line > start.line ? end.line - 1 : end.line
}

function lineRange(first: number, last: number): string {
  return first === last ? `${first + 1}` : `${first + 1}-${last + 1}`
}

/** The path of a file as a person reads it: relative to the directory of the session if it is inside. */
export function shown(file: string, directory: string): string {
  return isInside(directory, file) ? path.relative(directory, file) : file
}

/**
 * Returns a reference to the current file and its selected lines, as the terminal client and the chat understand it.
 */
export function reference(directory: string): string | null {
  const editor = currentEditor()
  if (editor === undefined) return null
  const file = `@${shown(editor.document.uri.fsPath, directory)}`
  if (editor.selection.isEmpty) return file
  const [first, last] = [editor.selection.start.line + 1, lastLine(editor.selection) + 1]
  return first === last ? `${file}#L${first}` : `${file}#L${first}-${last}`
}

/** Code in a fence that the code itself cannot close. */
export function fenced(code: string, language: string): string {
  const longest = Math.max(2, ...(code.match(/`+/g) ?? []).map((run) => run.length))
  const fence = "`".repeat(longest + 1)
  return `${fence}${/^[\w+-]*$/.test(language) ? language : ""}\n${code}${code.endsWith("\n") ? "" : "\n"}${fence}`
}

export interface Built {
  blocks: Block[]
  /** The names of what was added, for the conversation. */
  attachments: string[]
  /** References that name nothing. */
  missing: string[]
}

/** Builds the prompt of a text with references. */
export async function build(prompt: string, images: Image[], directory: string): Promise<Built> {
  const built: Built = { blocks: [{ type: "text", text: prompt }], attachments: [], missing: [] }
  for (const name of mentions(prompt)) await resolve(name, directory, built)
  for (const { mime, data } of images) {
    built.blocks.push({ type: "image", mimeType: mime, data })
    built.attachments.push(mime)
  }
  return built
}

/** Returns the references in a text, each once. */
export function mentions(prompt: string): string[] {
  const found = [...prompt.matchAll(/(?:^|[\s(])@([^\s@]+)/g)].map((match) =>
    (match[1] ?? "").replace(/[.,;:!?)]+$/, ""),
  )
  return [...new Set(found)].filter((name) => name !== "").slice(0, MAX_MENTIONS)
}

async function resolve(name: string, directory: string, built: Built): Promise<void> {
  if (name === "selection") return addSelection(directory, built)
  if (name === "problems") return addProblems(directory, built)
  if (name === "open") return addOpenFiles(directory, built)
  const [, file, first, last] = /^(.+?)(?:#L(\d+)(?:-L?(\d+))?)?$/.exec(name) ?? []
  const full = path.resolve(directory, file ?? "")
  const roots = [directory, ...(vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath)]
  // A name outside of the workspace may be anything, such as an account.
  if (!roots.some((root) => isInside(root, full)) || !(await isFile(full))) {
    built.missing.push(name)
    return
  }
  const document = documentOf(full)
  const uri = vscode.Uri.file(full).toString()
  built.attachments.push(name)
  if (first !== undefined) {
    const text = (document?.getText() ?? "").split("\n")
    const [from, to] = [Number(first), Number(last ?? first)]
    const code = text.slice(from - 1, to).join("\n")
    const note = `Lines ${lineRange(from - 1, to - 1)} of ${shown(full, directory)}`
    if (code !== "") built.blocks.push({ type: "text", text: `${note}:\n${fenced(code, document?.languageId ?? "")}` })
  }
  if (document?.isDirty) {
    built.blocks.push({ type: "resource", resource: { uri, text: document.getText(), mimeType: "text/plain" } })
  } else {
    built.blocks.push({ type: "resource_link", name: path.basename(full), uri })
  }
}

async function isFile(file: string): Promise<boolean> {
  try {
    return (await vscode.workspace.fs.stat(vscode.Uri.file(file))).type === vscode.FileType.File
  } catch {
    return false
  }
}

function addSelection(directory: string, built: Built): void {
  const found = selected()
  if (found === null || found.text === "") {
    built.missing.push("selection")
    return
  }
  const range = lineRange(found.start.line, lastLine(found))
  const name = `${shown(found.path, directory)}:${range}`
  built.attachments.push(name)
  const cut = found.truncated ? " (only the beginning)" : ""
  const text = `Selection in the editor, ${name}${cut}:\n${fenced(found.text, found.language)}`
  built.blocks.push({ type: "text", text })
}

function addProblems(directory: string, built: Built): void {
  const found = problems(MAX_PROBLEMS)
  const count = found.problems.length
  built.attachments.push(`${count} ${count === 1 ? "problem" : "problems"}`)
  const rest = found.truncated ? "\nMore problems are left out." : ""
  const text =
    count === 0
      ? "The editor shows no problems."
      : `Problems that the editor shows:\n${listed(found.problems, directory)}${rest}`
  built.blocks.push({ type: "text", text })
}

/** Problems as lines, in the usual form of compilers. */
export function listed(found: Problem[], directory: string): string {
  return found
    .map(({ path, start, severity, message, source }) => {
      const from = source === undefined ? "" : ` [${source}]`
      return `${shown(path, directory)}:${start.line + 1}:${start.character + 1}: ${severity}: ${message}${from}`
    })
    .join("\n")
}

function addOpenFiles(directory: string, built: Built): void {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs)
  const files = tabs.map((tab) => (tab.input instanceof vscode.TabInputText ? tab.input.uri : null))
  const paths = [...new Set(files.filter((uri) => uri?.scheme === "file").map((uri) => uri?.fsPath ?? ""))].slice(
    0,
    MAX_OPEN,
  )
  built.attachments.push(`${paths.length} open ${paths.length === 1 ? "file" : "files"}`)
  const names = paths.map((file) => `- ${shown(file, directory)}`).join("\n")
  built.blocks.push({
    type: "text",
    text: paths.length === 0 ? "No files are open." : `Files that are open in the editor:\n${names}`,
  })
}

const SPECIAL: Mention[] = [
  { name: "selection", description: "the selected text" },
  { name: "problems", description: "errors and warnings of the workspace" },
  { name: "open", description: "the names of the open files" },
]

/** Returns the references that begin with or contain a query. */
export async function complete(query: string, directory: string): Promise<Mention[]> {
  const special = SPECIAL.filter(({ name }) => name.startsWith(query))
  // The query is part of a glob pattern.
  const plain = query.replace(/[[\]{}*?\\!]/g, "")
  const pattern = plain.includes("/") ? `**/${plain}*` : `**/*${plain}*`
  const files = await vscode.workspace.findFiles(pattern, undefined, MAX_COMPLETIONS)
  const named = files
    .map((uri) => shown(uri.fsPath, directory))
    .filter((name) => !/\s/.test(name))
    .sort((a, b) => a.length - b.length)
  return [...special, ...named.map((name) => ({ name, description: "" }))].slice(0, MAX_COMPLETIONS)
}
