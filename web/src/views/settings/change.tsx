// Changes of the user's configuration. The pages use the words of the file, so that what is set here is found there.
import { createResource, createSignal, onCleanup, Show, type JSX, type Resource } from "solid-js";
import { call, type Config } from "../../api";
import { attempt, currentDirectory } from "../../state/actions";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { toast } from "../../ui/toast";

/** A change of the configuration. `null` removes a key. */
export type Change = Config | Record<string, unknown>;
/** The time in which a second press removes. */
const REMOVE_MS = 4_000;

export interface OwnConfig {
  /** The user's configuration, without that of the project. */
  own: Resource<Config>;
  /** Merges a change into it. */
  change: (change: Change) => Promise<boolean>;
}

export function ownConfig(): OwnConfig {
  const [own, { refetch }] = createResource(() => call("GET /global/config"));
  const change = async (body: Change) => {
    const done = await attempt(async () => {
      await call("PATCH /global/config", { body: body as Config });
      const place = placeOf(currentDirectory());
      await Promise.all([refetch(), place.config.refresh(), place.providers.refresh(), place.agents.refresh()]);
      void place.mcp.refresh();
      toast({ text: t.written, kind: "good" });
      return true;
    });
    return done === true;
  };
  return { own, change };
}

/** A setting with the key of the configuration that it changes. */
export function ConfigSetting(props: {
  label: string;
  name: string;
  hint?: string;
  children: JSX.Element;
}): JSX.Element {
  return (
    <div class="setting">
      <span class="column setting-name">
        <span>
          {props.label} <code class="muted">{props.name}</code>
        </span>
        <Show when={props.hint}>{(hint) => <small class="muted">{hint()}</small>}</Show>
      </span>
      <span class="setting-control">{props.children}</span>
    </div>
  );
}

/** A button that removes an entry at its second press. */
export function RemoveButton(props: { name: string; onRemove: () => void }): JSX.Element {
  const [isSure, setSure] = createSignal(false);
  let timer = 0;
  onCleanup(() => clearTimeout(timer));
  const press = () => {
    clearTimeout(timer);
    if (isSure()) props.onRemove();
    else timer = window.setTimeout(() => setSure(false), REMOVE_MS);
    setSure(!isSure());
  };
  return (
    <Button small kind="quiet" label={`${isSure() ? t.removeAgain : t.remove}: ${props.name}`} onClick={press}>
      {isSure() ? t.removeAgain : t.remove}
    </Button>
  );
}

/** Says where the settings of a page are stored. */
export function WrittenTo(): JSX.Element {
  return <p class="muted">{t.writtenTo}</p>;
}
