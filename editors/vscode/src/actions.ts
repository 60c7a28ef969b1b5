// The light bulb: problems of the editor as prompts.
import * as vscode from "vscode"
import { fenced, listed, shown, type Problem } from "./context"

/** How many lines around a problem are part of its prompt. */
const CONTEXT_LINES = 5
/** The most problems in one prompt. */
const MAX_PROBLEMS = 20

export class ProblemActions implements vscode.CodeActionProvider {
  static readonly kinds = [vscode.CodeActionKind.QuickFix]

  provideCodeActions(
    document: vscode.TextDocument,
    _range: vscode.Range,
    context: vscode.CodeActionContext,
  ): vscode.CodeAction[] {
    if (document.uri.scheme !== "file" || context.diagnostics.length === 0) return []
    return (["fix", "explain"] as const).map((what) => {
      const title = what === "fix" ? "Fix with Codewright" : "Explain with Codewright"
      const action = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix)
      action.diagnostics = [...context.diagnostics]
      action.command = {
        title,
        command: `codewright.${what}Problem`,
        arguments: [document.uri, [...context.diagnostics]],
      }
      return action
    })
  }
}

/** The prompt for problems of a file, with the lines around the first one. */
export function problemPrompt(
  what: "fix" | "explain",
  document: vscode.TextDocument,
  found: Problem[],
  directory: string,
): string {
  const first = found[0]?.start.line ?? 0
  const last = found[0]?.end.line ?? first
  const from = Math.max(first - CONTEXT_LINES, 0)
  const to = Math.min(last + CONTEXT_LINES, document.lineCount - 1)
  const code = document.getText(new vscode.Range(from, 0, to, Number.MAX_SAFE_INTEGER))
  const name = shown(document.uri.fsPath, directory)
  const verb = what === "fix" ? "Fix" : "Explain"
  const plural = found.length === 1 ? "this problem" : "these problems"
  return [
    `${verb} ${plural} in @${name}:`,
    "",
    listed(found.slice(0, MAX_PROBLEMS), directory),
    "",
    `Lines ${from + 1} to ${to + 1}:`,
    fenced(code, document.languageId),
  ].join("\n")
}
