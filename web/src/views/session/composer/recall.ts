// The history of prompts, which the arrow keys bring back.
import { prefs } from "../../../state/prefs";
import type { ComposerContext } from "./context";

export interface Recall {
  /** Whether a prompt of the history is displayed. */
  isActive: () => boolean;
  /** Goes back by so many prompts, or forward if the number is negative. */
  move: (by: number) => void;
  /** Takes the displayed text as the user's own. */
  end: () => void;
}

export function createRecall({ draft, area }: ComposerContext): Recall {
  /** The prompt that is displayed, counted from the last one, or -1 for what the user typed. */
  let recalled = -1;
  let typed = "";
  const move = (by: number) => {
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
    const field = area();
    field.value = shown;
    field.setSelectionRange(shown.length, shown.length);
  };
  const end = () => {
    recalled = -1;
  };
  return { isActive: () => recalled >= 0, move, end };
}
