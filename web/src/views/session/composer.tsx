// The prompt: text with completion, attachments, the shell mode, the history, and the choice of agent and model.
import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, Show, type JSX } from "solid-js";
import { cycleAgent, openAgents, openModels, openVariants } from "../../app/pickers";
import { abort, createSession, sendPrompt } from "../../state/actions";
import {
  currentAgent,
  currentModel,
  currentVariant,
  findModel,
  isGuessed,
  needsChoice,
  variantsOf,
} from "../../state/choice";
import { runSlash } from "./slash";
import { isBusy, state } from "../../state/mirror";
import { placeOf } from "../../state/place";
import { prefs } from "../../state/prefs";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { plain, prose } from "../../ui/text";
import { fail, toast } from "../../ui/toast";
import { candidates, type Candidate } from "./completion";
import { completionAt, type Completion } from "./completion-at";
import { draftOf, partsOf, type Attachment } from "./draft";

const MAX_ATTACHMENT = 20 * 1024 * 1024;
/** The delay after which the commands for the completion are fetched. */
const COMMANDS_MS = 300;
/** Two presses of escape within this time interrupt. */
const ESCAPE_MS = 1_500;

interface Props {
  /** The session, or nothing for a new one. */
  id: string;
  directory: string;
  onSent: (id: string) => void;
}

export function Composer(props: Props): JSX.Element {
  const draft = draftOf(props.id || "new");
  const place = createMemo(() => placeOf(props.directory));
  const session = () => (props.id ? state.sessions[props.id] : undefined);
  const busy = () => props.id !== "" && isBusy(props.id);
  const [isSending, setSending] = createSignal(false);
  const [isDropping, setDropping] = createSignal(false);
  const [completion, setCompletion] = createSignal<Completion | null>(null);
  const [found, setFound] = createSignal<Candidate[]>([]);
  const [selected, setSelected] = createSignal(0);
  const [escaped, setEscaped] = createSignal(0);
  let area!: HTMLTextAreaElement;
  let picker!: HTMLInputElement;
  let recalled = -1;
  let typed = "";

  // Newer browsers grow the field by a rule of the style sheet, which needs no layout in between.
  const grow = CSS.supports("field-sizing", "content")
    ? () => {}
    : () => {
        area.style.height = "auto";
        area.style.height = `${Math.min(area.scrollHeight + 2, innerHeight * 0.4)}px`;
      };
  createEffect(
    on(draft.text, (text) => {
      if (area.value !== text) area.value = text;
      grow();
    }),
  );
  onMount(() => {
    grow();
    // On a touch screen the keyboard would cover the session. Both need a layout, which the next frame makes anyway.
    const focusing = requestAnimationFrame(() => {
      if (matchMedia("(hover: hover)").matches) area.focus({ preventScroll: true });
    });
    onCleanup(() => cancelAnimationFrame(focusing));
    const paste = (event: Event) => addFiles((event as CustomEvent<File[]>).detail);
    area.addEventListener("attach", paste);
    onCleanup(() => area.removeEventListener("attach", paste));
  });

  // Completion
  createEffect(
    on(place, (where) => {
      // Fetched before the first completion needs them, but after what the first view needs.
      const timer = setTimeout(() => where.commands(), COMMANDS_MS);
      onCleanup(() => clearTimeout(timer));
    }),
  );
  let ticket = 0;
  const look = async () => {
    const next = draft.isShell() ? null : completionAt(area.value, area.selectionStart);
    setCompletion(next);
    const mine = (ticket += 1);
    if (!next) {
      setFound([]);
      return;
    }
    const list = await candidates(next, place());
    if (mine !== ticket) return;
    setFound(list);
    setSelected(0);
  };
  const complete = (candidate: Candidate) => {
    const at = completion();
    if (!at) return;
    if (candidate.run) {
      draft.setText("");
      setCompletion(null);
      setFound([]);
      candidate.run();
      return;
    }
    const text = area.value;
    const next = `${text.slice(0, at.start)}${candidate.insert} ${text.slice(at.end).replace(/^ /, "")}`;
    if (candidate.mention) draft.mentions.set(candidate.insert, candidate.mention);
    draft.setText(next);
    const caret = at.start + candidate.insert.length + 1;
    area.value = next;
    area.setSelectionRange(caret, caret);
    setCompletion(null);
    setFound([]);
    area.focus();
  };

  // Attachments
  const addFiles = (files: Iterable<File>) => {
    for (const file of files) {
      if (file.size > MAX_ATTACHMENT) {
        toast({ text: t.attachmentTooLarge(plain(file.name)), kind: "bad" });
        continue;
      }
      void read(file).then((added) => draft.setAttachments((all) => [...all, added]), fail);
    }
  };

  // Sending
  const canSend = () =>
    (draft.text().trim() !== "" || draft.attachments().length > 0 || draft.comments().length > 0) && !isSending();
  const send = async () => {
    if (!canSend()) return;
    setSending(true);
    try {
      const slash = draft.isShell() ? "prompt" : await runSlash(draft.text().trim(), place(), session());
      if (slash === "done") draft.setText("");
      if (slash !== "prompt") return;
      // What was typed stays until there is a model. A shell command needs none.
      if (!draft.isShell()) await Promise.all([place().providers.load(), place().config.load(), place().agents.load()]);
      if (!draft.isShell() && needsChoice(place(), session())) {
        explainModels();
        return;
      }
      const id = props.id || (await createSession(props.directory)).id;
      const prompt = { text: draft.text(), parts: partsOf(draft, props.directory), isShell: draft.isShell() };
      await sendPrompt(id, prompt);
      draft.clear();
      recalled = -1;
      props.onSent(id);
    } catch (error) {
      // What was typed stays.
      fail(error);
    } finally {
      setSending(false);
      area.focus();
    }
  };

  const recall = (by: number) => {
    const history = prefs.history;
    if (recalled < 0) typed = draft.text();
    const next = recalled + by;
    if (next >= history.length) return;
    recalled = Math.max(-1, next);
    const text = recalled < 0 ? typed : (history.at(-1 - recalled) ?? "");
    draft.setShell(text.startsWith("!"));
    const shown = text.startsWith("!") ? text.slice(1) : text;
    draft.setText(shown);
    // At once: a key that follows before the next frame must not find the old text and caret.
    area.value = shown;
    area.setSelectionRange(shown.length, shown.length);
  };

  const keys = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const list = found();
    if (list.length > 0) {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) {
        event.preventDefault();
        setSelected((selected() + by + list.length) % list.length);
        return;
      }
      const chosen = list[selected()];
      if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && chosen) {
        event.preventDefault();
        complete(chosen);
        return;
      }
      if (event.key === "Escape") {
        event.preventDefault();
        setFound([]);
        setCompletion(null);
        return;
      }
    }
    if (
      event.key === "Enter" &&
      !event.shiftKey &&
      !event.altKey &&
      (prefs.enterSends || event.ctrlKey || event.metaKey)
    ) {
      event.preventDefault();
      void send();
    } else if (event.key === "!" && area.value === "" && !draft.isShell()) {
      event.preventDefault();
      draft.setShell(true);
    } else if (event.key === "Backspace" && area.value === "" && draft.isShell()) {
      draft.setShell(false);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (draft.isShell()) draft.setShell(false);
      else if (busy()) escape();
    } else if (event.key === "ArrowUp" && !event.shiftKey && area.selectionStart === 0 && area.selectionEnd === 0) {
      event.preventDefault();
      recall(1);
    } else if (
      event.key === "ArrowDown" &&
      !event.shiftKey &&
      recalled >= 0 &&
      area.selectionStart === area.value.length
    ) {
      event.preventDefault();
      recall(-1);
    } else if (event.altKey && (event.key === "ArrowRight" || event.key === "ArrowLeft") && area.value === "") {
      event.preventDefault();
      cycleAgent(event.key === "ArrowRight" ? 1 : -1);
    }
  };
  const escape = () => {
    if (performance.now() - escaped() < ESCAPE_MS) {
      setEscaped(0);
      abort(props.id);
    } else {
      setEscaped(performance.now());
      setTimeout(() => setEscaped(0), ESCAPE_MS);
    }
  };

  const agent = () => currentAgent(place(), session());
  const model = () => currentModel(place(), session());
  const modelTitle = () => {
    const ref = model();
    return ref ? prose(findModel(place(), ref)?.model.name ?? ref.modelID) : t.noModel;
  };
  const variant = () => {
    const ref = model();
    return ref ? currentVariant(place(), ref) : undefined;
  };
  /** Explains how to get a model. Its code is loaded when it is needed. */
  const explainModels = () =>
    void import("../home/first-run").then(({ firstRunDialog }) => firstRunDialog(props.directory), fail);
  /** Whether a picture is attached that the model cannot see. */
  const isBlind = () =>
    draft.attachments().some((file) => file.mime.startsWith("image/")) &&
    findModel(place(), model())?.model.capabilities.input.image === false;
  const isUnchosen = () => needsChoice(place(), session());
  const hasVariants = () => variantsOf(place(), model()).length > 0;

  return (
    <div
      class="composer"
      classList={{ "is-shell": draft.isShell(), dropping: isDropping() }}
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={(event) => {
        event.preventDefault();
        setDropping(false);
        addFiles(event.dataTransfer?.files ?? []);
      }}
    >
      <Show when={found().length > 0}>
        <div class="completion options" role="listbox" id="completion" aria-label={t.commands}>
          <For each={found()}>
            {(candidate, at) => (
              <div
                class="option"
                role="option"
                id={`completion-${at()}`}
                aria-selected={at() === selected()}
                onPointerDown={(event) => (event.preventDefault(), complete(candidate))}
                ref={(element) =>
                  createEffect(() => at() === selected() && element.scrollIntoView({ block: "nearest" }))
                }
              >
                <Icon name={candidate.icon} />
                <span class="clip">{plain(candidate.label)}</span>
                <span class="detail clip">{prose(candidate.detail ?? "")}</span>
              </div>
            )}
          </For>
        </div>
      </Show>
      <Show when={draft.attachments().length + draft.comments().length > 0}>
        <div class="chips composer-chips">
          <For each={draft.attachments()}>
            {(file) => (
              <span class="chip">
                <Show when={file.mime.startsWith("image/")} fallback={<Icon name="file" />}>
                  <img src={file.url} alt="" />
                </Show>
                <span class="clip">{plain(file.name)}</span>
                <Button
                  small
                  kind="quiet"
                  icon="close"
                  label={`${t.remove}: ${file.name}`}
                  onClick={() => draft.setAttachments((all) => all.filter((one) => one !== file))}
                />
              </span>
            )}
          </For>
          <For each={draft.comments()}>
            {(comment) => (
              <span class="chip" title={comment.text}>
                <Icon name="edit" />
                <span class="clip mono">
                  {plain(comment.file.split("/").at(-1) ?? "")}:{comment.line}
                </span>
                <span class="clip">{prose(comment.text)}</span>
                <Button
                  small
                  kind="quiet"
                  icon="close"
                  label={`${t.remove}: ${comment.text}`}
                  onClick={() => draft.setComments((all) => all.filter((one) => one !== comment))}
                />
              </span>
            )}
          </For>
        </div>
      </Show>
      <div class="composer-text">
        <Show when={draft.isShell()}>
          <span class="composer-mark mono" aria-hidden="true">
            $
          </span>
        </Show>
        <textarea
          id="prompt"
          ref={area}
          rows={1}
          dir="auto"
          class={draft.isShell() ? "mono" : ""}
          aria-label={draft.isShell() ? t.shellPlaceholder : t.promptLabel}
          placeholder={draft.isShell() ? t.shellPlaceholder : t.promptPlaceholder}
          value={draft.text()}
          spellcheck={!draft.isShell()}
          aria-controls={found().length > 0 ? "completion" : undefined}
          aria-autocomplete="list"
          aria-activedescendant={found().length > 0 ? `completion-${selected()}` : undefined}
          onInput={(event) => {
            recalled = -1;
            draft.setText(event.currentTarget.value);
            void look();
          }}
          onKeyDown={keys}
          onClick={() => void look()}
          onBlur={() => setFound([])}
          onPaste={(event) => {
            const files = [...(event.clipboardData?.files ?? [])];
            if (files.length === 0) return;
            event.preventDefault();
            addFiles(files);
          }}
        />
      </div>
      <div class="composer-bar">
        <Button kind="quiet" small icon="attach" label={t.attachFile} onClick={() => picker.click()} />
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          tabindex={-1}
          aria-label={t.attachFile}
          onChange={(event) => {
            addFiles(event.currentTarget.files ?? []);
            event.currentTarget.value = "";
          }}
        />
        <Show when={!draft.isShell()} fallback={<span class="badge accent">{t.shellMode}</span>}>
          <button type="button" class="pill" aria-label={`${t.agent}: ${agent() ?? ""}`} onClick={() => openAgents()}>
            {prose(agent() ?? "…")}
          </button>
          <button
            type="button"
            class="pill clip"
            classList={{ warn: isUnchosen() }}
            aria-label={`${t.model}: ${modelTitle()}`}
            onClick={() => (isUnchosen() ? explainModels() : openModels())}
          >
            {modelTitle()}
          </button>
          <Show when={hasVariants()}>
            <button
              type="button"
              class="pill"
              aria-label={`${t.variant}: ${variant() ?? t.defaultVariant}`}
              onClick={() => openVariants()}
            >
              {variant() ?? t.defaultVariant}
            </button>
          </Show>
        </Show>
        <span class="grow" />
        <Show when={escaped() > 0}>
          <span class="muted" role="status">
            {t.interruptHint}
          </span>
        </Show>
        <Show when={busy()}>
          <Button small kind="quiet" icon="stop" keys="Esc Esc" class="stop" onClick={() => abort(props.id)}>
            {t.stop}
          </Button>
        </Show>
        <Button
          small
          kind="primary"
          icon="send"
          label={t.send}
          keys={prefs.enterSends ? "Enter" : "Ctrl Enter"}
          disabled={!canSend()}
          onClick={() => void send()}
        />
      </div>
      <Show when={isBlind()}>
        <p class="composer-note warn" role="alert">
          {t.cannotSee(modelTitle())}{" "}
          <button type="button" class="link" onClick={() => openModels()}>
            {t.chooseModel}
          </button>
        </p>
      </Show>
      <Show when={isGuessed(place(), session())}>
        <p class="composer-note muted" role="status">
          {t.modelGuessed(modelTitle())}{" "}
          <button type="button" class="link" onClick={() => openModels()}>
            {t.chooseModel}
          </button>
        </p>
      </Show>
      <Show when={isDropping()}>
        <div class="drop-hint" aria-hidden="true">
          {t.dropHere}
        </div>
      </Show>
    </div>
  );
}

/** Reads a file as a data URL. */
function read(file: File): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error ?? new Error(file.name));
    reader.onload = () => {
      const mime = file.type || "text/plain";
      const url = String(reader.result).replace(/^data:[^;,]*/, `data:${mime}`);
      resolve({ name: file.name || "pasted", mime, url, bytes: file.size });
    };
    reader.readAsDataURL(file);
  });
}
