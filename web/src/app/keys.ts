// The keys of commands. They use ctrl (or cmd) with alt, because browsers keep most of the others for themselves.
import { applies } from "./command";
import { COMMANDS } from "./commands";
import { dialogs } from "./dialogs";

/** Returns the name of a key event as in the table: `Ctrl Alt N`. */
export function keyName(event: KeyboardEvent): string {
  const parts: string[] = [];
  if (event.ctrlKey || event.metaKey) parts.push("Ctrl");
  if (event.altKey) parts.push("Alt");
  // With alt, some keyboards yield another character, so letters are named by their place.
  const letter = /^Key([A-Z])$/.exec(event.code)?.[1];
  parts.push(event.altKey && letter ? letter : event.key.length === 1 ? event.key.toUpperCase() : event.key);
  return parts.join(" ");
}

export function handleKeys(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || !(event.ctrlKey || event.metaKey)) return;
  const name = keyName(event);
  const command = COMMANDS.find((one) => one.keys === name);
  if (!command || !applies(command)) return;
  if (dialogs().length > 0 && command.id !== "command.palette") return;
  // A terminal keeps its keys.
  if (event.target instanceof Element && event.target.closest(".xterm") && !event.altKey) return;
  event.preventDefault();
  if (dialogs().length === 0) command.run();
}
