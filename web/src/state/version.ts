// The service worker, and the prompt to reload when the server has a newer app.
import { createSignal } from "solid-js";

const [hasUpdate, setHasUpdate] = createSignal(false);
export { hasUpdate };

/** The names of the scripts of this page contain a digest of the app. */
const OWN = [...document.querySelectorAll<HTMLScriptElement>("script[src]")]
  .map((script) => script.getAttribute("src") ?? "")
  .join(" ");

interface WorkerPolicy {
  createScriptURL: (url: string) => string;
}

/** Registers the service worker, which makes the app installable and keeps its files. */
export function registerWorker(): void {
  if (!("serviceWorker" in navigator) || !isSecureContext) return;
  const types = (globalThis as { trustedTypes?: { createPolicy: (name: string, rules: WorkerPolicy) => WorkerPolicy } })
    .trustedTypes;
  // Only this one script can become a worker.
  const rules: WorkerPolicy = { createScriptURL: () => new URL("sw.js", document.baseURI).href };
  const policy = types?.createPolicy("codewright-worker", rules) ?? rules;
  // Without a worker the app works, too: private windows and some settings forbid it.
  navigator.serviceWorker.register(policy.createScriptURL("sw.js")).catch(() => {});
}

/** Looks for another version of the app. Called when the connection to the server is made again. */
export async function lookForUpdate(): Promise<void> {
  try {
    const page = await (await fetch(new URL(".", document.baseURI), { cache: "no-store" })).text();
    const scripts = [...page.matchAll(/<script[^>]* src="([^"]+)"/g)].map((match) => match[1]).join(" ");
    if (scripts && OWN && scripts !== OWN) setHasUpdate(true);
  } catch {
    // The next connection looks again.
  }
}
