// The list of what completes the prompt.
import { createEffect, For, Show, type JSX } from "solid-js";
import { t } from "../../../text";
import { Icon } from "../../../ui/icon";
import { plain, prose } from "../../../ui/text";
import type { Completer } from "./completer";

export function CompletionList(props: { completer: Completer }): JSX.Element {
  const isSelected = (at: number) => at === props.completer.selected();
  return (
    <Show when={props.completer.found().length > 0}>
      <div class="completion options" role="listbox" id="completion" aria-label={t.commands}>
        <For each={props.completer.found()}>
          {(candidate, at) => (
            <div
              class="option"
              role="option"
              id={`completion-${at()}`}
              aria-selected={isSelected(at())}
              onPointerDown={(event) => {
                event.preventDefault();
                props.completer.complete(candidate);
              }}
              ref={(element) => createEffect(() => isSelected(at()) && element.scrollIntoView({ block: "nearest" }))}
            >
              <Icon name={candidate.icon} />
              <span class="clip">{plain(candidate.label)}</span>
              <span class="detail clip">{prose(candidate.detail ?? "")}</span>
            </div>
          )}
        </For>
      </div>
    </Show>
  );
}
