// What the server knows about a directory: agents, models, commands, servers, trust. Each is fetched when it is first
// needed, and again after an event that changes it.
import { createSignal } from "solid-js";
import {
  call,
  type Agent,
  type Command,
  type Config,
  type Event,
  type FormatterStatus,
  type LSPStatus,
  type MCPStatus,
  type Provider,
  type SandboxStatus,
  type Trust,
  type VcsFileStatus,
  type VcsInfo,
} from "../api";
import { lazy, type Lazy } from "./lazy";

export interface Providers {
  providers: Provider[];
  default: Record<string, string>;
  model: { providerID: string; modelID: string; guessed: boolean } | null;
}

export interface Place {
  directory: string;
  agents: Lazy<Agent[]>;
  providers: Lazy<Providers>;
  /** The commands of the server, without those that the app itself has. */
  commands: Lazy<Command[]>;
  /** Whether the server has reviews whose findings are a list. Known when the commands are. */
  canReview: () => boolean;
  config: Lazy<Config>;
  vcs: Lazy<VcsInfo>;
  changes: Lazy<VcsFileStatus[]>;
  mcp: Lazy<Record<string, MCPStatus>>;
  lsp: Lazy<LSPStatus[]>;
  formatters: Lazy<FormatterStatus[]>;
  sandbox: Lazy<SandboxStatus>;
  trust: Lazy<Trust>;
}

/** Whether a command is in menus. The built-in skill with the name of another program runs if it is typed. */
export function isOffered(command: Command): boolean {
  return command.name !== "customize-opencode";
}

const MAX_PLACES = 32;
const places = new Map<string, Place>();

/** Returns the data of a directory. */
export function placeOf(directory: string): Place {
  const known = places.get(directory);
  if (known) return known;
  const query = { directory };
  const [canReview, setReview] = createSignal(false);
  const isReview = (command: Command) => command.native === true && command.name === "review";
  const place: Place = {
    directory,
    agents: lazy(() => call("GET /agent", { query })),
    providers: lazy(() => call("GET /config/providers", { query })),
    commands: lazy(async () => {
      const all = await call("GET /command", { query, long: true });
      setReview(all.some(isReview));
      return all.filter((command) => !isReview(command));
    }),
    canReview,
    config: lazy(() => call("GET /config", { query })),
    vcs: lazy(() => call("GET /vcs", { query })),
    changes: lazy(() => call("GET /vcs/status", { query })),
    mcp: lazy(() => call("GET /mcp", { query, long: true })),
    lsp: lazy(() => call("GET /lsp", { query })),
    formatters: lazy(() => call("GET /formatter", { query })),
    // Before a command has run, the server looks for the mechanism only if it is asked to.
    sandbox: lazy(() => call("GET /experimental/sandbox", { query: { directory, probe: "true" } })),
    trust: lazy(() => call("GET /trust", { query })),
  };
  places.set(directory, place);
  if (places.size > MAX_PLACES) places.delete(places.keys().next().value ?? "");
  return place;
}

/** Fetches again what an event changes. */
placeOf.event = (event: Event, directory: string | undefined): void => {
  const some =
    directory === undefined ? [...places.values()] : [places.get(directory)].filter((place) => place !== undefined);
  for (const place of some) {
    // Not every event of the server has a schema.
    const name: string = event.type;
    switch (name) {
      case "server.instance.disposed":
      case "global.disposed":
        touchAll(place);
        break;
      case "vcs.branch.updated":
        place.vcs.touch();
        place.changes.touch();
        break;
      case "file.edited":
      case "file.watcher.updated":
        place.changes.touch();
        break;
      case "lsp.updated":
        place.lsp.touch();
        break;
      case "mcp.tools.changed":
        place.mcp.touch();
        place.commands.touch();
        break;
      default:
        if (/^(catalog|integration)\./.test(name)) place.providers.touch();
    }
  }
};

function touchAll(place: Place, before?: number): void {
  for (const value of Object.values(place))
    if (typeof value === "function" && "touch" in value) (value as Lazy<unknown>).touch(before);
}

/** Fetches again what was requested before a time. */
placeOf.refreshAll = (before: number): void => {
  for (const place of places.values()) touchAll(place, before);
};
