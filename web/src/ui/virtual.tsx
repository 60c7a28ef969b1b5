// A list of which only the visible items exist as elements. Items have any height, which is measured when they appear.
import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, untrack, type JSX } from "solid-js";

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

/** Items outside of the view that exist, in pixels of height. */
const OVERSCAN = 600;
/** The delay after which they are made for the first time. */
const OVERSCAN_MS = 100;
/** The distance from the end at which the list still counts as being there. */
const NEAR_END = 48;

export function VirtualList(props: Props): JSX.Element {
  const heights = new Map<string, number>();
  const [version, setVersion] = createSignal(0);
  const [range, setRange] = createSignal({ from: 0, to: 0 }, { equals: (a, b) => a.from === b.from && a.to === b.to });
  let scroller!: HTMLDivElement;
  let head!: HTMLDivElement;
  let sticks = props.stick === true;
  let frame = 0;
  let width = 0;
  /** Nothing outside of the view exists in the first frame. */
  let overscan = 0;
  /** The programmatic position, to tell the user's scrolling from ours. */
  let ours = -1;

  const height = (key: string) => heights.get(key) ?? props.estimate;
  const offsets = createMemo(() => {
    version();
    const keys = props.keys;
    const starts = new Float64Array(keys.length + 1);
    for (let at = 0; at < keys.length; at += 1) starts[at + 1] = (starts[at] ?? 0) + height(keys[at] ?? "");
    return starts;
  });
  const places = createMemo(() => new Map(props.keys.map((key, at) => [key, at])));

  const indexAt = (position: number) => {
    const starts = untrack(offsets);
    let [low, high] = [0, Math.max(0, starts.length - 2)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const top = () => scroller.scrollTop - head.offsetHeight;
  const setTop = (position: number) => {
    scroller.scrollTop = position + head.offsetHeight;
    ours = scroller.scrollTop;
  };
  const look = () => {
    const count = untrack(() => props.keys.length);
    if (count === 0) {
      setRange({ from: 0, to: 0 });
      return;
    }
    const start = top();
    setRange({
      from: indexAt(start - overscan),
      to: Math.min(count, indexAt(start + scroller.clientHeight + overscan) + 1),
    });
  };
  /** Makes the items that are visible if all have the estimated height, without asking the browser for a layout. */
  const guess = () => {
    const count = untrack(() => props.keys.length);
    const some = Math.min(count, Math.ceil((innerHeight + overscan) / props.estimate));
    setRange(sticks ? { from: count - some, to: count } : { from: 0, to: some });
  };
  const isAtEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END;
  const toEnd = () => {
    scroller.scrollTop = scroller.scrollHeight;
    ours = scroller.scrollTop;
  };

  /** The first visible item and its distance from the top, which changes of heights above must keep. */
  const anchor = (): { key: string; by: number } | null => {
    const at = indexAt(top());
    const key = untrack(() => props.keys[at]);
    return key === undefined ? null : { key, by: top() - (untrack(offsets)[at] ?? 0) };
  };
  let kept: { key: string; by: number } | null = null;

  const settle = () => {
    frame = 0;
    if (sticks) {
      toEnd();
      look();
    } else {
      if (kept) {
        const at = untrack(places).get(kept.key);
        if (at !== undefined) {
          const wanted = (untrack(offsets)[at] ?? 0) + kept.by;
          if (Math.abs(wanted - top()) > 0.5) setTop(wanted);
        }
        kept = null;
      }
      look();
    }
    near();
  };
  const later = () => {
    if (frame === 0) frame = requestAnimationFrame(settle);
  };
  const near = () => {
    if (scroller.clientHeight === 0) return;
    if (scroller.scrollTop < 1_200) props.onStart?.();
    if (scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 1_200) props.onEnd?.();
  };

  const observer = new ResizeObserver((entries) => {
    let changed = false;
    kept ??= sticks ? null : anchor();
    for (const entry of entries) {
      const element = entry.target as HTMLElement;
      if (element === scroller) {
        if (width !== 0 && width !== scroller.clientWidth) heights.clear();
        width = scroller.clientWidth;
        changed = true;
        continue;
      }
      const key = element.dataset["key"];
      const size = entry.borderBoxSize[0]?.blockSize ?? element.offsetHeight;
      if (key === undefined || size === 0 || heights.get(key) === size) continue;
      heights.set(key, size);
      changed = true;
    }
    if (!changed) {
      return;
    }
    setVersion((one) => one + 1);
    // Inside of the observer, so that no frame shows the old position.
    settle();
  });

  onMount(() => {
    observer.observe(scroller);
    const handle: VirtualHandle = {
      element: scroller,
      scrollToEnd: () => {
        sticks = props.stick === true;
        toEnd();
        later();
        props.onAtEnd?.(true);
      },
      scrollTo: (key) => {
        const at = untrack(places).get(key);
        if (at === undefined) return;
        sticks = false;
        kept = { key, by: 0 };
        setTop(untrack(offsets)[at] ?? 0);
        look();
        later();
        // Items in between are measured only when they appear.
        requestAnimationFrame(() => {
          kept = { key, by: 0 };
          settle();
        });
      },
    };
    props.handle?.(handle);
    // The observer reports the size of the list before the first frame.
    guess();
    const timer = setTimeout(() => {
      overscan = OVERSCAN;
      later();
    }, OVERSCAN_MS);
    onCleanup(() => clearTimeout(timer));
  });
  createEffect(
    on(
      () => props.keys,
      (keys, before) => {
        if (before?.length === 0) guess();
        else if (before && !sticks && kept === null && ours > 0) {
          // The offsets are those of the new keys already, so the anchor is found by its element.
          const first = firstVisible();
          if (first) kept = first;
        }
        if (heights.size > keys.length * 2 + 1_000) {
          const known = new Set(keys);
          for (const key of heights.keys()) if (!known.has(key)) heights.delete(key);
        }
        later();
      },
    ),
  );
  const firstVisible = () => {
    const edge = scroller.getBoundingClientRect().top;
    for (const element of scroller.querySelectorAll<HTMLElement>(":scope > .virtual-window > [data-key]")) {
      const at = element.getBoundingClientRect();
      if (at.bottom > edge) return { key: element.dataset["key"] ?? "", by: edge - at.top };
    }
    return null;
  };
  onCleanup(() => {
    observer.disconnect();
    cancelAnimationFrame(frame);
  });

  const visible = createMemo(() => props.keys.slice(range().from, range().to));
  const before = () => offsets()[Math.min(range().from, props.keys.length)] ?? 0;
  const after = () =>
    Math.max(0, (offsets()[props.keys.length] ?? 0) - (offsets()[Math.min(range().to, props.keys.length)] ?? 0));
  return (
    <div
      ref={scroller}
      class={`virtual ${props.class ?? ""}`}
      role={props.role}
      aria-label={props.label}
      tabindex={0}
      onScroll={() => {
        if (props.stick) {
          const atEnd = isAtEnd();
          // Content that grows moves the end away; only the user's scrolling leaves it.
          if (atEnd) sticks = true;
          else if (scroller.scrollTop < ours - 1 || Math.abs(scroller.scrollTop - ours) > 1) sticks = false;
          props.onAtEnd?.(sticks);
        }
        ours = scroller.scrollTop;
        look();
        near();
      }}
    >
      <div ref={head}>{props.before}</div>
      <div style={{ height: `${before()}px` }} />
      <div class="virtual-window">
        <For each={visible()}>
          {(key) => {
            let element!: HTMLDivElement;
            onMount(() => observer.observe(element));
            onCleanup(() => observer.unobserve(element));
            return (
              <div ref={element} class="virtual-item" data-key={key}>
                {props.children(key)}
              </div>
            );
          }}
        </For>
      </div>
      <div style={{ height: `${after()}px` }} />
      {props.after}
    </div>
  );
}
