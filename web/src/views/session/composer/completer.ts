// The completion of a prompt: what is being completed, what fits, and which of it is selected.
import { createEffect, createSignal, on, onCleanup, type Accessor } from "solid-js";
import { candidates, type Candidate } from "../completion";
import { completionAt, type Completion } from "../completion-at";
import type { ComposerContext } from "./context";

/** The delay after which the commands for the completion are fetched. */
const COMMANDS_MS = 300;

export interface Completer {
  found: Accessor<Candidate[]>;
  selected: Accessor<number>;
  /** Looks for what completes the text at the caret. */
  look: () => Promise<void>;
  complete: (candidate: Candidate) => void;
  /** Hides the candidates. */
  hide: () => void;
  /** Handles a key. Returns whether it was one of the completion. */
  handleKey: (event: KeyboardEvent) => boolean;
}

export function createCompleter({ draft, place, area }: ComposerContext): Completer {
  const [completion, setCompletion] = createSignal<Completion | null>(null);
  const [found, setFound] = createSignal<Candidate[]>([]);
  const [selected, setSelected] = createSignal(0);

  createEffect(
    on(place, (where) => {
      // Fetched before the first completion needs them, but after what the first view needs.
      const timer = setTimeout(() => where.commands(), COMMANDS_MS);
      onCleanup(() => clearTimeout(timer));
    }),
  );

  let ticket = 0;
  const look = async () => {
    const next = draft.isShell() ? null : completionAt(area().value, area().selectionStart);
    setCompletion(next);
    ticket += 1;
    const mine = ticket;
    if (!next) {
      setFound([]);
      return;
    }
    const list = await candidates(next, place());
    if (mine !== ticket) return;
    setFound(list);
    setSelected(0);
  };
  const hide = () => setFound([]);
  const end = () => {
    setCompletion(null);
    setFound([]);
  };

  const complete = (candidate: Candidate) => {
    const at = completion();
    if (!at) return;
    if (candidate.run) {
      draft.setText("");
      end();
      candidate.run();
      return;
    }
    const field = area();
    const text = field.value;
    const next = `${text.slice(0, at.start)}${candidate.insert} ${text.slice(at.end).replace(/^ /, "")}`;
    if (candidate.mention) draft.mentions.set(candidate.insert, candidate.mention);
    draft.setText(next);
    const caret = at.start + candidate.insert.length + 1;
    field.value = next;
    field.setSelectionRange(caret, caret);
    end();
    field.focus();
  };

  const handleKey = (event: KeyboardEvent): boolean => {
    const list = found();
    if (list.length === 0) return false;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const chosen = list[selected()];
    if (by) setSelected((selected() + by + list.length) % list.length);
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && chosen) complete(chosen);
    else if (event.key === "Escape") end();
    else return false;
    event.preventDefault();
    return true;
  };

  return { found, selected, look, complete, hide, handleKey };
}
