// The palette: all commands, the server's commands and the sessions.
import { createMemo } from "solid-js";
import { currentDirectory } from "../state/actions";
import { state } from "../state/mirror";
import { isOffered, placeOf } from "../state/place";
import { baseName } from "../text/format";
import { t } from "../text";
import { Picker, type PickerItem } from "../ui/picker";
import { prose } from "../ui/text";
import { applies, openId, type Command } from "./command";
import { openDialog } from "./dialogs";
import { rootSessions } from "./lists";
import { go, openSession } from "./router";
import { draftOf, focusPrompt } from "../views/session/draft";

const GROUPS = { session: t.sessions, view: t.display, agent: t.agent, system: t.app };

export function openPalette(commands: Command[]): void {
  openDialog((dialog) => {
    const items = createMemo<PickerItem[]>(() => [
      ...commands
        .filter((command) => command.id !== "command.palette" && applies(command))
        .map((command) => ({
          id: `command:${command.id}`,
          label: command.label,
          group: GROUPS[command.group],
          icon: command.icon,
          keys: command.keys,
          words: command.slash?.map((name) => `/${name}`).join(" "),
        })),
      ...(placeOf(currentDirectory()).commands() ?? []).filter(isOffered).map((command) => ({
        id: `slash:${command.name}`,
        label: `/${command.name}`,
        detail: prose(command.description ?? ""),
        group: t.commands,
      })),
      ...rootSessions().map((session) => ({
        id: `session:${session.id}`,
        label: prose(session.title) || t.untitled,
        detail: baseName(session.directory),
        group: t.allSessions,
        icon: "history" as const,
      })),
    ]);
    const pick = (item: PickerItem) => {
      dialog.close();
      const [kind, rest] = [item.id.slice(0, item.id.indexOf(":")), item.id.slice(item.id.indexOf(":") + 1)];
      if (kind === "session") openSession(rest);
      else if (kind === "command") commands.find((command) => command.id === rest)?.run();
      else {
        const id = openId();
        if (!id) go({ name: "new", directory: currentDirectory() });
        draftOf(id ?? "new").setText(`/${rest} `);
        focusPrompt();
      }
    };
    return (
      <Picker
        title={t.commands}
        placeholder={t.palettePlaceholder}
        items={items()}
        onPick={pick}
        onClose={dialog.close}
      />
    );
  });
  void state.ready;
}
