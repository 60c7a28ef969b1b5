// A command: what the palette, the shortcuts page, keys and slash commands have in common.
import type { IconName } from "../ui/icon";
import { route } from "./router";

export interface Command {
  id: string;
  label: string;
  group: "session" | "view" | "agent" | "system";
  keys?: string;
  icon?: IconName;
  slash?: string[];
  /** Whether the command applies now. */
  when?: () => boolean;
  run: () => void;
}

/** The open session, if there is one. */
export function openId(): string | null {
  const now = route();
  return now.name === "session" ? now.id : null;
}

/** Returns what runs something with the open session. */
export const withSession = (run: (id: string) => void) => () => {
  const id = openId();
  if (id) run(id);
};

export const hasSession = () => openId() !== null;

export function applies(command: Command): boolean {
  return command.when?.() ?? true;
}
