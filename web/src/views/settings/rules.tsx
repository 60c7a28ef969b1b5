// The permission rules of the user (`permission`), and the permissions that were granted with "Allow always".
import { createMemo, createResource, createSignal, For, type JSX } from "solid-js";
import { call } from "../../api";
import { attempt } from "../../state/actions";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { plain } from "../../ui/text";
import { ownConfig, RemoveButton, WrittenTo } from "./change";
import { ACTIONS, changeOf, PLAIN, removalOf, rulesOf, type Action } from "./parse";

/** The permissions that rules can name. Those of tools of MCP servers are names of tools. */
const PERMISSIONS = [
  "edit",
  "bash",
  "read",
  "webfetch",
  "websearch",
  "external_directory",
  "task",
  "skill",
  "glob",
  "grep",
  "list",
  "lsp",
  "todowrite",
  "question",
  "doom_loop",
];
export function PermissionSettings(): JSX.Element {
  const { own, change } = ownConfig();
  const rules = createMemo(() => rulesOf(own.latest?.permission));
  const [permission, setPermission] = createSignal("bash");
  const [pattern, setPattern] = createSignal("");
  const [action, setAction] = createSignal<Action>("allow");
  const add = async () => {
    const rule = { permission: permission(), pattern: pattern().trim() || "*", action: action() };
    if (await change(changeOf(rule, rules()))) setPattern("");
  };
  return (
    <div class="settings">
      <section>
        <h2>
          {t.permissionRules} <code class="muted">permission</code>
        </h2>
        <p class="muted">{t.permissionRulesHint}</p>
        <ul class="rows">
          <For each={rules()} fallback={<li class="empty">{own.loading ? t.loading : t.noRules}</li>}>
            {(rule) => (
              <li class="status-row">
                <span class="badge">{plain(rule.permission)}</span>
                <code class="grow clip">{plain(rule.pattern)}</code>
                <ActionField
                  label={`${rule.permission} ${rule.pattern}`}
                  value={rule.action}
                  onChange={(next) => void change(changeOf({ ...rule, action: next }, rules()))}
                />
                <RemoveButton
                  name={`${rule.permission} ${rule.pattern}`}
                  onRemove={() => void change(removalOf(rule))}
                />
              </li>
            )}
          </For>
        </ul>
        <form
          class="row wrap form-row"
          onSubmit={(event) => {
            event.preventDefault();
            void add();
          }}
        >
          <label class="column">
            <span>{t.permission}</span>
            <select
              class="field"
              aria-label={t.permission}
              value={permission()}
              onChange={(event) => setPermission(event.currentTarget.value)}
            >
              <For each={PERMISSIONS}>{(name) => <option value={name}>{name}</option>}</For>
            </select>
          </label>
          <label class="column grow">
            <span>{t.pattern}</span>
            <input
              class="field mono"
              placeholder={PLAIN.has(permission()) ? "*" : (t.patternExamples[permission()] ?? "*")}
              disabled={PLAIN.has(permission())}
              autocapitalize="off"
              spellcheck={false}
              value={pattern()}
              onInput={(event) => setPattern(event.currentTarget.value)}
            />
          </label>
          <label class="column">
            <span>{t.action}</span>
            <ActionField label={t.action} value={action()} onChange={setAction} />
          </label>
          <Button type="submit" kind="primary">
            {t.addRule}
          </Button>
        </form>
        <WrittenTo />
      </section>
      <section>
        <h2>{t.savedPermissions}</h2>
        <p class="muted">{t.savedPermissionsHint}</p>
        <Granted />
      </section>
    </div>
  );
}

function ActionField(props: { label: string; value: Action; onChange: (action: Action) => void }): JSX.Element {
  return (
    <select
      class="field action-field"
      aria-label={props.label}
      onChange={(event) => props.onChange(event.currentTarget.value as Action)}
    >
      <For each={ACTIONS}>
        {(name) => (
          <option value={name} selected={name === props.value}>
            {name}
          </option>
        )}
      </For>
    </select>
  );
}

function Granted(): JSX.Element {
  const [saved, { refetch }] = createResource(() => call("GET /api/permission/saved"));
  const revoke = (id: string) =>
    void attempt(async () => {
      await call("DELETE /api/permission/saved/{id}", { path: { id } });
      await refetch();
    });
  return (
    <ul class="rows">
      <For each={saved.latest?.data ?? []} fallback={<li class="empty">{saved.loading ? t.loading : t.none}</li>}>
        {(one) => (
          <li class="status-row">
            <span class="badge">{plain(one.action)}</span>
            <code class="grow clip">{plain(one.resource)}</code>
            <Button small onClick={() => revoke(one.id)}>
              {t.revoke}
            </Button>
          </li>
        )}
      </For>
    </ul>
  );
}
