// The keys of the prompt.
import { cycleAgent } from "../../../app/pickers";
import { prefs } from "../../../state/prefs";
import type { Completer } from "./completer";
import type { ComposerContext } from "./context";
import type { Recall } from "./recall";

interface Parts {
  completer: Completer;
  recall: Recall;
  send: () => void;
  /** Called for escape when there is nothing else to leave. */
  onEscape: () => void;
}

/** What a key does: `undefined` for its usual effect, or an action that replaces it. */
type Action = (() => void) | undefined;

function isSendKey(event: KeyboardEvent): boolean {
  const isEnter = event.key === "Enter" && !event.shiftKey && !event.altKey;
  return isEnter && (prefs.enterSends || event.ctrlKey || event.metaKey);
}

/** Returns what handles the keys of the prompt. */
export function createKeys({ draft, area }: ComposerContext, parts: Parts): (event: KeyboardEvent) => void {
  const leaveShell = () => draft.setShell(false);
  const actionOf = (event: KeyboardEvent): Action => {
    const { value, selectionStart, selectionEnd } = area();
    const { key } = event;
    if (isSendKey(event)) return parts.send;
    if (key === "!" && value === "" && !draft.isShell()) return () => draft.setShell(true);
    if (key === "Escape") return draft.isShell() ? leaveShell : parts.onEscape;
    if (key === "ArrowUp" && !event.shiftKey && selectionStart === 0 && selectionEnd === 0) {
      return () => parts.recall.move(1);
    }
    if (key === "ArrowDown" && !event.shiftKey && parts.recall.isActive() && selectionStart === value.length) {
      return () => parts.recall.move(-1);
    }
    if (event.altKey && (key === "ArrowRight" || key === "ArrowLeft") && value === "") {
      return () => cycleAgent(key === "ArrowRight" ? 1 : -1);
    }
    return undefined;
  };

  return (event) => {
    if (event.isComposing || parts.completer.handleKey(event)) return;
    const action = actionOf(event);
    if (action) {
      event.preventDefault();
      action();
    } else if (event.key === "Backspace" && area().value === "" && draft.isShell()) {
      leaveShell();
    }
  };
}
