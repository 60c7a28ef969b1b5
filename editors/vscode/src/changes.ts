// The files that the agent has changed, with the text before its first change.
//
// The text before a change is known exactly if the agent writes through the editor. Otherwise it is computed from the
// result of a tool call: the patches of all calls are reversed on the present text, newest first.
import { applyPatch, parsePatch, reversePatch } from "diff"
import { fields, list, text } from "./read"
import { MAX_DIFF_TEXT, readDifferences } from "./transcript"

/** The most changed files that are remembered; the oldest is accepted when there are more. */
export const MAX_FILES = 300
/** The largest text that is compared, in characters. Larger files are listed without hunks. */
export const MAX_COMPARED = 2 << 20
/** The most patches of a file that are remembered. */
const MAX_PATCHES = 200

/** A change of a file in the result of a tool call. */
export type Step =
  | { kind: "patch"; path: string; patch: string }
  | { kind: "fragment"; path: string; before: string; after: string }
  | { kind: "created"; path: string }

interface Tracked {
  /** The text before, `null` if the file did not exist, or `undefined` if it is not known. */
  before: string | null | undefined
  /** The steps since the text before, unless that is known exactly. */
  steps: Step[]
  isExact: boolean
}

export class Changes {
  private readonly files = new Map<string, Tracked>()

  /** The changed files with the texts before, in the order of their first change. */
  entries(): [path: string, before: string | null | undefined][] {
    return [...this.files].map(([path, tracked]) => [path, tracked.before])
  }

  before(path: string): string | null | undefined {
    return this.files.get(path)?.before
  }

  has(path: string): boolean {
    return this.files.has(path)
  }

  /** Notes that the agent writes a file whose present text is known. The first one counts. */
  written(path: string, before: string | null): void {
    if (this.files.has(path)) return
    this.add(path, { before: tooLarge(before) ? undefined : before, steps: [], isExact: true })
  }

  /** Notes the result of a tool call. `current` is the present text, or `null` if there is no file. */
  stepped(step: Step, current: string | null): void {
    const known = this.files.get(step.path)
    if (known?.isExact) return
    const steps = [...(known?.steps ?? []), step].slice(-MAX_PATCHES)
    const before = tooLarge(current) ? undefined : undo(steps, current)
    if (known === undefined) this.add(step.path, { before, steps, isExact: false })
    else Object.assign(known, { steps, before: before === undefined ? known.before : before })
  }

  /** Sets the text before, after the user has accepted or rejected a part. */
  settle(path: string, before: string | null): void {
    if (this.files.has(path)) this.files.set(path, { before, steps: [], isExact: true })
  }

  forget(path: string): void {
    this.files.delete(path)
  }

  clear(): void {
    this.files.clear()
  }

  private add(path: string, tracked: Tracked): void {
    this.files.set(path, tracked)
    if (this.files.size <= MAX_FILES) return
    const oldest = this.files.keys().next().value
    if (oldest !== undefined) this.files.delete(oldest)
  }
}

function tooLarge(value: string | null): boolean {
  return value !== null && value.length > MAX_COMPARED
}

/** Reverses steps, newest first. Returns undefined if one does not fit. */
function undo(steps: Step[], current: string | null): string | null | undefined {
  let value: string | null = current
  for (const step of steps.toReversed()) {
    const before = undoStep(step, value)
    if (before === undefined) return undefined
    value = before
  }
  return value
}

function undoStep(step: Step, current: string | null): string | null | undefined {
  if (step.kind === "created") return null
  if (step.kind === "fragment") {
    const at = current?.indexOf(step.after) ?? -1
    if (current === null || at === -1 || step.after === "") return undefined
    return current.slice(0, at) + step.before + current.slice(at + step.after.length)
  }
  try {
    const patch = parsePatch(step.patch)[0]
    if (patch === undefined) return undefined
    const isNew = patch.hunks.length > 0 && patch.hunks.every((hunk) => hunk.oldLines === 0)
    const before = applyPatch(current ?? "", reversePatch(patch), { fuzzFactor: 0, autoConvertLineEndings: true })
    if (before === false) return undefined
    return isNew && before === "" ? null : before
  } catch {
    // The patch is not valid, so the text before is not known.
    return undefined
  }
}

/** Reads the changes of files from the update of a completed tool call. */
export function readSteps(update: unknown): Step[] {
  const it = fields(update)
  if (it["status"] !== "completed") return []
  const metadata = fields(fields(it["rawOutput"])["metadata"])
  const filediff = fields(metadata["filediff"])
  const found: Step[] = []
  const patch = (path: unknown, patch: unknown): void => {
    if (typeof path === "string" && path !== "" && typeof patch === "string" && patch !== "") {
      found.push({ kind: "patch", path, patch: patch.slice(0, MAX_COMPARED) })
    }
  }
  patch(filediff["file"], filediff["patch"])
  for (const file of list(metadata["files"], MAX_FILES).map(fields)) {
    if (typeof file["movePath"] === "string" && file["movePath"] !== "")
      found.push({ kind: "created", path: file["movePath"] })
    patch(file["filePath"], file["patch"])
  }
  if (found.length > 0) return found
  if (metadata["exists"] === false) return [{ kind: "created", path: text(metadata["filepath"], 4096) }]
  return readDifferences(it["content"])
    .filter(({ path, after }) => path !== "" && after.length < MAX_DIFF_TEXT)
    .map((difference) => ({ kind: "fragment", ...difference }))
}
