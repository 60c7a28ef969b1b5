// A list of which only the visible items exist as elements. Items have any height, which is measured when they appear.
import { createEffect, createMemo, For, on, onCleanup, onMount, type JSX } from "solid-js";
import { createHeights, type Heights } from "./heights";
import { Position } from "./position";
import { createRange } from "./range";
import { Scrolling } from "./scrolling";

export interface VirtualHandle {
  /** Scrolls an item to the top. */
  scrollTo: (key: string) => void;
  scrollToEnd: () => void;
  element: HTMLElement;
}

interface Props {
  keys: string[];
  children: (key: string) => JSX.Element;
  /** The height of an item before it is measured. */
  estimate: number;
  /** Whether the list stays at its end while items grow, as a transcript does. */
  stick?: boolean;
  label?: string;
  class?: string;
  role?: "log" | "list" | "listbox";
  /** Called when the start of the list comes near. */
  onStart?: () => void;
  onEnd?: () => void;
  onAtEnd?: (atEnd: boolean) => void;
  handle?: (handle: VirtualHandle) => void;
  before?: JSX.Element;
  after?: JSX.Element;
}

/** The delay after which items outside of the view are made for the first time. */
const OVERSCAN_MS = 100;

export function VirtualList(props: Props): JSX.Element {
  let scroller!: HTMLDivElement;
  let head!: HTMLDivElement;
  const keys = () => props.keys;
  const estimate = () => props.estimate;
  const heights = createHeights(keys, estimate);
  const position = new Position(() => ({ scroller, head }));
  const visible = createRange(keys, estimate, heights, position);
  const callbacks = {
    isSticky: () => props.stick === true,
    keys,
    onStart: () => props.onStart?.(),
    onEnd: () => props.onEnd?.(),
    onAtEnd: (isAtEnd: boolean) => props.onAtEnd?.(isAtEnd),
  };
  const scrolling = new Scrolling(callbacks, heights, position, visible);
  const observer = observeHeights(heights, scrolling, () => scroller);

  onMount(() => {
    observer.observe(scroller);
    props.handle?.({
      element: scroller,
      scrollToEnd: () => scrolling.toEnd(),
      scrollTo: (key) => scrolling.to(key),
    });
    // The observer reports the size of the list before the first frame.
    scrolling.guess();
    const timer = setTimeout(() => {
      visible.widen();
      scrolling.later();
    }, OVERSCAN_MS);
    onCleanup(() => clearTimeout(timer));
  });
  createEffect(on(keys, (_, before) => scrolling.onKeys(before)));
  onCleanup(() => {
    observer.disconnect();
    scrolling.cancel();
  });

  const items = createMemo(() => props.keys.slice(visible.range().from, visible.range().to));
  const startOf = (at: number) => heights.starts()[Math.min(at, props.keys.length)] ?? 0;
  const after = () => Math.max(0, startOf(props.keys.length) - startOf(visible.range().to));
  return (
    <div
      ref={scroller}
      class={`virtual ${props.class ?? ""}`}
      role={props.role}
      aria-label={props.label}
      tabindex={0}
      onScroll={() => scrolling.onScroll()}
    >
      <div ref={head}>{props.before}</div>
      <div style={{ height: `${startOf(visible.range().from)}px` }} />
      <div class="virtual-window">
        <For each={items()}>{(key) => <Item key={key} observer={observer} render={props.children} />}</For>
      </div>
      <div style={{ height: `${after()}px` }} />
      {props.after}
    </div>
  );
}

function Item(props: { key: string; observer: ResizeObserver; render: (key: string) => JSX.Element }): JSX.Element {
  let element!: HTMLDivElement;
  onMount(() => props.observer.observe(element));
  onCleanup(() => props.observer.unobserve(element));
  return (
    <div ref={element} class="virtual-item" data-key={props.key}>
      {props.render(props.key)}
    </div>
  );
}

/** Returns an observer that stores the heights of items, and forgets all if the width of the list changes. */
function observeHeights(heights: Heights, scrolling: Scrolling, scroller: () => HTMLElement): ResizeObserver {
  let width = 0;
  return new ResizeObserver((entries) => {
    let isChanged = false;
    scrolling.hold();
    for (const entry of entries) {
      const element = entry.target as HTMLElement;
      if (element === scroller()) {
        if (width !== 0 && width !== element.clientWidth) heights.clear();
        width = element.clientWidth;
        isChanged = true;
        continue;
      }
      const key = element.dataset["key"];
      const size = entry.borderBoxSize[0]?.blockSize ?? element.offsetHeight;
      if (key !== undefined && heights.set(key, size)) isChanged = true;
    }
    if (!isChanged) return;
    heights.update();
    // Inside of the observer, so that no frame shows the old position.
    scrolling.settle();
  });
}
