// The prompt: text with completion, attachments, the shell mode, the history, and the choice of agent and model.
import { createMemo, createSignal, Show, type JSX } from "solid-js";
import { abort } from "../../../state/actions";
import { isBusy, state } from "../../../state/mirror";
import { placeOf } from "../../../state/place";
import { t } from "../../../text";
import { draftOf } from "../draft";
import { attach } from "./attachments";
import { Bar } from "./bar";
import { Chips } from "./chips";
import { createCompleter } from "./completer";
import { CompletionList } from "./completion-list";
import type { ComposerContext } from "./context";
import { Field } from "./field";
import { createInterrupt } from "./interrupt";
import { createKeys } from "./keys";
import { createAnswerer } from "./model";
import { Notes } from "./notes";
import { createRecall } from "./recall";
import { createSender, explainModels } from "./send";

interface Props {
  /** The session, or nothing for a new one. */
  id: string;
  directory: string;
  onSent: (id: string) => void;
}

export function Composer(props: Props): JSX.Element {
  const draft = draftOf(props.id || "new");
  let area!: HTMLTextAreaElement;
  const context: ComposerContext = {
    draft,
    place: createMemo(() => placeOf(props.directory)),
    session: () => (props.id ? state.sessions[props.id] : undefined),
    area: () => area,
  };
  const busy = () => props.id !== "" && isBusy(props.id);
  const completer = createCompleter(context);
  const recall = createRecall(context);
  const interrupt = createInterrupt(() => props.id);
  const answerer = createAnswerer(context);
  const onSent = (id: string) => {
    recall.end();
    props.onSent(id);
  };
  const sender = createSender(context, { id: () => props.id, directory: () => props.directory, onSent });
  const send = () => void sender.send();
  const onEscape = () => {
    if (busy()) interrupt.press();
  };
  const keys = createKeys(context, { completer, recall, send, onEscape });
  const onFiles = (files: Iterable<File>) => attach(draft, files);

  return (
    <DropZone isShell={draft.isShell()} onFiles={onFiles}>
      <CompletionList completer={completer} />
      <Chips draft={draft} />
      <Field
        draft={draft}
        completer={completer}
        onField={(field) => {
          area = field;
        }}
        onType={recall.end}
        onKey={keys}
        onFiles={onFiles}
      />
      <Bar
        answerer={answerer}
        isShell={draft.isShell()}
        isBusy={busy()}
        canSend={sender.canSend()}
        isInterrupting={interrupt.isArmed()}
        onFiles={onFiles}
        onNoModel={() => explainModels(props.directory)}
        onSend={send}
        onStop={() => abort(props.id)}
      />
      <Notes answerer={answerer} />
    </DropZone>
  );
}

/** The frame of the composer, onto which files can be dropped. */
function DropZone(props: {
  isShell: boolean;
  onFiles: (files: Iterable<File>) => void;
  children: JSX.Element;
}): JSX.Element {
  const [isDropping, setDropping] = createSignal(false);
  return (
    <div
      class="composer"
      classList={{ "is-shell": props.isShell, dropping: isDropping() }}
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={(event) => {
        event.preventDefault();
        setDropping(false);
        props.onFiles(event.dataTransfer?.files ?? []);
      }}
    >
      {props.children}
      <Show when={isDropping()}>
        <div class="drop-hint" aria-hidden="true">
          {t.dropHere}
        </div>
      </Show>
    </div>
  );
}
