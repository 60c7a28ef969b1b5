// Dialogs: the browser's modal element, which keeps the focus inside and returns it.
import { createUniqueId, onCleanup, onMount, Show, type JSX } from "solid-js";
import { t } from "../text";
import { Button } from "./button";

interface Props {
  title: string;
  onClose: () => void;
  children: JSX.Element;
  foot?: JSX.Element;
  wide?: boolean;
  /** A dialog near the top whose content brings its own head, such as a picker. */
  bare?: boolean;
  class?: string;
  role?: "dialog" | "alertdialog";
}

export function Dialog(props: Props): JSX.Element {
  const title = createUniqueId();
  let element!: HTMLDialogElement;
  const before = document.activeElement;
  onMount(() => {
    element.showModal();
    onCleanup(() => {
      element.close();
      // The browser returns the focus only if the dialog still exists when it closes.
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    });
  });
  return (
    <dialog
      ref={element}
      role={props.role}
      class={`dialog ${props.wide ? "wide" : ""} ${props.bare ? "top" : ""} ${props.class ?? ""}`}
      aria-labelledby={props.bare ? undefined : title}
      aria-label={props.bare ? props.title : undefined}
      on:cancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      on:mousedown={(event) => {
        if (event.target === element) props.onClose();
      }}
    >
      <Show when={!props.bare} fallback={props.children}>
        <div class="dialog-head">
          <h2 id={title}>{props.title}</h2>
          <Button kind="quiet" icon="close" label={t.close} onClick={() => props.onClose()} />
        </div>
        <div class="dialog-body" tabindex={-1}>
          {props.children}
        </div>
        <Show when={props.foot}>
          <div class="dialog-foot">{props.foot}</div>
        </Show>
      </Show>
    </dialog>
  );
}
