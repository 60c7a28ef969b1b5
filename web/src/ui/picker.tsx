// A dialog with a searchable list: commands, models, agents, sessions, files, themes.
import { createEffect, createMemo, createSignal, createUniqueId, For, on, Show, type JSX } from "solid-js";
import { t } from "../text";
import { Dialog } from "./dialog";
import { filter } from "./fuzzy";
import { Icon, type IconName } from "./icon";

export interface PickerItem {
  id: string;
  label: string;
  detail?: string | undefined;
  group?: string | undefined;
  icon?: IconName | undefined;
  keys?: string | undefined;
  current?: boolean | undefined;
  badge?: string | undefined;
  /** More words to search for. */
  words?: string | undefined;
}

/** An action on the selected item, with the key that runs it together with ctrl. */
export interface PickerAction {
  key: string;
  label: string;
  run: (item: PickerItem) => void;
}

interface Props {
  title: string;
  placeholder?: string;
  items: PickerItem[];
  onPick: (item: PickerItem) => void;
  onClose: () => void;
  /** Called when another item is selected, for a preview. */
  onSelect?: (item: PickerItem | undefined) => void;
  /** If the server searches, the items are already filtered. */
  onQuery?: (query: string) => void;
  actions?: PickerAction[];
  empty?: string;
  loading?: boolean;
}

/** Longer lists show their best matches. */
const MAX_ITEMS = 300;

export function Picker(props: Props): JSX.Element {
  const id = createUniqueId();
  const [query, setQuery] = createSignal("");
  const [selected, setSelected] = createSignal(0);
  let list!: HTMLDivElement;
  const found = createMemo(() => {
    const all = props.onQuery
      ? props.items
      : filter(
          props.items,
          query(),
          (item) => `${item.label} ${item.words ?? ""} ${item.group ?? ""} ${item.detail ?? ""}`,
        );
    return all.slice(0, MAX_ITEMS);
  });
  const groups = createMemo(() => {
    const rows: ({ group: string } | { item: PickerItem; at: number })[] = [];
    let last: string | undefined;
    found().forEach((item, at) => {
      if (!query() && item.group && item.group !== last) rows.push({ group: item.group });
      last = item.group;
      rows.push({ item, at });
    });
    return rows;
  });
  createEffect(on(query, () => setSelected(0), { defer: true }));
  createEffect(() => props.onSelect?.(found()[selected()]));
  createEffect(() => {
    selected();
    queueMicrotask(() => list?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }));
  });
  const start = found().findIndex((item) => item.current);
  if (start > 0) setSelected(start);
  const keys = (event: KeyboardEvent) => {
    const count = found().length;
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (by !== undefined && count > 0) {
      event.preventDefault();
      const next = selected() + by;
      setSelected(Math.abs(by) === 1 ? (next + count) % count : Math.min(Math.max(next, 0), count - 1));
      return;
    }
    const item = found()[selected()];
    if (!item) return;
    if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      props.onPick(item);
    }
    const action =
      (event.ctrlKey || event.metaKey) && props.actions?.find((one) => one.key === event.key.toLowerCase());
    if (action) {
      event.preventDefault();
      action.run(item);
    }
  };
  return (
    <Dialog bare title={props.title} onClose={props.onClose} class="picker">
      <input
        class="picker-search"
        placeholder={props.placeholder ?? props.title}
        aria-label={props.placeholder ?? props.title}
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found().length > 0 ? `${id}-${selected()}` : undefined}
        autocomplete="off"
        autofocus
        value={query()}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          props.onQuery?.(event.currentTarget.value);
        }}
        onKeyDown={keys}
      />
      <div class="options" ref={list} id={id} role="listbox" aria-label={props.title}>
        <For each={groups()}>
          {(row) =>
            "group" in row ? (
              <div class="options-group" role="presentation">
                {row.group}
              </div>
            ) : (
              <div
                class="option"
                role="option"
                id={`${id}-${row.at}`}
                aria-selected={row.at === selected()}
                onClick={() => props.onPick(row.item)}
                onPointerMove={() => setSelected(row.at)}
              >
                <Show when={row.item.icon}>{(icon) => <Icon name={icon()} />}</Show>
                <span class="clip">{row.item.label}</span>
                <Show when={row.item.detail}>
                  <span class="detail clip">{row.item.detail}</span>
                </Show>
                <span class="end">
                  <Show when={row.item.badge}>
                    <span class="badge">{row.item.badge}</span>
                  </Show>
                  <Show when={row.item.keys}>
                    <span class="key">{row.item.keys}</span>
                  </Show>
                  <Show when={row.item.current}>
                    <Icon name="check" />
                  </Show>
                </span>
              </div>
            )
          }
        </For>
      </div>
      <Show when={found().length === 0}>
        <div class="empty" role="status">
          {props.loading ? t.loading : (props.empty ?? t.nothingFound)}
        </div>
      </Show>
      <Show when={props.actions?.length}>
        <div class="picker-hint">
          <For each={props.actions}>
            {(action) => (
              <span>
                <kbd>Ctrl {action.key.toUpperCase()}</kbd> {action.label}
              </span>
            )}
          </For>
        </div>
      </Show>
    </Dialog>
  );
}
