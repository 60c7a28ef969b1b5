// Menus: a button, and a list of actions in the top layer that arrow keys move through.
import { createSignal, createUniqueId, For, Show, type JSX } from "solid-js";
import { Icon, type IconName } from "./icon";
import { tooltip } from "./tooltip";

export interface MenuAction {
  label: string;
  icon?: IconName;
  keys?: string | undefined;
  danger?: boolean;
  disabled?: boolean;
  checked?: boolean;
  run: () => void;
}
export type MenuEntry = MenuAction | "line";

interface Props {
  label: string;
  icon?: IconName;
  entries: () => MenuEntry[];
  small?: boolean;
  children?: JSX.Element;
}

export function Menu(props: Props): JSX.Element {
  const id = createUniqueId();
  const [isOpen, setOpen] = createSignal(false);
  // Most menus of a list are never opened, so they have no element until then.
  const [isMade, setMade] = createSignal(false);
  let popover!: HTMLDivElement;
  let button!: HTMLButtonElement;
  const place = () => {
    const at = button.getBoundingClientRect();
    const size = popover.getBoundingClientRect();
    const left = at.left + size.width > innerWidth - 8 ? at.right - size.width : at.left;
    const below = at.bottom + 4 + size.height < innerHeight || at.top < size.height;
    popover.style.left = `${Math.max(8, left)}px`;
    popover.style.top = `${below ? at.bottom + 4 : at.top - size.height - 4}px`;
  };
  const move = (event: KeyboardEvent) => {
    const items = [...popover.querySelectorAll<HTMLElement>("[role^=menuitem]:not(:disabled)")];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    items.at(next % items.length)?.focus();
  };
  return (
    <>
      {/* Not a `Button`: lists have a menu for each row, and an element without variable attributes is much faster. */}
      <button
        type="button"
        ref={(element) => {
          button = element;
          tooltip(element, () => ({ text: props.label }));
        }}
        class="button quiet"
        classList={{ small: props.small === true, icon: props.children === undefined }}
        aria-label={props.label}
        aria-haspopup="menu"
        aria-expanded={isOpen()}
        onClick={(event) => {
          event.stopPropagation();
          event.preventDefault();
          setMade(true);
          popover.togglePopover();
        }}
      >
        <Icon name={props.icon ?? "more"} />
        {props.children}
      </button>
      <Show when={isMade()}>
        <div
          ref={popover}
          id={id}
          class="menu"
          role="menu"
          aria-label={props.label}
          popover="auto"
          onKeyDown={move}
          onClick={(event) => event.stopPropagation()}
          on:toggle={(event: ToggleEvent) => {
            const open = event.newState === "open";
            setOpen(open);
            if (open) {
              place();
              popover.querySelector<HTMLElement>("[role^=menuitem]")?.focus();
            } else if (popover.contains(document.activeElement) || document.activeElement === document.body) {
              button.focus();
            }
          }}
        >
          <Show when={isOpen()}>
            <For each={props.entries()}>
              {(entry) =>
                entry === "line" ? (
                  <hr />
                ) : (
                  <button
                    type="button"
                    role={entry.checked === undefined ? "menuitem" : "menuitemcheckbox"}
                    aria-checked={entry.checked}
                    tabindex={-1}
                    class={`menu-item ${entry.danger ? "danger" : ""}`}
                    disabled={entry.disabled}
                    onClick={() => {
                      popover.hidePopover();
                      entry.run();
                    }}
                  >
                    <Show when={entry.checked !== undefined ? entry.checked : entry.icon}>
                      <Icon name={entry.checked ? "check" : (entry.icon ?? "check")} />
                    </Show>
                    <span class="clip">{entry.label}</span>
                    <Show when={entry.keys}>
                      <span class="key">{entry.keys}</span>
                    </Show>
                  </button>
                )
              }
            </For>
          </Show>
        </div>
      </Show>
    </>
  );
}
