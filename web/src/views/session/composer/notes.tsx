// Notes below the prompt about the model that answers.
import { Show, type JSX } from "solid-js";
import { openModels } from "../../../app/pickers";
import { t } from "../../../text";
import type { Answerer } from "./model";

function ChooseModel(): JSX.Element {
  return (
    <button type="button" class="link" onClick={() => openModels()}>
      {t.chooseModel}
    </button>
  );
}

export function Notes(props: { answerer: Answerer }): JSX.Element {
  return (
    <>
      <Show when={props.answerer.isBlind()}>
        <p class="composer-note warn" role="alert">
          {t.cannotSee(props.answerer.modelTitle())} <ChooseModel />
        </p>
      </Show>
      <Show when={props.answerer.isGuessed()}>
        <p class="composer-note muted" role="status">
          {t.modelGuessed(props.answerer.modelTitle())} <ChooseModel />
        </p>
      </Show>
    </>
  );
}
