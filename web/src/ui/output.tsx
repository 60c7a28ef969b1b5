// The output of a command, with its colours.
import { createEffect, onCleanup, onMount, type JSX } from "solid-js";
import { ansi } from "./text";

/** Longer outputs show their end: a page with more text would be slow, and the file has all of it. */
export const MAX_OUTPUT = 200_000;

/** Returns the end of an output that is displayed. */
export function ending(text: string): string {
  return text.length > MAX_OUTPUT ? `…\n${text.slice(-MAX_OUTPUT)}` : text;
}

export function Output(props: { text: string; label: string; follow?: boolean; fromEnd?: boolean }): JSX.Element {
  let element!: HTMLPreElement;
  // The end of a command's output says how it went. The next frame knows its height.
  onMount(() => {
    if (!props.fromEnd) return;
    const scrolling = requestAnimationFrame(() => (element.scrollTop = element.scrollHeight));
    onCleanup(() => cancelAnimationFrame(scrolling));
  });
  createEffect(() => {
    const text = props.text;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 24;
    element.replaceChildren(
      ...ansi(text).map((run) => {
        if (!run.class) return document.createTextNode(run.text);
        const span = document.createElement("span");
        span.className = run.class;
        span.textContent = run.text;
        return span;
      }),
    );
    if (props.follow && atEnd) element.scrollTop = element.scrollHeight;
  });
  return <pre ref={element} class="output" tabindex={0} role="group" aria-label={props.label} dir="ltr" />;
}
