// Two presses of escape interrupt a session.
import { createSignal, type Accessor } from "solid-js";
import { abort } from "../../../state/actions";

/** Two presses of escape within this time interrupt. */
const ESCAPE_MS = 1_500;

export interface Interrupt {
  /** Whether another press interrupts. */
  isArmed: Accessor<boolean>;
  press: () => void;
}

export function createInterrupt(id: () => string): Interrupt {
  const [pressed, setPressed] = createSignal(0);
  const press = () => {
    if (performance.now() - pressed() < ESCAPE_MS) {
      setPressed(0);
      abort(id());
      return;
    }
    setPressed(performance.now());
    setTimeout(() => setPressed(0), ESCAPE_MS);
  };
  return { isArmed: () => pressed() > 0, press };
}
