// Reads values of unknown shape. Everything that another process or the view sends passes through these functions.

export type Fields = Record<string, unknown>

/** Returns the fields of an object, or no fields for any other value. */
export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

/** Returns a text of at most `limit` characters, or an empty one. */
export function text(value: unknown, limit = 1 << 20): string {
  return typeof value === "string" ? clipped(value, limit) : ""
}

export function optionalText(value: unknown, limit = 1 << 20): string | undefined {
  return typeof value === "string" && value !== "" ? clipped(value, limit) : undefined
}

/** Returns the entries of a list, at most `limit`. */
export function list(value: unknown, limit = 1000): unknown[] {
  return Array.isArray(value) ? value.slice(0, limit) : []
}

export function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined
}

/** Returns a number that can be a line or a column. */
export function position(value: unknown): number | undefined {
  const found = number(value)
  return found !== undefined && Number.isInteger(found) && found >= 0 && found <= 0x7fffffff ? found : undefined
}

/** Returns the beginning and the end of a text that is longer than the limit. */
export function clipped(value: string, limit: number): string {
  if (value.length <= limit) return value
  const half = limit >> 1
  return `${value.slice(0, half)}\n[${value.length - 2 * half} characters left out]\n${value.slice(-half)}`
}
