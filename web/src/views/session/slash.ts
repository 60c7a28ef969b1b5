// Slash commands in the prompt: those of the app run here, those of the server are sent, and unknown ones are errors.
import type { Session } from "../../api";
import { COMMANDS } from "../../app/commands";
import { attempt, rename } from "../../state/actions";
import { chooseAgent, chooseModel, modelName, primaryAgents } from "../../state/choice";
import type { Place } from "../../state/place";
import { setPrefs } from "../../state/prefs";
import { themeNames } from "../../state/themes";
import { t } from "../../text";
import { nearest, uniquePart } from "../../ui/nearest";
import { toast } from "../../ui/toast";

/** What became of a text: it is a prompt, a command that ran, or a command that is wrong. */
type Outcome = "prompt" | "done" | "wrong";

/** A command word. `/etc/hosts` is a path and begins a prompt. */
const COMMAND = /^\/([\p{L}\p{N}_:.-]+)(?:\s+([\s\S]*))?$/u;

function refuse(text: string): Outcome {
  toast({ text, kind: "bad" });
  return "wrong";
}

/** Runs a command that is named with an argument, such as `/model sonnet`. Returns `undefined` if it takes none. */
async function withArgument(
  name: string,
  argument: string,
  place: Place,
  session: Session | undefined,
): Promise<Outcome | undefined> {
  const one = (names: string[], what: string, use: (name: string) => void): Outcome => {
    const found = uniquePart(argument, names);
    if (typeof found === "string") {
      use(found);
      return "done";
    }
    return refuse(
      found.length > 0
        ? t.ambiguous(argument, found.slice(0, 5).join(", "))
        : t.unknownName(what, argument, nearest(argument, names)),
    );
  };
  switch (name) {
    case "model":
    case "models": {
      const all = ((await place.providers.load())?.providers ?? []).flatMap((provider) =>
        Object.keys(provider.models).map((modelID) => ({ providerID: provider.id, modelID })),
      );
      return one(all.map(modelName), t.model, (picked) => {
        const ref = all.find((entry) => modelName(entry) === picked);
        if (ref) chooseModel(place, session, ref);
      });
    }
    case "agent":
    case "agents": {
      await place.agents.load();
      return one(
        primaryAgents(place).map((agent) => agent.name),
        t.agent,
        (picked) => chooseAgent(place, session, picked),
      );
    }
    case "theme":
    case "themes":
      return one(themeNames(), t.theme, (picked) => setPrefs("theme", picked));
    case "rename": {
      if (!session) return refuse(t.needsSession("/rename"));
      const renamed = await attempt(() => rename(session.id, argument).then(() => true));
      return renamed ? "done" : "wrong";
    }
    case "review": {
      if (!place.canReview()) return undefined;
      void attempt(async () => (await import("./findings")).startReview(place.directory, argument));
      return "done";
    }
    default:
      return undefined;
  }
}

/** Runs the command that a text begins with, if the app has it. */
export async function runSlash(text: string, place: Place, session: Session | undefined): Promise<Outcome> {
  const match = COMMAND.exec(text);
  const name = match?.[1];
  if (!name) return "prompt";
  const servers = (await place.commands.load()) ?? [];
  // A command of the server or of the user takes precedence.
  if (servers.some((command) => command.name === name)) return "prompt";
  const argument = (match[2] ?? "").trim();
  const own = COMMANDS.find((command) => command.slash?.includes(name));
  if (!own) {
    // Without the server's list, the server decides.
    if (place.commands() === undefined) return "prompt";
    const names = [...servers.map((command) => command.name), ...COMMANDS.flatMap((command) => command.slash ?? [])];
    return refuse(t.unknownCommand(name, nearest(name, names)));
  }
  if (argument) return (await withArgument(name, argument, place, session)) ?? refuse(t.noArgument(name));
  if (own.when && !own.when()) return refuse(t.notNow(name));
  own.run();
  return "done";
}
