// The open dialogs. Each is a component that gets a function that closes it.
import { createSignal, type Component } from "solid-js";

export type DialogView = Component<{ close: () => void }>;
interface Open {
  view: DialogView;
  close: () => void;
}

const [dialogs, setDialogs] = createSignal<Open[]>([]);
export { dialogs };

/** Opens a dialog above the others. */
export function openDialog(view: DialogView): void {
  const open: Open = { view, close: () => setDialogs((all) => all.filter((one) => one !== open)) };
  setDialogs((all) => [...all, open]);
}

export function closeAll(): void {
  setDialogs([]);
}
