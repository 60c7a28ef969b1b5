// The keys of all commands.
import { For, Show, type JSX } from "solid-js";
import { COMMANDS } from "../../app/commands";
import { t } from "../../text";
import { Page } from "./page";

const PROMPT: [string, string][] = [
  ["Enter", t.send],
  ["Shift Enter", "New line"],
  ["Up", "Earlier prompts, at the start of the text"],
  ["Down", "Later prompts, at the end of the text"],
  ["@", "Mention a file, an agent or a resource"],
  ["/", "Run a command"],
  ["!", "Run a shell command, in an empty prompt"],
  ["Alt Left / Right", "Switch the agent, in an empty prompt"],
  ["Esc Esc", t.stop],
];
const REQUESTS: [string, string][] = [
  ["Y", t.allowOnce],
  ["A", t.allowAlways],
  ["N", t.reject],
];

export default function ShortcutsView(): JSX.Element {
  const groups = [
    ["session", t.sessions],
    ["view", t.display],
    ["agent", t.agent],
    ["system", t.app],
  ] as const;
  return (
    <Page title={t.shortcuts}>
      <For each={groups}>
        {([group, title]) => (
          <section>
            <h2>{title}</h2>
            <Table
              rows={COMMANDS.filter((command) => command.group === group && (command.keys || command.slash)).map(
                (command) => [
                  command.keys ?? "",
                  command.label,
                  command.slash?.map((name) => `/${name}`).join(" ") ?? "",
                ],
              )}
            />
          </section>
        )}
      </For>
      <section>
        <h2>{t.prompts}</h2>
        <Table rows={PROMPT} />
      </section>
      <section>
        <h2>{t.permissionTitle("a call")}</h2>
        <Table rows={REQUESTS} />
      </section>
    </Page>
  );
}

function Table(props: { rows: string[][] }): JSX.Element {
  return (
    <dl class="keys">
      <For each={props.rows}>
        {([keys, label, slash]) => (
          <div>
            <dt>
              {label}
              <Show when={slash}>
                {" "}
                <span class="muted mono">{slash}</span>
              </Show>
            </dt>
            <dd>
              <Show when={keys}>
                <For each={keys?.split(" ")}>{(key) => <kbd>{key}</kbd>}</For>
              </Show>
            </dd>
          </div>
        )}
      </For>
    </dl>
  );
}
