/** Time limits for code of plugins. */
import { DeadlineError } from "./errors.js";

/**
 * Runs `run` and waits at most `milliseconds` for its result. A result that comes later is ignored;
 * `late` gets an error that comes later.
 */
export async function withDeadline<T>(
  what: string,
  milliseconds: number,
  run: () => T | Promise<T>,
  late?: (error: unknown) => void,
): Promise<T> {
  const result = run();
  // Most hooks are synchronous or settle at once. A timer is only started for the others.
  if (!isThenable(result)) return result;
  let timer: NodeJS.Timeout | undefined;
  let expired = false;
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      expired = true;
      reject(new DeadlineError(what, milliseconds));
    }, milliseconds);
  });
  try {
    return await Promise.race([result, expiry]);
  } finally {
    clearTimeout(timer);
    if (expired) Promise.resolve(result).catch((error: unknown) => late?.(error));
  }
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
