// The program as a child process that speaks the Agent Client Protocol.
import { spawn, type ChildProcess } from "node:child_process"
import { Connection, RpcError } from "./rpc"
import { fields, list, optionalText, text } from "./read"
import { readOptions, type Option } from "./transcript"

/** The deadline of a request that does not run the model. Opening a session can start MCP servers. */
const REQUEST_DEADLINE_MS = 60_000
/** The deadline of the first request. */
const START_DEADLINE_MS = 30_000
/** How long the program may take to end after its input is closed. */
const END_DEADLINE_MS = 3000
/** The most characters of standard error that one line of the log has. */
const MAX_LOG_LINE = 4000

export interface Opened {
  id: string
  options: Option[]
}

export interface Listed {
  id: string
  title: string
  directory: string
  updated: string
}

export interface AgentHandlers {
  update(session: string, update: unknown): void
  /** Returns the chosen option, or null if the user chose none. */
  permission(session: string, request: string, params: unknown): Promise<string | null>
  readFile(params: { path: string; line?: unknown; limit?: unknown }): Promise<string>
  writeFile(params: { path: string; content: string }): Promise<void>
  log(line: string): void
  ended(reason: string): void
}

export type Block =
  | { type: "text"; text: string }
  | { type: "image"; mimeType: string; data: string }
  | { type: "resource_link"; name: string; uri: string }
  | { type: "resource"; resource: { uri: string; text: string; mimeType: string } }

export class Agent {
  private readonly child: ChildProcess
  private readonly connection: Connection
  private version = ""
  private isDisposed = false

  private constructor(
    program: string,
    directory: string,
    private readonly handlers: AgentHandlers,
  ) {
    // The program is started without a shell, and its path never comes from the workspace.
    this.child = spawn(program, ["acp"], { cwd: directory, stdio: ["pipe", "pipe", "pipe"], shell: false })
    const { stdin, stdout, stderr } = this.child
    if (stdin === null || stdout === null || stderr === null) throw new Error("the program has no standard streams")
    stderr.setEncoding("utf8")
    stderr.on("data", (chunk: string) => {
      for (const line of chunk.split("\n")) if (line !== "") handlers.log(line.slice(0, MAX_LOG_LINE))
    })
    this.connection = new Connection(stdout, stdin, {
      request: (method, params, id) => this.serve(method, fields(params), id),
      notification: (method, params) => {
        const it = fields(params)
        if (method === "session/update") handlers.update(text(it["sessionId"], 200), it["update"])
      },
      closed: (reason) => {
        this.child.kill()
        if (!this.isDisposed) handlers.ended(reason)
      },
    })
    this.child.on("error", (error) => this.connection.close(`the program could not be started: ${error.message}`))
    this.child.on("exit", (code, signal) =>
      this.connection.close(`the program ended (${signal ?? `exit code ${code}`})`),
    )
  }

  /** Starts the program and waits until it answers. */
  static async start(program: string, directory: string, handlers: AgentHandlers): Promise<Agent> {
    const agent = new Agent(program, directory, handlers)
    try {
      const started = await agent.connection.request(
        "initialize",
        {
          protocolVersion: 1,
          clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: false },
          clientInfo: { name: "codewright-vscode", version: "0.1.0" },
        },
        START_DEADLINE_MS,
      )
      if (fields(started)["protocolVersion"] !== 1)
        throw new Error("the program speaks another version of the protocol")
      agent.version = text(fields(fields(started)["agentInfo"])["version"], 100)
      return agent
    } catch (error) {
      agent.dispose()
      throw error
    }
  }

  get programVersion(): string {
    return this.version
  }

  async newSession(directory: string): Promise<Opened> {
    const made = fields(await this.call("session/new", { cwd: directory, mcpServers: [] }))
    return { id: text(made["sessionId"], 200), options: readOptions(made["configOptions"]) }
  }

  /** Opens a stored session. Its content arrives as updates before this returns. */
  async loadSession(id: string, directory: string): Promise<Opened> {
    const loaded = fields(await this.call("session/load", { sessionId: id, cwd: directory, mcpServers: [] }))
    return { id, options: readOptions(loaded["configOptions"]) }
  }

  /** Opens a session again whose content is known, after the program was restarted. */
  async resumeSession(id: string, directory: string): Promise<Opened> {
    const resumed = fields(await this.call("session/resume", { sessionId: id, cwd: directory, mcpServers: [] }))
    return { id, options: readOptions(resumed["configOptions"]) }
  }

  async listSessions(directory: string): Promise<Listed[]> {
    const listed = fields(await this.call("session/list", { cwd: directory }))
    return list(listed["sessions"])
      .map(fields)
      .map((it) => ({
        id: text(it["sessionId"], 200),
        title: optionalText(it["title"], 200) ?? "Untitled",
        directory: text(it["cwd"], 4096),
        updated: text(it["updatedAt"], 40),
      }))
      .filter((it) => it.id !== "")
  }

  async closeSession(id: string): Promise<void> {
    await this.call("session/close", { sessionId: id })
  }

  async setOption(id: string, option: string, value: string): Promise<Option[]> {
    const params = { sessionId: id, configId: option, value }
    return readOptions(fields(await this.call("session/set_config_option", params))["configOptions"])
  }

  /** Runs a prompt to its end and returns why it ended. The user can cancel it, so it has no deadline. */
  async prompt(id: string, prompt: Block[]): Promise<string> {
    return text(fields(await this.connection.request("session/prompt", { sessionId: id, prompt }))["stopReason"], 40)
  }

  cancel(id: string): void {
    this.connection.notify("session/cancel", { sessionId: id })
  }

  /** Closes the input of the program, which ends it, and kills it if it does not end in time. */
  dispose(): void {
    if (this.isDisposed) return
    this.isDisposed = true
    this.child.stdin?.end()
    const timer = setTimeout(() => this.child.kill("SIGKILL"), END_DEADLINE_MS)
    this.child.once("exit", () => clearTimeout(timer))
  }

  private call(method: string, params: object): Promise<unknown> {
    return this.connection.request(method, params, REQUEST_DEADLINE_MS)
  }

  private async serve(method: string, params: ReturnType<typeof fields>, id: string): Promise<unknown> {
    const session = text(params["sessionId"], 200)
    switch (method) {
      case "session/request_permission": {
        const optionId = await this.handlers.permission(session, id, params)
        return { outcome: optionId === null ? { outcome: "cancelled" } : { outcome: "selected", optionId } }
      }
      case "fs/read_text_file":
        return { content: await this.handlers.readFile({ ...params, path: text(params["path"], 4096) }) }
      case "fs/write_text_file":
        if (typeof params["content"] !== "string") throw new RpcError(-32602, "`content` is missing")
        await this.handlers.writeFile({ path: text(params["path"], 4096), content: params["content"] })
        return {}
      default:
        throw new RpcError(-32601, `\`${method}\` is not supported`)
    }
  }
}

/** Whether an error means that the user has to sign in to a provider. */
export function isSignInMissing(error: unknown): boolean {
  return error instanceof RpcError && error.code === -32000
}
