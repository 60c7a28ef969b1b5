// Tabs and segmented choices.
import { createEffect, For, on, Show, type JSX } from "solid-js";
import { Icon, type IconName } from "./icon";

interface TabsProps<Name extends string> {
  label: string;
  tabs: { name: Name; label: string; icon?: IconName; count?: number | undefined }[];
  value: Name;
  onChange: (name: Name) => void;
}

/** A row of tabs. Left and right move between them, as users of screen readers expect. */
export function Tabs<Name extends string>(props: TabsProps<Name>): JSX.Element {
  const move = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const at = props.tabs.findIndex((tab) => tab.name === props.value);
    const next = props.tabs.at((at + by) % props.tabs.length);
    if (!next) return;
    props.onChange(next.name);
    const list = event.currentTarget as HTMLElement;
    queueMicrotask(() => list.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
  };
  let list!: HTMLDivElement;
  // On a narrow screen, the row scrolls.
  createEffect(
    on(
      () => props.value,
      () =>
        requestAnimationFrame(() =>
          list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" }),
        ),
    ),
  );
  return (
    <div ref={list} class="tabs" role="tablist" aria-label={props.label} onKeyDown={move}>
      <For each={props.tabs}>
        {(tab) => (
          <button
            type="button"
            role="tab"
            class="tab"
            aria-selected={tab.name === props.value}
            tabindex={tab.name === props.value ? 0 : -1}
            onClick={() => props.onChange(tab.name)}
          >
            <Show when={tab.icon}>{(icon) => <Icon name={icon()} />}</Show>
            {tab.label}
            <Show when={tab.count}>
              <span class="badge">{tab.count}</span>
            </Show>
          </button>
        )}
      </For>
    </div>
  );
}

interface SegmentsProps<Name extends string> {
  label: string;
  options: { name: Name; label: string }[];
  value: Name;
  onChange: (name: Name) => void;
}

/** A choice between few values, all of which are visible. */
export function Segments<Name extends string>(props: SegmentsProps<Name>): JSX.Element {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      <For each={props.options}>
        {(option) => (
          <button type="button" aria-pressed={option.name === props.value} onClick={() => props.onChange(option.name)}>
            {option.label}
          </button>
        )}
      </For>
    </div>
  );
}
