// The chat in the side bar. The view has no access to anything: it shows the state that it gets, and sends requests of
// the user, which are checked here.
import { randomBytes } from "node:crypto"
import * as path from "node:path"
import * as vscode from "vscode"
import { complete, editorState } from "./context"
import { isInside, showFile } from "./files"
import { readFromView, type ChangedFile, type FromView, type ToView } from "./messages"
import type { Review } from "./review"
import type { Sessions } from "./sessions"

export class ChatView implements vscode.WebviewViewProvider {
  private view: vscode.WebviewView | undefined
  private files: ChangedFile[] = []
  /** Messages that must not be lost while the view does not exist yet. */
  private waiting: ToView[] = []
  private isReady = false

  constructor(
    private readonly extension: vscode.Uri,
    private readonly sessions: () => Sessions,
    private readonly review: () => Review,
  ) {}

  get isVisible(): boolean {
    return this.view?.visible ?? false
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view
    this.isReady = false
    const out = vscode.Uri.joinPath(this.extension, "out")
    view.webview.options = { enableScripts: true, localResourceRoots: [out], enableCommandUris: false }
    view.webview.html = page({
      nonce: randomBytes(18).toString("base64url"),
      source: view.webview.cspSource,
      script: view.webview.asWebviewUri(vscode.Uri.joinPath(out, "view.js")).toString(),
      style: view.webview.asWebviewUri(vscode.Uri.joinPath(out, "view.css")).toString(),
    })
    view.webview.onDidReceiveMessage((message: unknown) => {
      const request = readFromView(message)
      if (request !== null) this.receive(request).catch(report)
    })
    view.onDidDispose(() => {
      this.view = undefined
      this.isReady = false
    })
  }

  show(message: ToView): void {
    if (message.type === "changes") this.files = message.files
    if (this.isReady) void this.view?.webview.postMessage(message)
  }

  /** Puts a text into the composer, and shows the view. */
  insert(text: string): void {
    const message: ToView = { type: "insert", text }
    if (this.isReady) this.show(message)
    else this.waiting = [message]
    void vscode.commands.executeCommand("codewright.chat.focus")
  }

  editorChanged(): void {
    const directory = this.sessions().active?.directory
    if (this.isVisible && directory !== undefined) this.show({ type: "editor", editor: editorState(directory) })
  }

  private async receive(message: FromView): Promise<void> {
    const sessions = this.sessions()
    switch (message.type) {
      case "ready":
        this.isReady = true
        this.show(sessions.state())
        this.show({ type: "changes", files: this.files })
        for (const it of this.waiting.splice(0)) this.show(it)
        await sessions.start()
        this.editorChanged()
        return
      case "prompt":
        return sessions.prompt(message.text, message.images)
      case "cancel":
        return sessions.cancel()
      case "answer":
        return sessions.answer(message.request, message.choice)
      case "option":
        return sessions.setOption(message.id, message.value)
      case "switch":
        return sessions.switchTo(message.session)
      case "close":
        return sessions.close(message.session)
      case "open":
        return showFile(message.path, message.line === undefined ? undefined : Math.max(message.line - 1, 0))
      case "review":
        return this.review().showChange(message.path)
      case "showRequest":
        return this.showRequest(message.request)
      case "showCall":
        return this.showCall(message.call)
      case "link":
        return this.openLink(message.url)
      case "mentions": {
        const directory = sessions.active?.directory ?? ""
        return this.show({ type: "mentions", query: message.query, mentions: await complete(message.query, directory) })
      }
      case "command":
        await vscode.commands.executeCommand(`codewright.${message.name}`)
    }
  }

  private async showRequest(id: string): Promise<void> {
    const request = this.sessions().active?.requests.find((it) => it.id === id)
    const difference = request?.differences[0]
    if (difference !== undefined) await this.review().showTexts(difference.path, difference.before, difference.after)
  }

  private async showCall(id: string): Promise<void> {
    const item = this.sessions().active?.items.findLast((it) => it.kind === "tool" && it.id === id)
    const difference = item?.kind === "tool" ? item.differences[0] : undefined
    if (difference !== undefined) await this.review().showTexts(difference.path, difference.before, difference.after)
  }

  /** Opens a link of an answer. VS Code asks the user before it opens an address. */
  private async openLink(url: string): Promise<void> {
    if (/^https?:\/\//i.test(url)) {
      await vscode.env.openExternal(vscode.Uri.parse(url, true))
      return
    }
    const directory = this.sessions().active?.directory
    const [, name, line] = /^(?:file:\/\/)?([^#?]+?)(?:(?:#L|:)(\d+).*)?$/.exec(url) ?? []
    if (directory === undefined || name === undefined) return
    const file = path.resolve(directory, decoded(name))
    // A link of an answer opens only files of the project.
    if (isInside(directory, file)) await showFile(file, line === undefined ? undefined : Math.max(Number(line) - 1, 0))
  }
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

export function report(error: unknown): void {
  void vscode.window.showErrorMessage(`Codewright: ${error instanceof Error ? error.message : String(error)}`)
}

interface Sources {
  nonce: string
  source: string
  script: string
  style: string
}

/** The page of the view. It loads one script and one style sheet of the extension, and nothing else. */
export function page({ nonce, source, script, style }: Sources): string {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src ${source}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ")
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${style}">
<title>Codewright</title>
</head>
<body>
<div id="app"></div>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>
`
}
