// Toasts: short messages at the corner that disappear by themselves. Errors stay longer.
import { createSignal, For, Show, type JSX } from "solid-js";
import { t } from "../text";
import { Button } from "./button";
import { Icon } from "./icon";

export interface Toast {
  text: string;
  kind?: "good" | "bad";
  action?: { label: string; run: () => void };
}

/** Older toasts make room for newer ones. */
const MAX_TOASTS = 4;
const SHOW_MS = 5_000;
const SHOW_LONG_MS = 10_000;

const [toasts, setToasts] = createSignal<Toast[]>([]);

function close(toast: Toast): void {
  setToasts((all) => all.filter((one) => one !== toast));
}

/** Shows a message. */
export function toast(toast: Toast): void {
  setToasts((all) => [...all.filter((one) => one.text !== toast.text), toast].slice(-MAX_TOASTS));
  setTimeout(() => close(toast), toast.kind === "bad" || toast.action ? SHOW_LONG_MS : SHOW_MS);
}

/** Shows the message of a failure. */
export function fail(error: unknown): void {
  toast({ text: error instanceof Error ? error.message : String(error), kind: "bad" });
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status" aria-live="polite">
      <For each={toasts()}>
        {(one) => (
          <div class={`toast ${one.kind ?? ""}`}>
            <Icon name={one.kind === "bad" ? "error" : "check"} />
            <span class="grow">{one.text}</span>
            <Show when={one.action}>
              {(action) => (
                <Button
                  small
                  onClick={() => {
                    close(one);
                    action().run();
                  }}
                >
                  {action().label}
                </Button>
              )}
            </Show>
            <Button small kind="quiet" icon="close" label={t.close} onClick={() => close(one)} />
          </div>
        )}
      </For>
    </div>
  );
}
