// Times, sizes and numbers for people.

const MINUTE = 60_000;
const DAY = 86_400_000;

/** Returns a duration: `3s`, `1m 20s`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m ${seconds % 60}s` : `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
}

/**
 * Returns how long ago a time was, in short: `now`, `5m`, `3h`, `2d`, or the date. A clock that is ahead counts as now.
 */
export function ago(time: number, now = Date.now()): string {
  const ms = now - time;
  if (ms < MINUTE) return "now";
  if (ms < 60 * MINUTE) return `${Math.floor(ms / MINUTE)}m`;
  if (ms < DAY) return `${Math.floor(ms / 3_600_000)}h`;
  if (ms < 14 * DAY) return `${Math.floor(ms / DAY)}d`;
  return new Date(time).toLocaleDateString(undefined, { month: "short", day: "numeric" });
}

export function clock(time: number): string {
  return new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

export function dateTime(time: number): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** Returns the group of a time in lists. */
export function dayGroup(time: number, now = Date.now()): "today" | "yesterday" | "thisWeek" | "earlier" {
  const start = new Date(now).setHours(0, 0, 0, 0);
  if (time >= start) return "today";
  if (time >= start - DAY) return "yesterday";
  return time >= start - 6 * DAY ? "thisWeek" : "earlier";
}

export function count(value: number): string {
  if (value < 1_000) return String(Math.round(value));
  if (value < 1_000_000) return `${(value / 1_000).toFixed(value < 10_000 ? 1 : 0)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

/**
 * Returns a whole number with commas. Loading the number formats of the browser would take longer than the first view.
 */
export function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function bytes(value: number): string {
  if (value < 1_024) return `${value} B`;
  if (value < 1_048_576) return `${(value / 1_024).toFixed(0)} KiB`;
  return `${(value / 1_048_576).toFixed(1)} MiB`;
}

export function money(value: number): string {
  return value === 0 ? "$0" : value < 0.01 ? "<$0.01" : `$${value.toFixed(2)}`;
}

/** Returns the last name of a path. */
export function baseName(path: string): string {
  return path.replace(/\/+$/, "").split("/").at(-1) || path;
}

/** Returns a path with `~` for the home directory. */
export function shortPath(path: string, home: string): string {
  return home && (path === home || path.startsWith(`${home}/`)) ? `~${path.slice(home.length)}` : path;
}
