// Code with its language, a button that copies it, and highlighting.
import { createEffect, createSignal, Show, type JSX } from "solid-js";
import { t } from "../text";
import { Button } from "./button";
import { highlight } from "./highlight";
import { code as clean } from "./text";

/** Copies a text and reports the result. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without a secure context there is no clipboard: select the text in an element and copy that.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function CopyButton(props: { text: () => string; label?: string }): JSX.Element {
  const [done, setDone] = createSignal(false);
  const run = async () => {
    if (!(await copy(props.text()))) return;
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <Button
      small
      kind="quiet"
      class="copy"
      icon={done() ? "check" : "copy"}
      label={done() ? t.copied : (props.label ?? t.copy)}
      onClick={() => void run()}
    />
  );
}

interface Props {
  code: string;
  language?: string;
  title?: string;
  /** Without a head. */
  bare?: boolean;
}

export function Code(props: Props): JSX.Element {
  let element!: HTMLElement;
  createEffect(() => {
    const text = clean(props.code);
    element.textContent = text;
    highlight(element, text, props.language ?? "");
  });
  return (
    <div class={`code ${props.bare ? "bare" : ""}`}>
      <Show when={!props.bare}>
        <div class="code-head">
          <span class="clip mono">{props.title ?? props.language ?? ""}</span>
          <CopyButton text={() => props.code} />
        </div>
      </Show>
      <pre tabindex={0} dir="ltr">
        <code ref={element} />
      </pre>
    </div>
  );
}
