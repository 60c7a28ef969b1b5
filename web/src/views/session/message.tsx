// A message: a prompt, or an answer with its parts.
import { createMemo, createSignal, For, Show, type JSX } from "solid-js";
import type {
  AssistantMessage,
  FilePart,
  Message,
  Part,
  ReasoningPart,
  TextPart,
  ToolPart,
  UserMessage,
} from "../../api";
import { fork } from "../../state/actions";
import { isBusy } from "../../state/mirror";
import { prefs } from "../../state/prefs";
import type { MessageNode, PartNode, Transcript } from "../../state/transcript";
import { clock, duration } from "../../text/format";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { copy } from "../../ui/code";
import { Icon } from "../../ui/icon";
import { Markdown } from "../../ui/markdown";
import { prose } from "../../ui/text";
import { FileChip } from "./file-chip";
import { openFile } from "./open-file";
import { promptText } from "./prompt-text";
import { openUndo } from "./timeline";
import { ToolView } from "./tools";

interface Props {
  transcript: Transcript;
  id: string;
  isLast: boolean;
}

export function MessageRow(props: Props): JSX.Element {
  const node = createMemo(() => props.transcript.message(props.id));
  return (
    <Show when={node()} keyed>
      {(message) => (
        <Show when={message.info().role === "user"} fallback={<Answer {...props} node={message} />}>
          <Prompt {...props} node={message} />
        </Show>
      )}
    </Show>
  );
}

type RowProps = Props & { node: MessageNode };
const partsOf = (node: MessageNode): Part[] => node.parts().map((part) => part.part());

function Prompt(props: RowProps): JSX.Element {
  const text = createMemo(() => promptText(props.node));
  const parts = createMemo(() => partsOf(props.node));
  const files = () => parts().filter((part): part is FilePart => part.type === "file");
  const subtasks = () => parts().flatMap((part) => (part.type === "subtask" ? [part] : []));
  const compaction = () => parts().find((part) => part.type === "compaction");
  const session = () => props.node.info().sessionID;
  /** The prompt waits if a running answer belongs to an earlier one. */
  const isQueued = createMemo(() => {
    if (!isBusy(session())) return false;
    const order = props.transcript.order();
    const after = order.slice(order.indexOf(props.id) + 1);
    if (after.some((id) => props.transcript.message(id)?.info().role === "assistant")) return false;
    const answer = order.findLast((id) => props.transcript.message(id)?.info().role === "assistant");
    const info = answer ? (props.transcript.message(answer)?.info() as AssistantMessage | undefined) : undefined;
    return info !== undefined && !info.time.completed && info.parentID !== props.id;
  });
  return (
    <Show
      when={!compaction()}
      fallback={
        <div class="compaction" role="separator">
          <span>{t.compacted}</span>
        </div>
      }
    >
      <Show when={text() || files().length > 0 || subtasks().length > 0}>
        <article class="message prompt" aria-label={t.you}>
          <div class="prompt-box">
            <div class="prompt-text" dir="auto">
              {prose(text())}
            </div>
            <For each={subtasks()}>
              {(task) => (
                <div class="row muted">
                  <Icon name="fork" />
                  {prose(task.agent)}: {prose(task.description)}
                </div>
              )}
            </For>
            <Show when={files().length > 0}>
              <div class="chips">
                <For each={files()}>{(file) => <FileChip file={file} />}</For>
              </div>
            </Show>
            <div class="message-actions">
              <Show when={prefs.times}>
                <span class="muted tabular">{clock(props.node.info().time.created)}</span>
              </Show>
              <Show when={isQueued()}>
                <span class="badge accent" title={t.editQueued}>
                  {t.queued}
                </span>
              </Show>
              <span class="on-hover row">
                <Button small kind="quiet" icon="copy" label={t.copyMessage} onClick={() => void copy(text())} />
                <Button
                  small
                  kind="quiet"
                  icon="undo"
                  label={t.undoPrompt}
                  onClick={() => openUndo(session(), props.id)}
                />
                <Button small kind="quiet" icon="fork" label={t.forkHere} onClick={() => fork(session(), props.id)} />
              </span>
            </div>
          </div>
        </article>
      </Show>
    </Show>
  );
}

function Answer(props: RowProps): JSX.Element {
  const info = () => props.node.info() as AssistantMessage;
  const parts = createMemo(() => props.node.parts().filter((node) => isShown(node.part())));
  const isRunning = () => !info().time.completed && isBusy(info().sessionID);
  return (
    <article
      class="message answer"
      classList={{ summary: info().summary === true }}
      aria-label={`${t.agent}: ${info().agent}`}
      aria-busy={isRunning()}
    >
      <Show when={info().summary}>
        <div class="compaction" role="separator">
          <span>{t.compacting}</span>
        </div>
      </Show>
      <For each={parts()}>{(node) => <PartView node={node} message={info()} isRunning={isRunning()} />}</For>
      <Show when={info().error}>{(error) => <Failure error={error()} />}</Show>
      <Footer {...props} info={info()} />
    </article>
  );
}

function isShown(part: Part): boolean {
  switch (part.type) {
    case "text":
      return part.text.trim() !== "" && !part.synthetic;
    case "reasoning":
      return part.text.trim() !== "";
    case "tool":
      return part.tool !== "todoread";
    case "file":
    case "retry":
      return true;
    default:
      return false;
  }
}

function PartView(props: { node: PartNode; message: AssistantMessage; isRunning: boolean }): JSX.Element {
  const part = () => props.node.part();
  // The type of a part never changes.
  switch (part().type) {
    case "text": {
      const text = () => part() as TextPart;
      return (
        <Markdown text={text().text} done={text().time?.end !== undefined || !props.isRunning} onFile={openFile} />
      );
    }
    case "reasoning":
      return <Thought part={part() as ReasoningPart} isRunning={props.isRunning} />;
    case "tool":
      return <ToolView part={part() as ToolPart} />;
    case "file":
      return (
        <div class="chips">
          <FileChip file={part() as FilePart} />
        </div>
      );
    default:
      return null;
  }
}

/** Thinking, folded unless the user wants to see it. While it streams, its newest line is visible. */
function Thought(props: { part: ReasoningPart; isRunning: boolean }): JSX.Element {
  const [isOpen, setOpen] = createSignal<boolean | null>(null);
  const open = () => isOpen() ?? prefs.thinking;
  const isThinking = () => props.isRunning && props.part.time.end === undefined;
  const took = () => (props.part.time.end ? props.part.time.end - props.part.time.start : 0);
  const line = () => prose(props.part.text.trimEnd().split("\n").at(-1) ?? "").replace(/[*_`#]/g, "");
  return (
    <div class="thought" classList={{ open: open() }}>
      <button type="button" class="fold" aria-expanded={open()} onClick={() => setOpen(!open())}>
        <Icon name="chevron" />
        <span>{isThinking() ? t.thinking : took() >= 1_000 ? t.thoughtFor(duration(took())) : t.thought}</span>
        <Show when={isThinking() && !open()}>
          <span class="clip muted">{line()}</span>
        </Show>
      </button>
      <Show when={open()}>
        <Markdown text={props.part.text} done={!isThinking()} onFile={openFile} />
      </Show>
    </div>
  );
}

export function Failure(props: { error: NonNullable<AssistantMessage["error"]> }): JSX.Element {
  const message = () => ("message" in props.error.data ? String(props.error.data.message) : props.error.name);
  return (
    <Show
      when={props.error.name !== "MessageAbortedError"}
      fallback={
        <div class="muted row">
          <Icon name="stop" />
          {t.interrupted}
        </div>
      }
    >
      <div class="notice bad" role="alert">
        <Icon name="error" />
        <span>{prose(message())}</span>
      </div>
    </Show>
  );
}

/** The end of a turn: agent, model and time. */
function Footer(props: RowProps & { info: AssistantMessage }): JSX.Element {
  const isEnd = createMemo(() => {
    const order = props.transcript.order();
    const next = props.transcript.message(order[order.indexOf(props.id) + 1] ?? "")?.info();
    return next === undefined
      ? !isBusy(props.info.sessionID)
      : next.role === "user" && (next as Message).id !== props.info.parentID;
  });
  const took = () => {
    const prompt = props.transcript.message(props.info.parentID)?.info() as UserMessage | undefined;
    return props.info.time.completed && prompt ? props.info.time.completed - prompt.time.created : 0;
  };
  const text = () =>
    props.node
      .parts()
      .map((one) => one.part())
      .flatMap((part) => (part.type === "text" ? [part.text] : []))
      .join("\n\n");
  return (
    <Show when={isEnd() && props.info.time.completed}>
      <footer class="answer-foot muted">
        <span>{prose(props.info.agent)}</span>
        <span class="clip">
          {prose(props.info.modelID)}
          {props.info.variant ? ` · ${prose(props.info.variant)}` : ""}
        </span>
        <Show when={took() > 0}>
          <span class="tabular">{duration(took())}</span>
        </Show>
        <Show when={prefs.times}>
          <span class="tabular">{clock(props.info.time.created)}</span>
        </Show>
        <Show when={text()}>
          <span class="on-hover">
            <Button small kind="quiet" icon="copy" label={t.copyMessage} onClick={() => void copy(text())} />
          </span>
        </Show>
      </footer>
    </Show>
  );
}
