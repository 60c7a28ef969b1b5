// The text of a prompt.
import { createEffect, on, onCleanup, onMount, Show, type JSX } from "solid-js";
import { t } from "../../../text";
import type { Draft } from "../draft";
import type { Completer } from "./completer";

interface Props {
  draft: Draft;
  completer: Completer;
  /** Receives the field when it exists. */
  onField: (field: HTMLTextAreaElement) => void;
  /** Called when the user typed something. */
  onType: () => void;
  onKey: (event: KeyboardEvent) => void;
  onFiles: (files: Iterable<File>) => void;
}

export function Field(props: Props): JSX.Element {
  let area!: HTMLTextAreaElement;
  // Newer browsers grow the field by a rule of the style sheet, which needs no layout in between.
  const isGrownByStyle = CSS.supports("field-sizing", "content");
  const grow = () => {
    if (isGrownByStyle) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight + 2, innerHeight * 0.4)}px`;
  };
  createEffect(
    on(
      () => props.draft.text(),
      (text) => {
        if (area.value !== text) area.value = text;
        grow();
      },
    ),
  );
  onMount(() => {
    grow();
    // On a touch screen the keyboard would cover the session. Both need a layout, which the next frame makes anyway.
    const focusing = requestAnimationFrame(() => {
      if (matchMedia("(hover: hover)").matches) area.focus({ preventScroll: true });
    });
    onCleanup(() => cancelAnimationFrame(focusing));
    const attach = (event: Event) => props.onFiles((event as CustomEvent<File[]>).detail);
    area.addEventListener("attach", attach);
    onCleanup(() => area.removeEventListener("attach", attach));
  });
  const isShell = () => props.draft.isShell();
  const isCompleting = () => props.completer.found().length > 0;
  return (
    <div class="composer-text">
      <Show when={isShell()}>
        <span class="composer-mark mono" aria-hidden="true">
          $
        </span>
      </Show>
      <textarea
        id="prompt"
        ref={(element) => {
          area = element;
          props.onField(element);
        }}
        rows={1}
        dir="auto"
        class={isShell() ? "mono" : ""}
        aria-label={isShell() ? t.shellPlaceholder : t.promptLabel}
        placeholder={isShell() ? t.shellPlaceholder : t.promptPlaceholder}
        value={props.draft.text()}
        spellcheck={!isShell()}
        aria-controls={isCompleting() ? "completion" : undefined}
        aria-autocomplete="list"
        aria-activedescendant={isCompleting() ? `completion-${props.completer.selected()}` : undefined}
        onInput={(event) => {
          props.onType();
          props.draft.setText(event.currentTarget.value);
          void props.completer.look();
        }}
        onKeyDown={(event) => props.onKey(event)}
        onClick={() => void props.completer.look()}
        onBlur={() => props.completer.hide()}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          if (files.length === 0) return;
          event.preventDefault();
          props.onFiles(files);
        }}
      />
    </div>
  );
}
