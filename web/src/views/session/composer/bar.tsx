// The bar below the prompt: attachments, who answers, and the buttons that send and stop.
import { Show, type JSX } from "solid-js";
import { openAgents, openModels, openVariants } from "../../../app/pickers";
import { prefs } from "../../../state/prefs";
import { t } from "../../../text";
import { Button } from "../../../ui/button";
import { prose } from "../../../ui/text";
import type { Answerer } from "./model";

interface Props {
  answerer: Answerer;
  isShell: boolean;
  isBusy: boolean;
  canSend: boolean;
  /** Whether another press of escape interrupts. */
  isInterrupting: boolean;
  onFiles: (files: Iterable<File>) => void;
  /** Called for the model if none can be used without a choice. */
  onNoModel: () => void;
  onSend: () => void;
  onStop: () => void;
}

export function Bar(props: Props): JSX.Element {
  return (
    <div class="composer-bar">
      <FileButton onFiles={props.onFiles} />
      <Show when={!props.isShell} fallback={<span class="badge accent">{t.shellMode}</span>}>
        <Pills answerer={props.answerer} onNoModel={props.onNoModel} />
      </Show>
      <span class="grow" />
      <Show when={props.isInterrupting}>
        <span class="muted" role="status">
          {t.interruptHint}
        </span>
      </Show>
      <Show when={props.isBusy}>
        <Button small kind="quiet" icon="stop" keys="Esc Esc" class="stop" onClick={() => props.onStop()}>
          {t.stop}
        </Button>
      </Show>
      <Button
        small
        kind="primary"
        icon="send"
        label={t.send}
        keys={prefs.enterSends ? "Enter" : "Ctrl Enter"}
        disabled={!props.canSend}
        onClick={() => props.onSend()}
      />
    </div>
  );
}

function FileButton(props: { onFiles: (files: Iterable<File>) => void }): JSX.Element {
  let picker!: HTMLInputElement;
  return (
    <>
      <Button kind="quiet" small icon="attach" label={t.attachFile} onClick={() => picker.click()} />
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        tabindex={-1}
        aria-label={t.attachFile}
        onChange={(event) => {
          props.onFiles(event.currentTarget.files ?? []);
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

function Pills(props: { answerer: Answerer; onNoModel: () => void }): JSX.Element {
  const agent = () => props.answerer.agent();
  const title = () => props.answerer.modelTitle();
  const variant = () => props.answerer.variant() ?? t.defaultVariant;
  return (
    <>
      <button type="button" class="pill" aria-label={`${t.agent}: ${agent() ?? ""}`} onClick={() => openAgents()}>
        {prose(agent() ?? "…")}
      </button>
      <button
        type="button"
        class="pill clip"
        classList={{ warn: props.answerer.isUnchosen() }}
        aria-label={`${t.model}: ${title()}`}
        onClick={() => (props.answerer.isUnchosen() ? props.onNoModel() : openModels())}
      >
        {title()}
      </button>
      <Show when={props.answerer.hasVariants()}>
        <button type="button" class="pill" aria-label={`${t.variant}: ${variant()}`} onClick={() => openVariants()}>
          {variant()}
        </button>
      </Show>
    </>
  );
}
