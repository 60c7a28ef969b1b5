// The to-do list of a session, its subagents and its numbers.
import { createEffect, createMemo, For, on, Show, type JSX } from "solid-js";
import { openSession } from "../../app/router";
import { call } from "../../api";
import { attempt, loadChildren } from "../../state/actions";
import { childrenOf, isBusy, setTodos, state } from "../../state/mirror";
import { count, money } from "../../text/format";
import { t } from "../../text";
import { Icon } from "../../ui/icon";
import { prose } from "../../ui/text";
import { usedTokens } from "../../state/context";
import { lastAnswer } from "../session/meter";
import { TodoList } from "../session/tools";

export function TasksPanel(props: { id: string }): JSX.Element {
  createEffect(
    on(
      () => props.id,
      (id) => {
        loadChildren(id);
        void attempt(async () =>
          setTodos(id, await call("GET /session/{sessionID}/todo", { path: { sessionID: id } })),
        );
      },
    ),
  );
  const todos = () => state.todos[props.id] ?? [];
  const children = createMemo(() => childrenOf(props.id));
  const session = () => state.sessions[props.id];
  const answer = createMemo(() => lastAnswer(props.id));
  const used = () => {
    const last = answer();
    return last ? usedTokens(last) : 0;
  };
  return (
    <div class="stack">
      <section>
        <h3>{t.todos}</h3>
        <Show when={todos().length > 0} fallback={<p class="muted">{t.none}</p>}>
          <TodoList todos={todos()} />
        </Show>
      </section>
      <section>
        <h3>{t.subagent}</h3>
        <Show when={children().length > 0} fallback={<p class="muted">{t.none}</p>}>
          <ul class="rows">
            <For each={children()}>
              {(child) => (
                <li>
                  <button type="button" class="row-button" onClick={() => openSession(child.id)}>
                    <Show when={isBusy(child.id)} fallback={<Icon name="fork" />}>
                      <span class="dot busy" />
                    </Show>
                    <span class="clip">{prose(child.title)}</span>
                  </button>
                </li>
              )}
            </For>
          </ul>
        </Show>
      </section>
      <section>
        <h3>{t.context}</h3>
        <dl class="facts tabular">
          <dt>{t.context}</dt>
          <dd>{t.tokensUsed(count(used()))}</dd>
          <dt>{t.cost}</dt>
          <dd>{money(session()?.cost ?? 0)}</dd>
          <Show when={session()?.tokens}>
            {(tokens) => (
              <>
                <dt>Input</dt>
                <dd>{count(tokens().input + tokens().cache.read + tokens().cache.write)}</dd>
                <dt>Output</dt>
                <dd>{count(tokens().output + tokens().reasoning)}</dd>
              </>
            )}
          </Show>
        </dl>
      </section>
    </div>
  );
}
