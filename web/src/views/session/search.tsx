// The bar that searches a session. It loads the older messages, because the browser's own search finds only what is
// drawn.
import {
  createEffect,
  createMemo,
  createSignal,
  on,
  onCleanup,
  onMount,
  Show,
  type Accessor,
  type JSX,
} from "solid-js";
import type { Transcript } from "../../state/transcript";
import { grouped } from "../../text/format";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import type { VirtualHandle } from "../../ui/virtual/virtual";
import { find, MAX_MATCHES } from "./find";

/** Pages of older messages that are loaded for a search. */
const MAX_PAGES = 400;
const TYPING_MS = 120;
/** The time after which a match is looked for again. */
const AGAIN_MS = 160;
/** The names of the marks of all matches and of the current one in the style sheet. */
const [ALL, CURRENT] = ["search", "search-current"];
/** Elements whose text is marked at most. */
const MAX_RANGES = 500;

const [open, setOpen] = createSignal(false);
/** Whether the bar is open. */
export const isSearching = open;
export function openSearch(): void {
  setOpen(true);
  queueMicrotask(() => document.getElementById("session-search")?.focus());
}

interface Props {
  transcript: Transcript;
  /** The messages that are part of the transcript, from the oldest on. */
  keys: string[];
  list: VirtualHandle | undefined;
}

/** The state of a search in a transcript. */
function createSearch(props: Props) {
  const [typed, setTyped] = createSignal("");
  const [word, setWord] = createSignal("");
  const [at, setAt] = createSignal(0);
  createEffect(
    on(typed, (text) => {
      const timer = setTimeout(() => setWord(text), TYPING_MS);
      onCleanup(() => clearTimeout(timer));
    }),
  );
  const isLoading = loadOlder(props, word);
  const matches = createMemo(() => find(props.transcript, word(), props.keys));
  // The newest match is the nearest to what is displayed.
  createEffect(on([word, isLoading], () => setAt(Math.max(0, matches().length - 1))));
  const current = () => matches()[Math.min(at(), matches().length - 1)];
  /** Scrolls to a message, and to the match in it once the message is drawn. */
  const show = (message: string, place: number, isSecond: boolean) => {
    const list = props.list;
    if (!list) return;
    const row = () => list.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(message)}"]`);
    if (!row()) list.scrollTo(message);
    const again = () => {
      if (open() && current()?.message === message) show(message, place, true);
    };
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        reveal(list, row(), word(), place);
        // Heights are measured when rows appear, so the first jump may be inexact.
        if (!isSecond) setTimeout(again, AGAIN_MS);
      }),
    );
  };
  createEffect(
    on(current, (match) => {
      if (match) show(match.message, match.at, false);
    }),
  );
  const step = (by: number) => {
    const count = matches().length;
    if (count === 0) return;
    setAt((now) => (Math.min(now, count - 1) + by + count) % count);
  };
  const count = () => matches().length;
  /** What was found, in words. */
  const summary = () => {
    if (!word()) return "";
    if (count() === 0) return isLoading() ? t.searchingOlder : t.nothingFound;
    const total = `${grouped(count())}${count() >= MAX_MATCHES ? "+" : ""}`;
    const shown = t.matchOf(grouped(Math.min(at(), count() - 1) + 1), total);
    return isLoading() ? `${shown} ${t.searchingOlder}` : shown;
  };
  return { typed, setTyped, step, count, summary };
}

/** Loads the older messages once a search begins. Returns whether it does. */
function loadOlder(props: Props, word: Accessor<string>): Accessor<boolean> {
  const [isLoading, setLoading] = createSignal(false);
  createEffect(
    on([word, () => props.transcript], async ([text, transcript]) => {
      if (!text || transcript.isComplete() || isLoading()) return;
      setLoading(true);
      for (let pages = 0; !transcript.isComplete() && pages < MAX_PAGES && open(); pages += 1) {
        const before = transcript.order().length;
        await transcript.older();
        // Another request is on its way, or this one failed.
        if (transcript.order().length === before) await new Promise((resolve) => setTimeout(resolve, 100));
        if (transcript.error()) break;
      }
      setLoading(false);
    }),
  );
  return isLoading;
}

/** Marks the matches, and scrolls to the one at a place in a row. */
function reveal(list: VirtualHandle, row: HTMLElement | null, word: string, place: number): void {
  const box = mark(list.element, word, row, place)?.getBoundingClientRect();
  const frame = list.element.getBoundingClientRect();
  if (box && (box.top < frame.top + 60 || box.bottom > frame.bottom - 60)) {
    list.element.scrollTop += box.top - frame.top - frame.height / 3;
  }
}

/** The step to another match that a key makes. */
function stepOf(event: KeyboardEvent): number | undefined {
  if (event.key === "Enter") return event.shiftKey ? 1 : -1;
  return { ArrowUp: -1, ArrowDown: 1 }[event.key];
}

export function SearchBar(props: Props): JSX.Element {
  const search = createSearch(props);
  let input!: HTMLInputElement;
  const close = () => {
    setOpen(false);
    document.getElementById("prompt")?.focus();
  };
  const keys = (event: KeyboardEvent) => {
    const by = stepOf(event);
    if (by !== undefined) {
      event.preventDefault();
      search.step(by);
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  onMount(() => input.focus());
  onCleanup(() => unmark());
  const isEmpty = () => search.count() === 0;
  return (
    <div class="session-search" role="search" aria-label={t.searchSession}>
      <span class="search grow">
        <Icon name="search" />
        <input
          id="session-search"
          ref={input}
          class="field"
          type="text"
          role="searchbox"
          autocomplete="off"
          spellcheck={false}
          aria-label={t.searchSession}
          placeholder={t.searchSession}
          value={search.typed()}
          onInput={(event) => search.setTyped(event.currentTarget.value)}
          onKeyDown={keys}
        />
      </span>
      <span class="muted tabular search-count" role="status">
        {search.summary()}
      </span>
      <Button
        small
        kind="quiet"
        icon="arrowUp"
        label={t.previousMatch}
        keys="Enter"
        disabled={isEmpty()}
        onClick={() => search.step(-1)}
      />
      <Button
        small
        kind="quiet"
        icon="chevronDown"
        label={t.nextMatch}
        keys="Shift Enter"
        disabled={isEmpty()}
        onClick={() => search.step(1)}
      />
      <Button small kind="quiet" icon="close" label={t.close} keys="Esc" onClick={close} />
    </div>
  );
}

/** Marks the matches that are drawn, and returns the current one or the first one of its message. */
function mark(root: HTMLElement, word: string, row: HTMLElement | null, place: number): Range | undefined {
  if (!word) return undefined;
  const ranges = rangesOf(root, word);
  const inRow = row ? ranges.filter((range) => row.contains(range.startContainer)) : [];
  // Folded outputs are not drawn, so a match can have no place.
  const current = inRow[Math.min(place, inRow.length - 1)];
  if ("highlights" in CSS) {
    CSS.highlights.set(ALL, new Highlight(...ranges));
    CSS.highlights.set(CURRENT, current ? new Highlight(current) : new Highlight());
  }
  for (const old of root.querySelectorAll(".found")) old.classList.remove("found");
  // Also where the match itself is folded, its message is marked.
  row?.querySelector(".message, .answer, .prompt")?.classList.add("found");
  return current;
}

function rangesOf(root: HTMLElement, word: string): Range[] {
  const ignoresCase = word === word.toLowerCase();
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < MAX_RANGES; node = walker.nextNode()) {
    const text = ignoresCase ? (node.textContent ?? "").toLowerCase() : (node.textContent ?? "");
    for (
      let at = text.indexOf(word);
      at >= 0 && ranges.length < MAX_RANGES;
      at = text.indexOf(word, at + word.length)
    ) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, Math.min(at + word.length, node.textContent?.length ?? 0));
      ranges.push(range);
    }
  }
  return ranges;
}

function unmark(): void {
  if ("highlights" in CSS) {
    CSS.highlights.delete(ALL);
    CSS.highlights.delete(CURRENT);
  }
  for (const old of document.querySelectorAll(".found")) old.classList.remove("found");
}

/** The bar, if it is open. */
export function Search(props: Props): JSX.Element {
  return (
    <Show when={open()}>
      <SearchBar {...props} />
    </Show>
  );
}
