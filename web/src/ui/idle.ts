// Work that can wait until the first view is drawn, or until the page has nothing else to do.
import { batch, createSignal, untrack } from "solid-js";

/** The longest wait. A page that streams is never idle. */
const MAX_MS = 1_000;
/** The wait in browsers that do not report idle times. */
const USUAL_MS = 300;

/** Waits until the page is idle. */
export function idle(): Promise<void> {
  if (typeof requestIdleCallback !== "function") return new Promise((resolve) => setTimeout(resolve, USUAL_MS));
  return new Promise((resolve) => requestIdleCallback(() => resolve(), { timeout: MAX_MS }));
}

/** Whether the first view has been drawn. */
const [isDrawn, setDrawn] = createSignal(false);
export { isDrawn };
const later: (() => void)[] = [];

/** Runs what the first view does not need once it is drawn, so that its work does not delay the view. */
export function afterFirstView(run: () => void): void {
  if (untrack(isDrawn)) run();
  else later.push(run);
}

/** Called when the elements of the first view exist. The next frame draws them; a hidden page has no frames. */
export function firstViewExists(): void {
  const end = () => {
    if (isDrawn()) return;
    batch(() => {
      setDrawn(true);
      for (const run of later.splice(0)) {
        try {
          run();
        } catch (error) {
          reportError(error);
        }
      }
    });
  };
  requestAnimationFrame(() => setTimeout(end));
  setTimeout(end, USUAL_MS);
}
