// The editor channel: the terminal client opens files here and reads the selection. `editors/README.md` describes it.
import { randomBytes, timingSafeEqual } from "node:crypto"
import { createServer, type Server, type Socket } from "node:net"
import { fields, number, position, text } from "./read"
import { Lines } from "./rpc"

const MAX_LINE_BYTES = 8 << 20
const MAX_CONNECTIONS = 8
const MAX_WAITING = 16
const HELLO_DEADLINE_MS = 5000
export const MAX_PROBLEMS = 200

/** What the editor does for a client. */
export interface Desk {
  /** `line` and `character` count from 0. */
  open(path: string, line: number | undefined, character: number | undefined): Promise<void>
  diff(path: string, before: string, after: string | undefined): Promise<void>
  selection(): unknown
  problems(): unknown
}

export class Channel {
  private readonly token = randomBytes(24).toString("hex")
  private readonly sockets = new Set<Socket>()
  private readonly server: Server
  private port = 0

  private constructor(private readonly desk: Desk) {
    this.server = createServer((socket) => this.accept(socket))
  }

  /** Listens on a free port of the loopback address. */
  static open(desk: Desk): Promise<Channel> {
    const channel = new Channel(desk)
    return new Promise((resolve, reject) => {
      channel.server.once("error", reject)
      channel.server.listen({ host: "127.0.0.1", port: 0 }, () => {
        const address = channel.server.address()
        channel.port = typeof address === "object" && address !== null ? address.port : 0
        resolve(channel)
      })
    })
  }

  /** The value of `CODEWRIGHT_EDITOR`. */
  get value(): string {
    return `vscode:${this.port}:${this.token}`
  }

  dispose(): void {
    this.server.close()
    for (const socket of this.sockets) socket.destroy()
  }

  private accept(socket: Socket): void {
    if (this.sockets.size >= MAX_CONNECTIONS) return void socket.destroy()
    this.sockets.add(socket)
    const lines = new Lines(MAX_LINE_BYTES)
    const deadline = setTimeout(() => socket.destroy(), HELLO_DEADLINE_MS)
    let isKnown = false
    let waiting = 0
    let last: Promise<void> = Promise.resolve()
    socket.on("close", () => {
      clearTimeout(deadline)
      this.sockets.delete(socket)
    })
    socket.on("error", () => socket.destroy())
    socket.on("data", (chunk: Buffer) => {
      try {
        for (const line of lines.push(chunk)) {
          const request = fields(JSON.parse(line))
          if (!isKnown) {
            if (!this.isHello(request)) return void socket.destroy()
            isKnown = true
            clearTimeout(deadline)
          }
          waiting += 1
          if (waiting > MAX_WAITING) return void socket.destroy()
          last = last.then(async () => {
            const answer = await this.answer(request)
            waiting -= 1
            if (!socket.destroyed) socket.write(`${JSON.stringify(answer)}\n`)
          })
        }
      } catch {
        // The line is not JSON or too long.
        socket.destroy()
      }
    })
  }

  private isHello(request: ReturnType<typeof fields>): boolean {
    const given = Buffer.from(text(fields(request["params"])["token"], 256))
    const expected = Buffer.from(this.token)
    return request["method"] === "hello" && given.length === expected.length && timingSafeEqual(given, expected)
  }

  private async answer(request: ReturnType<typeof fields>): Promise<object> {
    const id = number(request["id"]) ?? (typeof request["id"] === "string" ? request["id"].slice(0, 200) : undefined)
    const base = id === undefined ? {} : { id }
    try {
      return { ...base, result: await this.perform(text(request["method"], 100), fields(request["params"])) }
    } catch (error) {
      return { ...base, error: { message: error instanceof Error ? error.message : String(error) } }
    }
  }

  private async perform(method: string, params: ReturnType<typeof fields>): Promise<unknown> {
    switch (method) {
      case "hello":
        return { editor: "vscode", version: 1 }
      case "open":
        await this.desk.open(text(params["path"], 4096), fromOne(params["line"]), fromOne(params["character"]))
        return {}
      case "diff": {
        const after = params["after"]
        const before = text(params["before"], MAX_LINE_BYTES)
        await this.desk.diff(text(params["path"], 4096), before, typeof after === "string" ? after : undefined)
        return {}
      }
      case "selection":
        return this.desk.selection()
      case "problems":
        return this.desk.problems()
      default:
        throw new Error(`there is no method \`${method}\``)
    }
  }
}

function fromOne(value: unknown): number | undefined {
  const found = position(value)
  return found === undefined ? undefined : Math.max(found - 1, 0)
}
