// What a session costs and what fills its context.
import { createEffect, createMemo, createResource, createSignal, For, on, Show, type JSX } from "solid-js";
import { call, type AssistantMessage } from "../../api";
import { compact, loadChildren } from "../../state/actions";
import { findModel } from "../../state/choice";
import { contextUse, type Entry, type ShareName } from "../../state/context";
import { childrenOf, isBusy, state, transcriptOf } from "../../state/mirror";
import { placeOf } from "../../state/place";
import { count, money } from "../../text/format";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { prose } from "../../ui/text";
import { UsageSection } from "../status/usage";

/** Pages of older messages that are loaded for the sums. */
const MAX_PAGES = 40;
/** Subagents of subagents that are added up. */
const MAX_DEPTH = 8;
const COLOURS: Record<ShareName, string> = {
  system: "purple",
  tools: "blue",
  prompts: "cyan",
  files: "green",
  outputs: "orange",
  answers: "yellow",
};

/** The cost of a session with its subagents. */
function costOf(id: string, depth = 1): number {
  const own = state.sessions[id]?.cost ?? 0;
  return depth >= MAX_DEPTH ? own : own + childrenOf(id).reduce((sum, child) => sum + costOf(child.id, depth + 1), 0);
}

interface ModelCost {
  model: string;
  answers: number;
  tokens: number;
  cost: number;
}

function byModel(entries: Entry[]): ModelCost[] {
  const rows = new Map<string, ModelCost>();
  for (const { info } of entries) {
    if (info.role !== "assistant") continue;
    const model = `${info.providerID}/${info.modelID}`;
    const row = rows.get(model) ?? { model, answers: 0, tokens: 0, cost: 0 };
    const { input, output, reasoning, cache } = info.tokens;
    rows.set(model, {
      model,
      answers: row.answers + 1,
      tokens: row.tokens + input + output + reasoning + cache.read + cache.write,
      cost: row.cost + info.cost,
    });
  }
  return [...rows.values()].sort((a, b) => b.cost - a.cost || b.tokens - a.tokens);
}

export default function ContextPanel(props: { id: string; directory: string }): JSX.Element {
  const transcript = createMemo(() => transcriptOf(props.id));
  const [isPartial, setPartial] = createSignal(false);
  createEffect(
    on([() => props.id, () => transcript().isLoaded()], async ([id, isLoaded]) => {
      loadChildren(id);
      if (!isLoaded) return;
      const mine = transcript();
      for (let pages = 0; !mine.isComplete() && pages < MAX_PAGES && props.id === id; pages += 1) await mine.older();
      if (props.id === id) setPartial(!mine.isComplete());
    }),
  );
  const entries = createMemo<Entry[]>(() =>
    transcript()
      .order()
      .flatMap((one) => {
        const message = transcript().message(one);
        return message ? [{ info: message.info(), parts: message.parts().map((part) => part.part()) }] : [];
      }),
  );
  const last = createMemo(
    () => entries().findLast(({ info }) => info.role === "assistant")?.info as AssistantMessage | undefined,
  );
  // Providers without a list of their tools only lose the line of the tools.
  const model = createMemo(() => (last() ? `${last()?.providerID}/${last()?.modelID}` : ""));
  const [tools] = createResource(model, async () => {
    const info = last();
    if (!info) return 0;
    const list = await call("GET /experimental/tool", {
      query: { directory: props.directory, provider: info.providerID, model: info.modelID },
    }).catch(() => []);
    return JSON.stringify(list).length;
  });
  const use = createMemo(() => contextUse(entries(), tools.latest ?? 0));
  const limit = () => {
    const info = last();
    return info ? (findModel(placeOf(props.directory), info)?.model.limit.context ?? 0) : 0;
  };
  const part = (tokens: number) => tokens / Math.max(limit(), use()?.used ?? 1, 1);
  const percent = (value: number) => (value > 0 && value < 0.01 ? "<1%" : `${Math.round(value * 100)}%`);
  const models = createMemo(() => byModel(entries()));
  // An imported session has the costs of its answers only.
  const own = () => state.sessions[props.id]?.cost || models().reduce((sum, row) => sum + row.cost, 0);
  const total = createMemo(() => own() + childrenOf(props.id).reduce((sum, child) => sum + costOf(child.id), 0));
  return (
    <div class="stack context">
      <section>
        <h3>{t.context}</h3>
        <Show when={use()} fallback={<p class="muted">{t.noContext}</p>}>
          {(now) => (
            <>
              <p class="context-sum tabular">
                <strong>
                  {limit() > 0 ? t.tokensOf(count(now().used), count(limit())) : t.tokensUsed(count(now().used))}
                </strong>{" "}
                <Show when={limit() > 0}>
                  <span class="muted">{percent(now().used / limit())}</span>
                </Show>
              </p>
              <div
                class="context-bar"
                role="img"
                aria-label={now()
                  .shares.map((one) => `${t.shares[one.name]}: ${percent(part(one.tokens))}`)
                  .join(", ")}
              >
                <For each={now().shares}>
                  {(one) => (
                    <span style={{ width: `${part(one.tokens) * 100}%`, background: `var(--${COLOURS[one.name]})` }} />
                  )}
                </For>
              </div>
              <ul class="rows">
                <For each={now().shares}>
                  {(one) => (
                    <li class="status-row tabular">
                      <span class="context-key" style={{ background: `var(--${COLOURS[one.name]})` }} />
                      <span class="grow">
                        {t.shares[one.name]}
                        <Show when={t.shareHints[one.name]}>
                          {(hint) => <span class="muted context-hint"> {hint()}</span>}
                        </Show>
                      </span>
                      <span class="muted">{percent(one.tokens / now().used)}</span>
                      <span class="context-tokens">{count(one.tokens)}</span>
                    </li>
                  )}
                </For>
                <Show when={limit() > now().used}>
                  <li class="status-row tabular">
                    <span class="context-key free" />
                    <span class="grow">{t.freeContext}</span>
                    <span class="context-tokens">{count(limit() - now().used)}</span>
                  </li>
                </Show>
              </ul>
              <p class="muted">
                {t.fromCache(percent(now().cached))} {t.estimated}
              </p>
              <Button disabled={isBusy(props.id)} onClick={() => compact(props.id)}>
                {t.compact}
              </Button>
            </>
          )}
        </Show>
      </section>
      <section>
        <h3>{t.cost}</h3>
        <dl class="facts tabular">
          <dt>{t.thisSession}</dt>
          <dd>{money(own())}</dd>
          <Show when={total() > own()}>
            <dt>{t.withSubagents}</dt>
            <dd>{money(total())}</dd>
          </Show>
        </dl>
        <Show when={models().length > 0}>
          <ul class="rows context-models">
            <For each={models()}>
              {(row) => (
                <li class="status-row tabular">
                  <span class="grow clip mono">{prose(row.model)}</span>
                  <span class="muted">{t.answers(row.answers)}</span>
                  <span class="muted">{t.tokensUsed(count(row.tokens))}</span>
                  <span class="context-tokens">{money(row.cost)}</span>
                </li>
              )}
            </For>
          </ul>
        </Show>
        <p class="muted">{isPartial() ? t.costPartial : t.costHint}</p>
      </section>
      <UsageSection />
    </div>
  );
}
