// The transcript: the messages that are visible, from the newest on.
import { createEffect, createMemo, createSignal, on, onCleanup, Show, type JSX } from "solid-js";
import { replace, route } from "../../app/router";
import { isBusy, state, transcriptOf } from "../../state/mirror";
import { duration } from "../../text/format";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { prose } from "../../ui/text";
import { VirtualList, type VirtualHandle } from "../../ui/virtual/virtual";
import { MessageRow } from "./message";
import { Search } from "./search";

/** Pages that are loaded to find a message that a link names. */
const MAX_PAGES = 200;
const TICK_MS = 1_000;
/** A longer time means that the clocks of the server and the browser differ. */
const MAX_ELAPSED_MS = 24 * 3_600_000;

export function TranscriptView(props: { id: string }): JSX.Element {
  const transcript = createMemo(() => transcriptOf(props.id));
  const [atEnd, setAtEnd] = createSignal(true);
  const [handle, setHandle] = createSignal<VirtualHandle>();
  const keys = createMemo(() => {
    const order = transcript().order();
    const end = state.sessions[props.id]?.revert?.messageID;
    const at = end ? order.indexOf(end) : -1;
    return at >= 0 ? order.slice(0, at) : order;
  });
  /** The key of the last message, which assistive technology follows. */
  const last = () => keys().at(-1);
  const target = () => {
    const now = route();
    return now.name === "session" && now.id === props.id ? now.message : null;
  };
  createEffect(
    on([target, handle, () => transcript().isLoaded()], async ([message, list, loaded]) => {
      if (!message || !list || !loaded) return;
      for (
        let pages = 0;
        !transcript().message(message) && !transcript().isComplete() && pages < MAX_PAGES;
        pages += 1
      ) {
        await transcript().older();
      }
      if (target() !== message) return;
      list.scrollTo(message);
      replace({ name: "session", id: props.id, panel: panelOf(), message: null });
    }),
  );
  const panelOf = () => {
    const now = route();
    return now.name === "session" ? now.panel : null;
  };
  return (
    <div class="transcript">
      <Search transcript={transcript()} keys={keys()} list={handle()} />
      <Show
        when={!transcript().error()}
        fallback={
          <div class="empty">
            <p class="notice bad" role="alert">
              {transcript().error()}
            </p>
            <Button onClick={() => void transcript().refresh()}>{t.retry}</Button>
          </div>
        }
      >
        <Show when={transcript().isLoaded() && keys().length === 0}>
          <div class="empty">
            <h2>{t.emptySession}</h2>
          </div>
        </Show>
        <VirtualList
          keys={keys()}
          estimate={120}
          stick
          role="log"
          label={t.transcript}
          handle={setHandle}
          onStart={() => void transcript().older()}
          onAtEnd={setAtEnd}
          before={
            <div class="transcript-before">
              {!transcript().isComplete() && transcript().isLoaded() ? t.olderMessages : ""}
            </div>
          }
          after={
            <div class="transcript-after">
              <Working id={props.id} />
            </div>
          }
        >
          {(key) => <MessageRow transcript={transcript()} id={key} isLast={last() === key} />}
        </VirtualList>
        <Show when={!atEnd()}>
          <Button class="to-end" icon="chevronDown" label={t.toEnd} onClick={() => handle()?.scrollToEnd()} />
        </Show>
      </Show>
      <div class="visually-hidden" aria-live="polite">
        {isBusy(props.id) ? t.working : ""}
      </div>
    </div>
  );
}

/** Shows that the session works, or why it waits. */
function Working(props: { id: string }): JSX.Element {
  const status = () => state.statuses[props.id];
  const retry = () => {
    const now = status();
    return now?.type === "retry" ? now : null;
  };
  const [now, setNow] = createSignal(Date.now());
  createEffect(
    on(
      () => isBusy(props.id),
      (busy) => {
        if (!busy) return;
        setNow(Date.now());
        const timer = setInterval(() => setNow(Date.now()), TICK_MS);
        onCleanup(() => clearInterval(timer));
      },
    ),
  );
  /** The time since the prompt that is answered. A clock that is behind counts as none. */
  const elapsed = createMemo(() => {
    const transcript = transcriptOf(props.id);
    const last = transcript.order().findLast((id) => transcript.message(id)?.info().role === "user");
    const since = last ? transcript.message(last)?.info().time.created : undefined;
    return since !== undefined && now() - since >= TICK_MS && now() - since < MAX_ELAPSED_MS
      ? duration(now() - since)
      : "";
  });
  return (
    <Show when={isBusy(props.id)}>
      <div class="working row">
        <Show
          when={retry()}
          fallback={
            <>
              <span class="dot busy" />
              <span class="muted tabular">
                {t.working} {elapsed()}
              </span>
            </>
          }
        >
          {(now) => (
            <>
              <span class="dot warn" />
              <span>{t.retrying(now().attempt, prose(now().message))}</span>
            </>
          )}
        </Show>
      </div>
    </Show>
  );
}
