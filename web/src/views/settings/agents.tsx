// The agents (`agent`): their models, and new ones.
import { createSignal, For, Show, type JSX } from "solid-js";
import type { Agent } from "../../api";
import { currentDirectory } from "../../state/actions";
import { modelName } from "../../state/choice";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { plain, prose } from "../../ui/text";
import { ownConfig, RemoveButton, WrittenTo } from "./change";
import { ModelField } from "./models";

const MODES = ["primary", "subagent", "all"] as const;
type Mode = (typeof MODES)[number];

export function AgentSettings(): JSX.Element {
  const { own, change } = ownConfig();
  /** An agent of the configuration. Those that are built in, or files, stay. */
  const isOwn = (agent: Agent) => !agent.native && own.latest?.agent?.[agent.name] !== undefined;
  const agents = () => (placeOf(currentDirectory()).agents() ?? []).filter((agent) => !agent.hidden);
  const [name, setName] = createSignal("");
  const [description, setDescription] = createSignal("");
  const [mode, setMode] = createSignal<Mode>("primary");
  const [prompt, setPrompt] = createSignal("");
  const problem = () => {
    if (name().trim() && !/^[\w-]+$/.test(name().trim())) return t.agentNameBad;
    return agents().some((agent) => agent.name === name().trim()) ? t.agentExists(name().trim()) : "";
  };
  const canAdd = () => name().trim() !== "" && description().trim() !== "" && problem() === "";
  const add = async () => {
    if (!canAdd()) return;
    const agent = {
      description: description().trim(),
      mode: mode(),
      ...(prompt().trim() ? { prompt: prompt().trim() } : {}),
    };
    if (!(await change({ agent: { [name().trim()]: agent } }))) return;
    setName("");
    setDescription("");
    setPrompt("");
  };
  return (
    <div class="settings">
      <section>
        <h2>
          {t.agents} <code class="muted">agent</code>
        </h2>
        <ul class="rows">
          <For each={agents()} fallback={<li class="empty">{t.loading}</li>}>
            {(agent) => (
              <AgentRow
                agent={agent}
                onModel={(model) => void change({ agent: { [agent.name]: { model } } })}
                onRemove={isOwn(agent) ? () => void change({ agent: { [agent.name]: null } }) : undefined}
              />
            )}
          </For>
        </ul>
      </section>
      <section>
        <h2>{t.addAgent}</h2>
        <form
          class="column"
          onSubmit={(event) => {
            event.preventDefault();
            void add();
          }}
        >
          <label class="column">
            <span>{t.name}</span>
            <input
              class="field"
              placeholder="reviewer"
              autocapitalize="off"
              spellcheck={false}
              value={name()}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          </label>
          <label class="column">
            <span>
              {t.description} <code class="muted">description</code>
            </span>
            <input class="field" value={description()} onInput={(event) => setDescription(event.currentTarget.value)} />
          </label>
          <label class="column">
            <span>
              {t.mode} <code class="muted">mode</code>
            </span>
            <select class="field" value={mode()} onChange={(event) => setMode(event.currentTarget.value as Mode)}>
              <For each={MODES}>
                {(one) => (
                  <option value={one}>
                    {one}: {t.modes[one]}
                  </option>
                )}
              </For>
            </select>
          </label>
          <label class="column">
            <span>
              {t.agentPrompt} <code class="muted">prompt</code>
            </span>
            <textarea
              class="field"
              rows={4}
              value={prompt()}
              onInput={(event) => setPrompt(event.currentTarget.value)}
            />
          </label>
          <Show when={problem()}>
            <p class="notice bad" role="alert">
              {problem()}
            </p>
          </Show>
          <div class="row">
            <Button type="submit" kind="primary" disabled={!canAdd()}>
              {t.addAgent}
            </Button>
          </div>
        </form>
        <WrittenTo />
      </section>
    </div>
  );
}

function AgentRow(props: {
  agent: Agent;
  onModel: (name: string | null) => void;
  onRemove: (() => void) | undefined;
}): JSX.Element {
  return (
    <li class="status-row wrap">
      <span class="grow column agent-text">
        <span>
          <strong>{plain(props.agent.name)}</strong> <span class="badge">{props.agent.mode}</span>
        </span>
        <small class="muted">{prose(props.agent.description ?? "")}</small>
      </span>
      <ModelField
        label={`${t.model}: ${props.agent.name}`}
        value={props.agent.model ? modelName(props.agent.model) : ""}
        empty={t.modelOfPrompt}
        onChange={props.onModel}
      />
      <Show when={props.onRemove}>{(remove) => <RemoveButton name={props.agent.name} onRemove={remove()} />}</Show>
    </li>
  );
}
