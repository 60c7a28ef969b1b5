// Permission requests and questions of a session and its subagents.
import { createEffect, createMemo, createSignal, For, on, Show, type JSX } from "solid-js";
import { call, type PermissionRequest, type QuestionRequest } from "../../api";
import { attempt } from "../../state/actions";
import { state, waiting } from "../../state/mirror";
import { prefs } from "../../state/prefs";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Code } from "../../ui/code";
import { Diff } from "../../ui/diff";
import { Icon } from "../../ui/icon";
import { Segments } from "../../ui/tabs";
import { plain, prose } from "../../ui/text";
import { setPrefs } from "../../state/prefs";

const MAX_PATTERNS = 20;
/** Rules that “Allow always” adds and that are named; the others are counted. */
const MAX_ALWAYS = 8;
const MAX_VALUE = 2_000;

export function Requests(props: { id: string }): JSX.Element {
  const all = createMemo(() => waiting(props.id));
  const count = () => all().permissions.length + all().questions.length;
  return (
    <div class="requests" aria-live="polite">
      <Show
        when={all().questions[0]}
        keyed
        fallback={
          <Show when={all().permissions[0]} keyed>
            {(request) => <Permission request={request} root={props.id} count={count()} />}
          </Show>
        }
      >
        {(request) => <Question request={request} root={props.id} count={count()} />}
      </Show>
    </div>
  );
}

interface Common {
  root: string;
  count: number;
}

function Where(props: Common & { session: string }): JSX.Element {
  return (
    <>
      <Show when={props.session !== props.root}>
        <span class="muted clip">{t.inSubagent(prose(state.sessions[props.session]?.title ?? ""))}</span>
      </Show>
      <Show when={props.count > 1}>
        <span class="badge warn">{t.requestsWaiting(props.count)}</span>
      </Show>
    </>
  );
}

function directoryOf(session: string): string {
  return state.sessions[session]?.directory ?? state.directory;
}

function Permission(props: Common & { request: PermissionRequest }): JSX.Element {
  const [isRejecting, setRejecting] = createSignal(false);
  const [isSending, setSending] = createSignal(false);
  const [wide, setWide] = createSignal("");
  const meta = (key: string) =>
    typeof props.request.metadata[key] === "string" ? (props.request.metadata[key] as string) : "";
  const reply = async (reply: "once" | "always" | "reject", message?: string) => {
    if (isSending()) return;
    setSending(true);
    const { id: requestID, sessionID } = props.request;
    await attempt(() =>
      call("POST /permission/{requestID}/reply", {
        path: { requestID },
        query: { directory: directoryOf(sessionID) },
        body: { reply, ...(message ? { message } : {}), ...(reply === "always" && wide() ? { wider: [wide()] } : {}) },
      }),
    );
    setSending(false);
  };
  const keys = (event: KeyboardEvent) => {
    if (
      event.target instanceof HTMLTextAreaElement ||
      (event.target instanceof HTMLInputElement && event.target.type !== "radio") ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey
    )
      return;
    const action = { y: () => void reply("once"), a: () => void reply("always"), n: () => setRejecting(true) }[
      event.key
    ];
    if (action) {
      event.preventDefault();
      action();
    }
  };
  const reason = () => meta("controlFile") || meta("sandbox");
  const asked = () => (props.request.metadata.asked ?? {}) as { because?: string; always?: string; wider?: string[] };
  const wider = () => asked().wider ?? [];
  return (
    <section
      class="request"
      role="group"
      aria-label={t.permissionTitle(props.request.permission)}
      tabindex={-1}
      onKeyDown={keys}
    >
      <div class="request-head">
        <Icon name="shield" />
        <h2>{t.permissionTitle(plain(props.request.permission))}</h2>
        <Where root={props.root} count={props.count} session={props.request.sessionID} />
        <span class="grow" />
        <Show when={meta("diff")}>
          <Segments
            label={t.layout}
            value={prefs.split ? "split" : "unified"}
            onChange={(value) => setPrefs("split", value === "split")}
            options={[
              { name: "unified", label: t.unified },
              { name: "split", label: t.split },
            ]}
          />
        </Show>
      </div>
      <div class="request-body">
        <Show when={reason()}>
          <p class="notice warn">
            <Icon name="warn" />
            <span>{prose(reason())}</span>
          </p>
        </Show>
        <Show when={asked().because}>{(why) => <p class="muted">{t.askedBecause(plain(why()))}</p>}</Show>
        <Details request={props.request} meta={meta} />
        <Show when={props.request.always.length > 0 && wider().length > 0}>
          <Scope id={props.request.id} patterns={wider()} chosen={wide()} onChoose={setWide} />
        </Show>
      </div>
      <Show
        when={!isRejecting()}
        fallback={
          <Rejection
            isSending={isSending()}
            onReject={(why) => void reply("reject", why)}
            onCancel={() => setRejecting(false)}
          />
        }
      >
        <div class="request-foot">
          <Show when={props.request.always.length > 0}>
            <span class="muted grow always-hint">
              {asked().always
                ? t.alwaysAllows(plain(asked().always ?? ""))
                : t.alwaysHint(
                    plain(props.request.always.slice(0, MAX_ALWAYS).join(", ")),
                    Math.max(0, props.request.always.length - MAX_ALWAYS),
                  )}
            </span>
          </Show>
          <Button class="push" kind="danger" disabled={isSending()} keys="N" onClick={() => setRejecting(true)}>
            {t.reject}
          </Button>
          <Show when={props.request.always.length > 0}>
            <Button disabled={isSending()} keys="A" onClick={() => void reply("always")}>
              {t.allowAlways}
            </Button>
          </Show>
          <Button kind="primary" disabled={isSending()} keys="Y" onClick={() => void reply("once")}>
            {t.allowOnce}
          </Button>
        </div>
      </Show>
    </section>
  );
}

/** How much "always" allows: no more than what is asked for, or a wider pattern. */
function Scope(props: {
  id: string;
  patterns: string[];
  /** The wider pattern, or nothing. */
  chosen: string;
  onChoose: (pattern: string) => void;
}): JSX.Element {
  return (
    <div role="radiogroup" aria-label={t.alwaysScope}>
      <p class="muted">{t.alwaysScope}</p>
      <label class="choice">
        <input
          type="radio"
          name={`wider-${props.id}`}
          checked={props.chosen === ""}
          onChange={() => props.onChoose("")}
        />
        <span>{t.alwaysNarrow}</span>
      </label>
      <For each={props.patterns}>
        {(pattern) => (
          <label class="choice">
            <input
              type="radio"
              name={`wider-${props.id}`}
              checked={props.chosen === pattern}
              onChange={() => props.onChoose(pattern)}
            />
            <span>
              {t.alwaysAlso} <span class="mono">{plain(pattern)}</span>
            </span>
          </label>
        )}
      </For>
    </div>
  );
}

/** The field for the reason of a rejection. */
function Rejection(props: { isSending: boolean; onReject: (why: string) => void; onCancel: () => void }): JSX.Element {
  const [why, setWhy] = createSignal("");
  return (
    <div class="request-foot">
      <textarea
        class="field"
        rows={2}
        aria-label={t.rejectWhy}
        placeholder={t.rejectWhy}
        autofocus
        value={why()}
        onInput={(event) => setWhy(event.currentTarget.value)}
        ref={(element) => requestAnimationFrame(() => element.focus())}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            props.onReject(why().trim());
          }
          if (event.key === "Escape") {
            event.preventDefault();
            props.onCancel();
          }
        }}
      />
      <Button onClick={() => props.onCancel()}>{t.cancel}</Button>
      <Button kind="danger" disabled={props.isSending} onClick={() => props.onReject(why().trim())}>
        {t.reject}
      </Button>
    </div>
  );
}

function Details(props: { request: PermissionRequest; meta: (key: string) => string }): JSX.Element {
  const patterns = () => props.request.patterns.slice(0, MAX_PATTERNS);
  const command = () => props.meta("command");
  const isShown = (key: string) => !["diff", "command", "controlFile", "sandbox", "description"].includes(key);
  const rest = () =>
    Object.entries(props.request.metadata)
      .filter(([key, value]) => isShown(key) && value !== "" && typeof value !== "object")
      .slice(0, MAX_PATTERNS);
  return (
    <>
      <Show when={props.meta("description")}>
        <p>{prose(props.meta("description"))}</p>
      </Show>
      <Show when={command()}>
        <Code code={command()} language="bash" bare />
      </Show>
      <Show
        when={props.meta("diff")}
        fallback={
          <Show when={!command() || props.request.permission !== "bash"}>
            <ul class="patterns">
              <For each={patterns()}>{(pattern) => <li class="mono">{plain(pattern)}</li>}</For>
            </ul>
          </Show>
        }
      >
        {(patch) => <Diff patch={patch()} split={prefs.split} />}
      </Show>
      <Show when={!props.meta("diff") && !command() && rest().length > 0}>
        <dl class="facts">
          <For each={rest()}>
            {([key, value]) => (
              <>
                <dt>{plain(key)}</dt>
                <dd class="mono">{plain(String(value)).slice(0, MAX_VALUE)}</dd>
              </>
            )}
          </For>
        </dl>
      </Show>
    </>
  );
}

/** Returns the chosen labels after one of them was pressed. */
function toggled(chosen: string[], label: string, multiple: boolean): string[] {
  if (!multiple) return [label];
  return chosen.includes(label) ? chosen.filter((other) => other !== label) : [...chosen, label];
}

/** A question with its choices, one after the other, and a review if there are several. */
function Question(props: Common & { request: QuestionRequest }): JSX.Element {
  const questions = () => props.request.questions;
  const [at, setAt] = createSignal(0);
  const [picked, setPicked] = createSignal<string[][]>(questions().map(() => []));
  const [own, setOwn] = createSignal<string[]>(questions().map(() => ""));
  const [isSending, setSending] = createSignal(false);
  let box!: HTMLElement;
  createEffect(
    on(
      () => props.request.id,
      () => {
        setAt(0);
        setPicked(questions().map(() => []));
        setOwn(questions().map(() => ""));
      },
    ),
  );
  createEffect(on(at, () => box.querySelector<HTMLElement>("input")?.focus(), { defer: true }));
  const isReview = () => questions().length > 1 && at() === questions().length;
  const answerOf = (index: number) => [
    ...(picked()[index] ?? []),
    ...(own()[index]?.trim() ? [own()[index]?.trim() ?? ""] : []),
  ];
  const toggle = (label: string, multiple: boolean) =>
    setPicked((all) => all.map((one, index) => (index === at() ? toggled(one, label, multiple) : one)));
  const path = () => ({
    path: { requestID: props.request.id },
    query: { directory: directoryOf(props.request.sessionID) },
  });
  const send = async () => {
    setSending(true);
    await attempt(() =>
      call("POST /question/{requestID}/reply", {
        ...path(),
        body: { answers: questions().map((_, index) => answerOf(index)) },
      }),
    );
    setSending(false);
  };
  const skip = () => void attempt(() => call("POST /question/{requestID}/reject", path()));
  const forward = () => (at() + (questions().length > 1 ? 0 : 1) >= questions().length ? void send() : setAt(at() + 1));
  return (
    <section
      ref={box}
      class="request"
      role="group"
      aria-label={questions()[at()]?.question ?? t.review}
      tabindex={-1}
      onKeyDown={(event) => {
        if (event.key === "Enter" && !event.isComposing && !(event.target instanceof HTMLButtonElement)) {
          event.preventDefault();
          forward();
        }
      }}
    >
      <Show
        when={!isReview() && questions()[at()]}
        fallback={
          <>
            <div class="request-head">
              <Icon name="question" />
              <h2>{t.review}</h2>
              <Where root={props.root} count={props.count} session={props.request.sessionID} />
            </div>
            <div class="request-body">
              <dl class="answers">
                <For each={questions()}>
                  {(question, index) => (
                    <>
                      <dt>{prose(question.question)}</dt>
                      <dd>
                        <button type="button" class="link" onClick={() => setAt(index())}>
                          {prose(answerOf(index()).join(", ")) || t.noAnswer}
                        </button>
                      </dd>
                    </>
                  )}
                </For>
              </dl>
            </div>
          </>
        }
        keyed
      >
        {(question) => (
          <>
            <div class="request-head">
              <Icon name="question" />
              <h2>{prose(question.question)}</h2>
              <Show when={questions().length > 1}>
                <span class="badge">{t.questionOf(at() + 1, questions().length)}</span>
              </Show>
              <Where root={props.root} count={props.count} session={props.request.sessionID} />
            </div>
            <div class="request-body">
              <For each={question.options}>
                {(option) => (
                  <label class="choice">
                    <input
                      type={question.multiple ? "checkbox" : "radio"}
                      name={props.request.id}
                      checked={picked()[at()]?.includes(option.label) ?? false}
                      onChange={() => toggle(option.label, question.multiple === true)}
                    />
                    <span>
                      <strong>{prose(option.label)}</strong>
                      <Show when={option.description}>
                        {" "}
                        <span class="muted">{prose(option.description)}</span>
                      </Show>
                    </span>
                  </label>
                )}
              </For>
              <Show when={question.custom !== false}>
                <input
                  class="field"
                  aria-label={t.ownAnswer}
                  placeholder={t.ownAnswer}
                  value={own()[at()] ?? ""}
                  onInput={(event) => {
                    const text = event.currentTarget.value;
                    setOwn((all) => all.map((one, index) => (index === at() ? text : one)));
                  }}
                />
              </Show>
            </div>
          </>
        )}
      </Show>
      <div class="request-foot">
        <Button kind="quiet" onClick={skip}>
          {t.skipQuestion}
        </Button>
        <span class="grow" />
        <Show when={at() > 0}>
          <Button onClick={() => setAt(at() - 1)}>{t.back}</Button>
        </Show>
        <Button kind="primary" disabled={isSending()} onClick={forward}>
          {questions().length > 1 && !isReview() ? t.next : t.answer}
        </Button>
      </div>
    </section>
  );
}
