// Permission requests and questions as native prompts, for when the chat is not visible.
import * as vscode from "vscode"
import type { Review } from "./review"
import type { Request, Session } from "./transcript"

/** The longest text of a notification, in characters. */
const MAX_TEXT = 400
const SHOW = "Show Change"

/** Asks the user. Returns the chosen option, or null if the prompt was closed, which answers nothing. */
export async function prompt(session: Session, request: Request, review: Review): Promise<string | null> {
  return request.isQuestion ? question(request) : permission(session, request, review)
}

async function question(request: Request): Promise<string | null> {
  const items = request.choices.map((choice) => ({ label: choice.label, id: choice.id }))
  const picked = await vscode.window.showQuickPick(items, {
    title: request.title.slice(0, MAX_TEXT),
    ignoreFocusOut: true,
  })
  return picked?.id ?? null
}

async function permission(session: Session, request: Request, review: Review): Promise<string | null> {
  const difference = request.differences[0]
  const labels = request.choices.map((choice) => choice.label)
  const buttons = difference === undefined ? labels : [...labels, SHOW]
  const text = `Codewright (${session.title}) wants to ${verb(request.tool)}: ${oneLine(request.title)}`
  for (;;) {
    const chosen = await vscode.window.showWarningMessage(text.slice(0, MAX_TEXT), ...buttons)
    if (chosen === SHOW && difference !== undefined) {
      await review.showTexts(difference.path, difference.before, difference.after)
      continue
    }
    return request.choices.find((choice) => choice.label === chosen)?.id ?? null
  }
}

export function verb(tool: string): string {
  return VERBS[tool] ?? "use"
}

const VERBS: Record<string, string> = {
  execute: "run",
  edit: "change",
  delete: "delete",
  move: "move",
  read: "read",
  fetch: "fetch",
  search: "search",
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ")
}
