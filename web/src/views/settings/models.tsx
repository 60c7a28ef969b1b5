// The models and agents that are used without another choice: `model`, `small_model`, `default_agent`.
import { For, Show, type JSX } from "solid-js";
import { isAgentic, modelName, primaryAgents } from "../../state/choice";
import { currentDirectory } from "../../state/actions";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { prose } from "../../ui/text";
import { ConfigSetting, ownConfig, WrittenTo } from "./change";

/** A field that is filled from the list of models. `null` is no model. */
export function ModelField(props: {
  label: string;
  value: string;
  empty?: string;
  onChange: (name: string | null) => void;
}): JSX.Element {
  const names = () =>
    (placeOf(currentDirectory()).providers()?.providers ?? []).flatMap((provider) =>
      Object.entries(provider.models)
        .filter(([, model]) => isAgentic(model))
        .map(([modelID, model]) => ({
          name: modelName({ providerID: provider.id, modelID }),
          label: `${prose(provider.name || provider.id)}: ${prose(model.name || modelID)}`,
        })),
    );
  const isListed = () => props.value === "" || names().some((one) => one.name === props.value);
  return (
    <select
      class="field"
      aria-label={props.label}
      onChange={(event) => props.onChange(event.currentTarget.value || null)}
    >
      <option value="" selected={props.value === ""}>
        {props.empty ?? t.notSet}
      </option>
      <Show when={!isListed()}>
        <option value={props.value} selected>
          {props.value}
        </option>
      </Show>
      <For each={names()}>
        {(one) => (
          <option value={one.name} selected={one.name === props.value}>
            {one.label}
          </option>
        )}
      </For>
    </select>
  );
}

export function ModelSettings(): JSX.Element {
  const { own, change } = ownConfig();
  const place = () => placeOf(currentDirectory());
  return (
    <div class="settings">
      <ConfigSetting label={t.model} name="model" hint={t.modelSettingHint}>
        <ModelField label={t.model} value={own.latest?.model ?? ""} onChange={(model) => void change({ model })} />
      </ConfigSetting>
      <ConfigSetting label={t.smallModel} name="small_model" hint={t.smallModelHint}>
        <ModelField
          label={t.smallModel}
          value={own.latest?.small_model ?? ""}
          onChange={(name) => void change({ small_model: name })}
        />
      </ConfigSetting>
      <ConfigSetting label={t.defaultAgent} name="default_agent">
        <select
          class="field"
          aria-label={t.defaultAgent}
          onChange={(event) => void change({ default_agent: event.currentTarget.value })}
        >
          <For each={primaryAgents(place())}>
            {(agent) => (
              <option
                value={agent.name}
                selected={agent.name === (own.latest?.default_agent ?? primaryAgents(place())[0]?.name)}
              >
                {prose(agent.name)}
              </option>
            )}
          </For>
        </select>
      </ConfigSetting>
      <WrittenTo />
    </div>
  );
}
