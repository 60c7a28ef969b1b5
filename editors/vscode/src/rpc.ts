// JSON-RPC 2.0 over lines, as the Agent Client Protocol uses it on the standard streams of a process.
import type { Readable, Writable } from "node:stream"
import { fields, number, text } from "./read"

/** The longest line, in bytes. The program accepts the same. */
export const MAX_LINE_BYTES = 64 << 20
/** The most requests that wait for an answer of the other side. */
export const MAX_WAITING = 256
/** The most requests of the other side that are not answered yet. */
export const MAX_SERVING = 256
/** The most bytes that the other side has not read yet. */
export const MAX_UNSENT_BYTES = 128 << 20

export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message)
  }
}

export interface Handlers {
  /** Answers a request. A thrown `RpcError` is sent as it is. */
  request(method: string, params: unknown, id: string): Promise<unknown>
  notification(method: string, params: unknown): void
  /** The connection has ended; called once. */
  closed(reason: string): void
}

interface Waiting {
  resolve(value: unknown): void
  reject(error: Error): void
  timer: NodeJS.Timeout | undefined
}

export class Connection {
  private readonly waiting = new Map<number, Waiting>()
  private next = 1
  private serving = 0
  private isClosed = false

  constructor(
    input: Readable,
    private readonly output: Writable,
    private readonly handlers: Handlers,
  ) {
    const lines = new Lines(MAX_LINE_BYTES)
    input.on("data", (chunk: Buffer) => {
      if (this.isClosed) return
      try {
        for (const line of lines.push(chunk)) this.receive(line)
      } catch (error) {
        this.close(error instanceof Error ? error.message : String(error))
      }
    })
    input.on("end", () => this.close("the program closed its output"))
    input.on("error", (error) => this.close(error.message))
    output.on("error", (error) => this.close(error.message))
  }

  /** Sends a request. Without a deadline it waits until the connection ends. */
  request(method: string, params: unknown, deadlineMs?: number): Promise<unknown> {
    if (this.isClosed) return Promise.reject(new Error("the program is not running"))
    if (this.waiting.size >= MAX_WAITING) return Promise.reject(new Error("too many requests wait for an answer"))
    const id = this.next++
    return new Promise((resolve, reject) => {
      const timer =
        deadlineMs === undefined
          ? undefined
          : setTimeout(() => {
              this.waiting.delete(id)
              reject(new Error(`\`${method}\` was not answered within ${Math.round(deadlineMs / 1000)} s`))
            }, deadlineMs)
      this.waiting.set(id, { resolve, reject, timer })
      this.write({ jsonrpc: "2.0", id, method, params })
    })
  }

  notify(method: string, params: unknown): void {
    this.write({ jsonrpc: "2.0", method, params })
  }

  close(reason: string): void {
    if (this.isClosed) return
    this.isClosed = true
    for (const { reject, timer } of this.waiting.values()) {
      clearTimeout(timer)
      reject(new Error(reason))
    }
    this.waiting.clear()
    this.handlers.closed(reason)
  }

  private write(message: unknown): void {
    if (this.isClosed) return
    if (this.output.writableLength > MAX_UNSENT_BYTES) return this.close("the program does not read its input")
    this.output.write(`${JSON.stringify(message)}\n`)
  }

  private receive(line: string): void {
    if (line.trim() === "") return
    let message: ReturnType<typeof fields>
    try {
      message = fields(JSON.parse(line))
    } catch {
      throw new Error("the program sent a line that is not JSON")
    }
    const id = message["id"]
    if (typeof message["method"] === "string") {
      if (id === undefined) this.handlers.notification(message["method"], message["params"])
      else void this.serve(message["method"], message["params"], id)
      return
    }
    const waiting = this.waiting.get(number(id) ?? 0)
    if (waiting === undefined) return
    this.waiting.delete(id as number)
    clearTimeout(waiting.timer)
    if (message["error"] === undefined) return waiting.resolve(message["result"])
    const error = fields(message["error"])
    const data = error["data"]
    const detail = typeof data === "string" && data !== "" ? `: ${text(data, 4000)}` : ""
    const reason = `${text(error["message"], 4000) || "the request failed"}${detail}`
    waiting.reject(new RpcError(number(error["code"]) ?? -32603, reason, data))
  }

  private async serve(method: string, params: unknown, id: unknown): Promise<void> {
    const answer = (body: object): void => this.write({ jsonrpc: "2.0", id, ...body })
    if (this.serving >= MAX_SERVING) return answer({ error: { code: -32000, message: "too many requests at a time" } })
    this.serving += 1
    try {
      answer({ result: (await this.handlers.request(method, params, String(id))) ?? null })
    } catch (error) {
      const code = error instanceof RpcError ? error.code : -32603
      answer({ error: { code, message: error instanceof Error ? error.message : String(error) } })
    } finally {
      this.serving -= 1
    }
  }
}

/** Splits bytes into lines without copying a long line for every chunk. */
export class Lines {
  private pieces: Buffer[] = []
  private length = 0

  constructor(private readonly limit: number) {}

  /** Returns the lines that are complete. Throws if a line is too long. */
  push(chunk: Buffer): string[] {
    const found: string[] = []
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      this.keep(chunk.subarray(from, end))
      found.push(Buffer.concat(this.pieces).toString("utf8"))
      this.pieces = []
      this.length = 0
      from = end + 1
    }
    if (from < chunk.length) this.keep(chunk.subarray(from))
    return found
  }

  private keep(piece: Buffer): void {
    this.length += piece.length
    if (this.length > this.limit) throw new Error(`a line is longer than ${this.limit >> 20} MiB`)
    this.pieces.push(piece)
  }
}
