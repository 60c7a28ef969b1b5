// Terminal first: the terminal client next to the editor, and references that are sent into its prompt.
import { randomBytes } from "node:crypto"
import { createServer } from "node:net"
import { request } from "node:http"
import * as vscode from "vscode"

const NAME = "Codewright"
/** How often a reference is sent again while the client starts, and the interval. */
const ATTEMPTS = 100
const RETRY_MS = 200
/** The deadline of one attempt. */
const REQUEST_DEADLINE_MS = 5000

interface Client {
  terminal: vscode.Terminal
  port: number
  password: string
  directory: string
}

export class Terminals {
  private clients: Client[] = []
  private readonly closing = vscode.window.onDidCloseTerminal((terminal) => {
    this.clients = this.clients.filter((client) => client.terminal !== terminal)
  })

  constructor(private readonly variables: () => Record<string, string>) {}

  dispose(): void {
    this.closing.dispose()
  }

  /** The client that was used last, if it runs. */
  get current(): Client | undefined {
    const active = vscode.window.activeTerminal
    return this.clients.find((client) => client.terminal === active) ?? this.clients.at(-1)
  }

  /** Shows the running client, or starts one. */
  async open(program: string, directory: string): Promise<void> {
    const current = this.current
    if (current === undefined) await this.start(program, directory)
    else current.terminal.show()
  }

  async start(program: string, directory: string): Promise<Client> {
    const port = await freePort()
    // Other users of the machine can reach the port, so the server needs a password.
    const password = randomBytes(24).toString("hex")
    const terminal = vscode.window.createTerminal({
      name: NAME,
      shellPath: program,
      shellArgs: ["--port", String(port), "--hostname", "127.0.0.1"],
      cwd: directory,
      env: { ...this.variables(), OPENCODE_SERVER_PASSWORD: password },
      location: { viewColumn: vscode.ViewColumn.Beside, preserveFocus: false },
      iconPath: new vscode.ThemeIcon("code"),
    })
    const client = { terminal, port, password, directory }
    this.clients.push(client)
    terminal.show()
    return client
  }

  /** Appends a text to the prompt of the client, and waits while the client starts. */
  async append(client: Client, text: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await post(client, "/tui/append-prompt", { text })
        client.terminal.show()
        return
      } catch (error) {
        const isGone = !this.clients.includes(client)
        if (isGone || attempt === ATTEMPTS) throw error
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject)
    server.listen({ host: "127.0.0.1", port: 0 }, () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}

function post(client: Client, path: string, body: object): Promise<void> {
  const { port, password, directory } = client
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: "127.0.0.1",
        port,
        method: "POST",
        path: `${path}?directory=${encodeURIComponent(directory)}`,
        auth: `opencode:${password}`,
        headers: { "content-type": "application/json" },
        timeout: REQUEST_DEADLINE_MS,
      },
      (response) => {
        response.resume()
        if (response.statusCode === 200) resolve()
        else reject(new Error(`the terminal client answered with status ${response.statusCode}`))
      },
    )
    sent.on("timeout", () => sent.destroy(new Error("the terminal client does not answer")))
    sent.on("error", reject)
    sent.end(JSON.stringify(body))
  })
}
