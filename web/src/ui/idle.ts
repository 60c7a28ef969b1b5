// Work that can wait until the page has nothing else to do.

/** The longest wait. A page that streams is never idle. */
const MAX_MS = 1_000;
/** The wait in browsers that do not report idle times. */
const USUAL_MS = 300;

/** Waits until the page is idle. */
export function idle(): Promise<void> {
  if (typeof requestIdleCallback !== "function") return new Promise((resolve) => setTimeout(resolve, USUAL_MS));
  return new Promise((resolve) => requestIdleCallback(() => resolve(), { timeout: MAX_MS }));
}
