// The entry in the status bar: the state of the sessions, and the cost of the active one.
import * as vscode from "vscode"
import type { Sessions } from "./sessions"

export class Status {
  private readonly item = vscode.window.createStatusBarItem("codewright.status", vscode.StatusBarAlignment.Right, 100)

  constructor() {
    this.item.name = "Codewright"
    this.item.command = "codewright.focus"
  }

  update(sessions: Sessions): void {
    const { icon, state, isUrgent } = describe(sessions)
    const session = sessions.active
    const cost = session?.usage?.cost
    const used = session?.usage
    this.item.text = `${icon} Codewright${cost === undefined ? "" : ` ${money(cost)}`}`
    this.item.tooltip = [
      `Codewright: ${state}`,
      session === null ? "" : session.title,
      used === undefined || used.size === 0
        ? ""
        : `${Math.round((100 * used.used) / used.size)} % of the context is used`,
      cost === undefined ? "" : `Cost of the session: ${money(cost)}`,
    ]
      .filter((line) => line !== "")
      .join("\n")
    this.item.backgroundColor = isUrgent ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined
    this.item.show()
  }

  dispose(): void {
    this.item.dispose()
  }
}

function describe(sessions: Sessions): { icon: string; state: string; isUrgent: boolean } {
  if (sessions.phase.name === "missing")
    return { icon: "$(warning)", state: "the program is not installed", isUrgent: false }
  if (sessions.phase.name === "failed") return { icon: "$(error)", state: sessions.phase.reason, isUrgent: false }
  if (sessions.phase.name === "starting") return { icon: "$(code)", state: "starts when it is used", isUrgent: false }
  if (sessions.all.some((it) => it.requests.length > 0))
    return { icon: "$(bell-dot)", state: "waits for you", isUrgent: true }
  if (sessions.all.some((it) => it.isRunning)) return { icon: "$(sync~spin)", state: "working", isUrgent: false }
  return { icon: "$(code)", state: "ready", isUrgent: false }
}

export function money(amount: number): string {
  return `$${amount.toFixed(amount !== 0 && amount < 0.1 ? 4 : 2)}`
}
