// The open sessions of a window: their state, and the requests of the user.
import { Agent, isSignInMissing, type Listed, type Opened } from "./agent"
import { build } from "./context"
import { readTextFile, writeTextFile } from "./files"
import type { Image, Phase, SessionTab, ToView } from "./messages"
import { fields, list } from "./read"
import { apply, newSession, readRequest, type Event, type Request, type Session } from "./transcript"

/** The most sessions that are open at a time. */
export const MAX_SESSIONS = 16
/** The most prompts of a session that wait for the ones before them. */
const MAX_QUEUED = 16
/** The most updates that are kept for a session whose request has not returned yet. */
const MAX_EARLY = 200

export interface Owner {
  /** Returns the program, or null if it is not installed. */
  program(): Promise<string | null>
  /** Returns the directory of new sessions, or null without an open folder. */
  directory(): string | null
  show(message: ToView): void
  /** Something changed that the status bar shows. */
  changed(): void
  /** A request waits for the user. */
  requested(session: Session, request: Request): void
  /** A tool call of a session has a new state. */
  called(update: unknown): void
  /** The agent writes a file through the editor. */
  written(file: string, before: string | null): void
  /** A turn has ended. */
  settled(): void
  log(line: string): void
  remember(session: string | undefined): void
  remembered(): string | undefined
}

interface Pending {
  session: string
  resolve(choice: string | null): void
}

export class Sessions {
  phase: Phase = { name: "starting" }
  private agent: Agent | null = null
  private starting: Promise<Agent | null> | null = null
  private readonly open = new Map<string, Session>()
  private readonly turns = new Map<string, number>()
  private readonly pending = new Map<string, Pending>()
  private readonly early = new Map<string, unknown[]>()
  private opening = 0
  private activeId: string | undefined

  constructor(private readonly owner: Owner) {}

  get active(): Session | null {
    return this.activeId === undefined ? null : (this.open.get(this.activeId) ?? null)
  }

  get all(): Session[] {
    return [...this.open.values()]
  }

  tabs(): SessionTab[] {
    return this.all.map(({ id, title, isRunning, requests }) => ({
      id,
      title,
      isRunning,
      isWaiting: requests.length > 0,
    }))
  }

  state(): ToView {
    return { type: "state", phase: this.phase, tabs: this.tabs(), session: this.active }
  }

  /** Starts the program, unless it runs, and opens the last session or a new one. */
  async start(): Promise<void> {
    const agent = await this.running()
    if (agent === null || this.active !== null) return
    const last = this.owner.remembered()
    if (
      last !== undefined &&
      (await this.load(last).then(
        () => true,
        () => false,
      ))
    )
      return
    await this.create()
  }

  /** Ends the program and starts it again with the session that was active. */
  async restart(): Promise<void> {
    this.dispose()
    this.open.clear()
    this.activeId = undefined
    await this.start()
  }

  dispose(): void {
    const agent = this.agent
    this.agent = null
    this.starting = null
    agent?.dispose()
    this.settleAll()
  }

  /** Creates a session and shows it. */
  async create(): Promise<Session> {
    const agent = await this.required()
    const directory = this.requiredDirectory()
    const opened = await this.opened(() => agent.newSession(directory))
    return this.add(opened, directory)
  }

  /** Opens a stored session and shows it. */
  async load(id: string): Promise<Session> {
    const known = this.open.get(id)
    if (known !== undefined) return this.activate(known)
    const agent = await this.required()
    const directory = this.requiredDirectory()
    // Its content arrives before the response.
    const session = newSession(id, directory)
    this.makeRoom()
    this.open.set(id, session)
    try {
      apply(session, { kind: "options", options: (await agent.loadSession(id, directory)).options })
      const listed = await agent.listSessions(directory)
      session.title = listed.find((it) => it.id === id)?.title ?? session.title
    } catch (error) {
      this.open.delete(id)
      throw error
    }
    return this.activate(session)
  }

  async stored(): Promise<Listed[]> {
    return (await this.required()).listSessions(this.requiredDirectory())
  }

  switchTo(id: string): void {
    const session = this.open.get(id)
    if (session !== undefined) this.activate(session)
  }

  /** Closes a session. It stays in the list of stored sessions. */
  async close(id: string): Promise<void> {
    if (!this.open.delete(id)) return
    this.turns.delete(id)
    this.settle(id)
    if (this.activeId === id) this.activeId = this.all.at(-1)?.id
    this.owner.remember(this.activeId)
    this.owner.show(this.state())
    this.owner.changed()
    await this.agent?.closeSession(id)
    if (this.active === null) await this.create()
  }

  /** Sends a prompt to the active session, or to a new one. */
  async prompt(text: string, images: Image[] = []): Promise<void> {
    if (text.trim() === "" && images.length === 0) return
    const agent = await this.required()
    const session = this.active ?? (await this.create())
    const waiting = this.turns.get(session.id) ?? 0
    if (waiting >= MAX_QUEUED) throw new Error(`${MAX_QUEUED} prompts wait already`)
    const built = await build(text, images, session.directory)
    this.emit(session, { kind: "user", text, attachments: built.attachments })
    if (built.missing.includes("selection")) this.fail(session, "Nothing is selected, so `@selection` was not added.")
    this.turns.set(session.id, waiting + 1)
    this.emit(session, { kind: "running", isRunning: true })
    this.changed()
    try {
      const reason = await agent.prompt(session.id, built.blocks)
      if (reason !== "end_turn") this.fail(session, ENDINGS[reason] ?? `The turn ended: ${reason}.`)
    } catch (error) {
      this.fail(session, error instanceof Error ? error.message : String(error), isSignInMissing(error))
    } finally {
      const left = (this.turns.get(session.id) ?? 1) - 1
      this.turns.set(session.id, left)
      if (left <= 0) this.emit(session, { kind: "running", isRunning: false })
      this.changed()
      this.owner.settled()
    }
  }

  cancel(): void {
    const session = this.active
    if (session === null) return
    this.settle(session.id)
    this.agent?.cancel(session.id)
  }

  /** Answers a permission request or a question. The first answer counts. */
  answer(request: string, choice: string | null): void {
    const waiting = this.pending.get(request)
    if (waiting === undefined) return
    this.pending.delete(request)
    const session = this.open.get(waiting.session)
    if (session !== undefined) this.emit(session, { kind: "answered", id: request })
    this.changed()
    waiting.resolve(choice)
  }

  async setOption(option: string, value: string): Promise<void> {
    const [agent, session] = [await this.required(), this.active]
    if (session === null) return
    this.emit(session, { kind: "options", options: await agent.setOption(session.id, option, value) })
    this.changed()
  }

  private async required(): Promise<Agent> {
    const agent = await this.running()
    if (agent !== null) return agent
    throw new Error(this.phase.name === "failed" ? this.phase.reason : "The program `codewright` is not installed.")
  }

  private requiredDirectory(): string {
    const directory = this.owner.directory()
    if (directory === null) throw new Error("Open a folder first.")
    return directory
  }

  private running(): Promise<Agent | null> {
    if (this.agent !== null) return Promise.resolve(this.agent)
    this.starting ??= this.launch().finally(() => {
      this.starting = null
    })
    return this.starting
  }

  private async launch(): Promise<Agent | null> {
    this.become({ name: "starting" })
    const directory = this.owner.directory()
    if (directory === null) return this.become({ name: "failed", reason: "Open a folder first." })
    const program = await this.owner.program()
    if (program === null) return this.become({ name: "missing" })
    try {
      const agent = await Agent.start(program, directory, {
        update: (session, update) => this.updated(session, update),
        permission: (session, request, params) => this.permission(session, request, params),
        readFile: readTextFile,
        writeFile: (params) => writeTextFile(params, (file, before) => this.owner.written(file, before)),
        log: (line) => this.owner.log(line),
        ended: (reason) => this.ended(reason),
      })
      this.owner.log(`Started ${program}, version ${agent.programVersion}`)
      await this.reopen(agent)
      this.agent = agent
      this.become({ name: "ready" })
      return agent
    } catch (error) {
      return this.become({ name: "failed", reason: error instanceof Error ? error.message : String(error) })
    }
  }

  /** Opens the sessions again that were open when the program ended. */
  private async reopen(agent: Agent): Promise<void> {
    for (const session of this.all) {
      try {
        session.options = (await agent.resumeSession(session.id, session.directory)).options
      } catch {
        this.open.delete(session.id)
        if (this.activeId === session.id) this.activeId = undefined
      }
    }
  }

  private become(phase: Phase): null {
    this.phase = phase
    this.owner.show(this.state())
    this.owner.changed()
    return null
  }

  /** The program has ended. The sessions are stored, so a restart opens them again. */
  private ended(reason: string): void {
    this.agent = null
    this.settleAll()
    this.owner.log(`The program ended: ${reason}`)
    this.become({ name: "failed", reason })
  }

  private settleAll(): void {
    for (const id of this.open.keys()) this.settle(id)
  }

  /** Ends the requests of a session that wait for the user. */
  private settle(id: string): void {
    for (const [request, waiting] of this.pending) if (waiting.session === id) this.answer(request, null)
  }

  private async opened(open: () => Promise<Opened>): Promise<Opened> {
    this.opening += 1
    try {
      return await open()
    } finally {
      this.opening -= 1
    }
  }

  private add({ id, options }: Opened, directory: string): Session {
    this.makeRoom()
    const session = newSession(id, directory)
    session.options = options
    this.open.set(id, session)
    for (const update of this.early.get(id) ?? []) apply(session, { kind: "update", update })
    this.early.clear()
    return this.activate(session)
  }

  /** Closes the oldest session that does nothing, if too many are open. */
  private makeRoom(): void {
    if (this.open.size < MAX_SESSIONS) return
    const oldest = this.all.find((it) => !it.isRunning && it.id !== this.activeId)
    if (oldest === undefined) throw new Error(`${MAX_SESSIONS} sessions are open already`)
    this.open.delete(oldest.id)
    this.agent?.closeSession(oldest.id).catch(() => {
      // The program has ended, and the session with it.
    })
  }

  private activate(session: Session): Session {
    this.activeId = session.id
    this.owner.remember(session.id)
    this.owner.show(this.state())
    this.owner.changed()
    return session
  }

  private updated(id: string, update: unknown): void {
    const session = this.open.get(id)
    if (session !== undefined) {
      this.emit(session, { kind: "update", update })
      const kind = fields(update)["sessionUpdate"]
      if (kind === "tool_call_update") this.owner.called(update)
      if (kind === "usage_update" || kind === "session_info_update" || kind === "config_option_update") this.changed()
    } else if (this.opening > 0) {
      const kept = this.early.get(id) ?? []
      if (kept.length < MAX_EARLY) this.early.set(id, [...kept, update])
    }
  }

  private permission(id: string, call: string, params: unknown): Promise<string | null> {
    const session = this.open.get(id)
    if (session === undefined || list(fields(params)["options"]).length === 0) return Promise.resolve(null)
    const request = readRequest(`${id}/${call}`, params)
    return new Promise((resolve) => {
      const known = new Set(request.choices.map((choice) => choice.id))
      const checked = (choice: string | null): void => resolve(choice !== null && known.has(choice) ? choice : null)
      this.pending.set(request.id, { session: id, resolve: checked })
      this.emit(session, { kind: "request", request })
      this.changed()
      this.owner.requested(session, request)
    })
  }

  private fail(session: Session, text: string, signIn = false): void {
    this.emit(session, { kind: "error", text, signIn })
  }

  private emit(session: Session, event: Event): void {
    apply(session, event)
    if (session.id === this.activeId) this.owner.show({ type: "event", session: session.id, event })
  }

  private changed(): void {
    this.owner.show({ type: "tabs", phase: this.phase, tabs: this.tabs() })
    this.owner.changed()
  }
}

const ENDINGS: Record<string, string> = {
  cancelled: "Cancelled.",
  max_tokens: "The answer reached the model's limit and is incomplete.",
  max_turn_requests: "The turn reached the limit of requests.",
  refusal: "The model refused to answer.",
}
