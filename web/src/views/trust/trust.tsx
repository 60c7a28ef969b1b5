// The dialog of workspace trust: what a repository's configuration requests, and the user's decision.
import { createEffect, createSignal, For, Show, type JSX } from "solid-js";
import { openDialog, dialogs } from "../../app/dialogs";
import { call, type Trust } from "../../api";
import { currentDirectory } from "../../state/actions";
import { placeOf, type Place } from "../../state/place";
import { state } from "../../state/mirror";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { plain } from "../../ui/text";
import { toast } from "../../ui/toast";

/** A key or click that was meant for the page under the dialog is ignored for this time. */
const EARLY_MS = 300;
/** A user who typed less than this ago is still typing. */
const TYPING_MS = 700;

/** The decisions that were put off, by root and digest. */
let stored: Set<string> | null = null;
/** Read when a decision is needed: the first access to a storage takes some milliseconds. */
const later = () => (stored ??= new Set(read()));
let typed = -Infinity;
addEventListener("keydown", (event) => {
  if (event.target instanceof HTMLTextAreaElement) typed = performance.now();
});

function read(): string[] {
  try {
    return JSON.parse(sessionStorage.getItem("codewright.trust") ?? "[]") as string[];
  } catch {
    return [];
  }
}

function putOff(trust: Trust): void {
  later().add(name(trust));
  try {
    sessionStorage.setItem("codewright.trust", JSON.stringify([...later()]));
  } catch {
    // The dialog appears again after a reload.
  }
}

const name = (trust: Trust) => `${trust.root}\n${trust.fingerprint}`;

/** Opens the dialog in a directory that the user has not decided about. */
export function TrustGuard(): JSX.Element {
  createEffect(() => {
    if (!state.ready) return;
    const directory = currentDirectory();
    if (!directory) return;
    const place = placeOf(directory);
    const trust = place.trust();
    if (trust?.status !== "undecided" || later().has(name(trust)) || dialogs().length > 0) return;
    const wait = Math.max(0, typed + TYPING_MS - performance.now());
    setTimeout(() => {
      const now = place.trust();
      if (now?.status === "undecided" && !later().has(name(now)) && dialogs().length === 0) openTrust(place);
    }, wait);
  });
  return null;
}

export function openTrust(place: Place): void {
  openDialog((dialog) => <TrustDialog place={place} close={dialog.close} />);
}

function TrustDialog(props: { place: Place; close: () => void }): JSX.Element {
  const [problem, setProblem] = createSignal("");
  const [isDeciding, setDeciding] = createSignal(false);
  let shown = performance.now();
  let first!: HTMLButtonElement;
  const trust = () => props.place.trust();
  const isEarly = () => isDeciding() || performance.now() - shown < EARLY_MS;

  const close = () => {
    const now = trust();
    if (isEarly()) return;
    props.close();
    if (now?.status !== "undecided") return;
    putOff(now);
    // Then the server shows its question at the first prompt.
    call("POST /trust/dismiss", {
      query: { directory: props.place.directory },
      body: { fingerprint: now.fingerprint },
    }).catch(() => {});
  };
  const decide = async (decision: "trust" | "restrict") => {
    const now = trust();
    if (!now || isEarly()) return;
    setDeciding(true);
    try {
      const after = await call("POST /trust", {
        query: { directory: props.place.directory },
        body: { decision, fingerprint: now.fingerprint },
      });
      props.place.trust.set(after);
      props.close();
      if (after.status !== (decision === "trust" ? "trusted" : "restricted") && after.status !== "unneeded")
        toast({ text: t.trustOverridden, kind: "bad" });
    } catch (error) {
      // The control files changed: display them again.
      await props.place.trust.refresh();
      setProblem(t.notStored(error instanceof Error ? error.message : String(error)));
      shown = performance.now();
      first.focus();
    } finally {
      setDeciding(false);
    }
  };
  const isDecided = (one: Trust) => one.status === "unneeded" || (one.status !== "undecided" && !one.limit);
  return (
    <Show when={trust()}>
      {(now) => (
        <Dialog
          title={now().status === "undecided" ? t.trustTitle : t.trust}
          onClose={close}
          role="alertdialog"
          class="trust"
          foot={
            <>
              <Button autofocus ref={(element: HTMLButtonElement) => (first = element)} onClick={close}>
                {isDecided(now()) ? t.close : t.trustLater}
              </Button>
              <Show when={!isDecided(now()) || now().status === "trusted"}>
                <Button onClick={() => void decide("restrict")}>{t.trustNo}</Button>
              </Show>
              <Show when={!now().limit && now().status !== "unneeded" && now().status !== "trusted"}>
                <Button kind="primary" onClick={() => void decide("trust")}>
                  {t.trustYes}
                </Button>
              </Show>
            </>
          }
        >
          <p class="mono">{plain(now().root)}</p>
          <p>{t.trustAbout[now().status]}</p>
          <Show when={now().limit}>{(limit) => <p class="notice warn">{t.trustLimit(plain(limit()))}</p>}</Show>
          <Show when={problem()}>
            <p class="notice bad" role="alert">
              {problem()}
            </p>
          </Show>
          <Show when={now().changes.length > 0}>
            <h3>{t.trustChanged}</h3>
            <ul class="trust-list">
              <For each={now().changes}>
                {(change) => (
                  <li>
                    <span class="mono">{plain(change.path)}</span> <span class="badge">{change.kind}</span>
                  </li>
                )}
              </For>
            </ul>
          </Show>
          <Show when={now().requests.length > 0}>
            <h3>{t.trustRequests(now().requests.length)}</h3>
            <ul class="trust-list">
              <For each={now().requests}>
                {(request) => (
                  <li>
                    {plain(request.text)} <span class="muted mono">{plain(request.source)}</span>
                  </li>
                )}
              </For>
            </ul>
          </Show>
        </Dialog>
      )}
    </Show>
  );
}
