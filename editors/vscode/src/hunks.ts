// The differences between two texts as hunks that can be accepted or rejected one by one. Pure functions.
import { diffArrays } from "diff"

/** How long a comparison may take, in milliseconds. A longer one yields one hunk for everything. */
const DIFF_DEADLINE_MS = 500

/** A run of changed lines. Lines count from 0. */
export interface Hunk {
  /** The first line in the text before, and how many lines it has there. */
  before: { line: number; count: number }
  /** The first line in the text after, and how many lines it has there. */
  after: { line: number; count: number }
}

/** Splits a text into lines that keep their ends, so that joining them restores the text. */
export function lines(value: string): string[] {
  return value.match(/[^\n]*\n|[^\n]+$/g) ?? []
}

export function hunks(before: string, after: string): Hunk[] {
  if (before === after) return []
  const [old, young] = [lines(before), lines(after)]
  const changes = diffArrays(old, young, { timeout: DIFF_DEADLINE_MS })
  if (changes === undefined) {
    return [{ before: { line: 0, count: old.length }, after: { line: 0, count: young.length } }]
  }
  const found: Hunk[] = []
  let [oldLine, youngLine] = [0, 0]
  let open: Hunk | null = null
  for (const { added, removed, value } of changes) {
    if (!added && !removed) {
      oldLine += value.length
      youngLine += value.length
      open = null
      continue
    }
    if (open === null) {
      open = { before: { line: oldLine, count: 0 }, after: { line: youngLine, count: 0 } }
      found.push(open)
    }
    if (removed) {
      open.before.count += value.length
      oldLine += value.length
    } else {
      open.after.count += value.length
      youngLine += value.length
    }
  }
  return found
}

/** Returns the text after without the hunk. */
export function reject(before: string, after: string, hunk: Hunk): string {
  const restored = lines(before).slice(hunk.before.line, hunk.before.line + hunk.before.count)
  return lines(after)
    .toSpliced(hunk.after.line, hunk.after.count, ...restored)
    .join("")
}

/** Returns the text before with the hunk, so that the hunk is no difference any more. */
export function accept(before: string, after: string, hunk: Hunk): string {
  const kept = lines(after).slice(hunk.after.line, hunk.after.line + hunk.after.count)
  return lines(before)
    .toSpliced(hunk.before.line, hunk.before.count, ...kept)
    .join("")
}

/** Returns the hunk at a line of the text after. A hunk that only removed lines is at the line that follows them. */
export function hunkAt(found: Hunk[], line: number): Hunk | undefined {
  return found.find(({ after }) => line >= after.line && line < after.line + Math.max(after.count, 1))
}

/** Returns the smallest replacement that turns one text into another, as offsets. */
export function replacement(from: string, to: string): { start: number; end: number; text: string } {
  const most = Math.min(from.length, to.length)
  let start = 0
  while (start < most && from[start] === to[start]) start += 1
  let tail = 0
  while (tail < most - start && from[from.length - 1 - tail] === to[to.length - 1 - tail]) tail += 1
  // Both halves of a pair belong to the replacement.
  if (start > 0 && isHighSurrogate(from.charCodeAt(start - 1))) start -= 1
  if (tail > 0 && isLowSurrogate(from.charCodeAt(from.length - tail))) tail -= 1
  return { start, end: from.length - tail, text: to.slice(start, to.length - tail) }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff
}
