// The context and the cost of a session.
import { createMemo, Show, type JSX } from "solid-js";
import type { AssistantMessage } from "../../api";
import { showPanel } from "../../app/router";
import { findModel } from "../../state/choice";
import { usedTokens } from "../../state/context";
import { state, transcriptOf } from "../../state/mirror";
import { placeOf } from "../../state/place";
import { count, money } from "../../text/format";
import { t } from "../../text";
import { tooltip } from "../../ui/tooltip";

/** From this part of the context on, the meter warns. */
const HIGH = 0.8;

/** Returns the newest answer with tokens: its request contains the whole conversation. */
export function lastAnswer(id: string): AssistantMessage | undefined {
  const transcript = transcriptOf(id);
  const order = transcript.order();
  for (let at = order.length - 1; at >= 0; at -= 1) {
    const info = transcript.message(order[at] ?? "")?.info();
    if (info?.role === "assistant" && usedTokens(info) > 0) return info;
  }
  return undefined;
}

export function Meter(props: { id: string }): JSX.Element {
  const answer = createMemo(() => lastAnswer(props.id));
  const limit = () => {
    const info = answer();
    const directory = state.sessions[props.id]?.directory;
    return info && directory ? (findModel(placeOf(directory), info)?.model.limit.context ?? 0) : 0;
  };
  const used = () => {
    const info = answer();
    return info ? usedTokens(info) : 0;
  };
  const part = () => (limit() > 0 ? Math.min(1, used() / limit()) : 0);
  const cost = () => state.sessions[props.id]?.cost ?? 0;
  const text = () => (limit() > 0 ? t.tokensOf(count(used()), count(limit())) : t.tokensUsed(count(used())));
  return (
    <Show when={used() > 0}>
      <button
        type="button"
        class="button quiet meter-box tabular"
        onClick={() => showPanel("context")}
        ref={(element) => tooltip(element, () => ({ text: `${t.context}: ${text()} · ${t.cost}: ${money(cost())}` }))}
      >
        <span class="visually-hidden">
          {t.contextAndCost}: {text()}
        </span>
        <svg class={`meter ${part() > HIGH ? "high" : ""}`} viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="6" />
          <circle cx="8" cy="8" r="6" stroke-dasharray={`${part() * 37.7} 37.7`} />
        </svg>
        <span>{limit() > 0 ? `${Math.round(part() * 100)}%` : count(used())}</span>
        <Show when={cost() > 0}>
          <span class="muted">{money(cost())}</span>
        </Show>
      </button>
    </Show>
  );
}
