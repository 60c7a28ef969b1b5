// Sending of a prompt.
import { createSignal, type Accessor } from "solid-js";
import { createSession, sendPrompt } from "../../../state/actions";
import { needsChoice } from "../../../state/choice";
import { fail } from "../../../ui/toast";
import { partsOf } from "../draft";
import { runSlash } from "../slash";
import type { ComposerContext } from "./context";

export interface Sender {
  canSend: Accessor<boolean>;
  send: () => Promise<void>;
}

interface Options {
  /** The session, or nothing for a new one. */
  id: () => string;
  directory: () => string;
  onSent: (id: string) => void;
}

/** Explains how to get a model. Its code is loaded when it is needed. */
export function explainModels(directory: string): void {
  void import("../../home/first-run").then(({ firstRunDialog }) => firstRunDialog(directory), fail);
}

export function createSender({ draft, place, session, area }: ComposerContext, options: Options): Sender {
  const [isSending, setSending] = createSignal(false);
  const isEmpty = () => draft.text().trim() === "" && draft.attachments().length === 0 && draft.comments().length === 0;
  const canSend = () => !isEmpty() && !isSending();

  /** Whether a model answers. If there is none, the user is told how to get one. A shell command needs none. */
  const isAnswered = async () => {
    if (draft.isShell()) return true;
    await Promise.all([place().providers.load(), place().config.load(), place().agents.load()]);
    if (!needsChoice(place(), session())) return true;
    explainModels(options.directory());
    return false;
  };
  const run = async () => {
    const slash = draft.isShell() ? "prompt" : await runSlash(draft.text().trim(), place(), session());
    if (slash === "done") draft.setText("");
    // What was typed stays until there is a model.
    if (slash !== "prompt" || !(await isAnswered())) return;
    const id = options.id() || (await createSession(options.directory())).id;
    const parts = partsOf(draft, options.directory());
    await sendPrompt(id, { text: draft.text(), parts, isShell: draft.isShell() });
    draft.clear();
    options.onSent(id);
  };

  const send = async () => {
    if (!canSend()) return;
    setSending(true);
    try {
      await run();
    } catch (error) {
      // What was typed stays.
      fail(error);
    } finally {
      setSending(false);
      area().focus();
    }
  };
  return { canSend, send };
}
