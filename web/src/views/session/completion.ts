// Completion in the prompt: `@` for files, agents and resources, `/` for commands.
import { applies } from "../../app/command";
import { COMMANDS } from "../../app/commands";
import { call, type McpResource } from "../../api";
import { isOffered, type Place } from "../../state/place";
import type { IconName } from "../../ui/icon";
import { filter } from "../../ui/fuzzy";
import type { Completion } from "./completion-at";
import type { Mention } from "./draft";

export interface Candidate {
  label: string;
  detail?: string;
  icon: IconName;
  /** The text that replaces the typed one. */
  insert: string;
  mention?: Mention;
  /** What happens instead of inserting a text. */
  run?: () => void;
}

const MAX_CANDIDATES = 12;

/** Returns what fits, the best first. */
export async function candidates(completion: Completion, place: Place): Promise<Candidate[]> {
  return completion.kind === "/" ? commands(completion.query, place) : mentions(completion.query, place);
}

async function commands(query: string, place: Place): Promise<Candidate[]> {
  const server = ((await place.commands.load()) ?? []).filter(isOffered).map((command) => ({
    label: `/${command.name}`,
    detail: command.description ?? "",
    icon: "spark" as const,
    insert: `/${command.name}`,
  }));
  const names = new Set(server.map((one) => one.label));
  const own = COMMANDS.filter(applies).flatMap((command) =>
    (command.slash ?? [])
      .slice(0, 1)
      .filter((name) => !names.has(`/${name}`))
      .map(
        (name): Candidate => ({
          label: `/${name}`,
          detail: command.label,
          icon: command.icon ?? "play",
          insert: `/${name}`,
          run: command.run,
        }),
      ),
  );
  return filter([...server, ...own], query, (one) => one.label.slice(1)).slice(0, MAX_CANDIDATES);
}

async function mentions(query: string, place: Place): Promise<Candidate[]> {
  const agents = filter(
    (place.agents() ?? []).filter((agent) => agent.mode !== "primary" && !agent.hidden),
    query,
    (agent) => agent.name,
  ).map(
    (agent): Candidate => ({
      label: `@${agent.name}`,
      detail: agent.description ?? "",
      icon: "fork",
      insert: `@${agent.name}`,
      mention: { kind: "agent", name: agent.name },
    }),
  );
  const { directory } = place;
  const none: Record<string, McpResource> = {};
  const [files, resources] = await Promise.all([
    call("GET /find/file", { query: { directory, query, limit: MAX_CANDIDATES } }).catch(() => [] as string[]),
    query === "" ? none : call("GET /experimental/resource", { query: { directory }, long: true }).catch(() => none),
  ]);
  const found = filter(Object.values(resources), query, (one) => `${one.name} ${one.uri}`)
    .slice(0, 4)
    .map(
      (one): Candidate => ({
        label: `@${one.name}`,
        detail: `${one.client} · ${one.uri}`,
        icon: "plug",
        insert: `@${one.name}`,
        mention: {
          kind: "resource",
          name: one.name,
          uri: one.uri,
          client: one.client,
          mime: one.mimeType ?? "text/plain",
        },
      }),
    );
  const paths = files.map(
    (path): Candidate => ({
      label: path,
      icon: path.endsWith("/") ? "folder" : "file",
      insert: `@${path}`,
      mention: { kind: "file", path },
    }),
  );
  return [...agents.slice(0, query ? 3 : 4), ...paths, ...found].slice(0, MAX_CANDIDATES);
}
