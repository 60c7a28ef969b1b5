// Settings: of this browser, of the user's configuration, and of the server.
import { createMemo, createResource, createSignal, For, Match, Show, Suspense, Switch, type JSX } from "solid-js";
import { go, openSession, route } from "../../app/router";
import { call, type GlobalSession } from "../../api";
import { base, isSignedIn } from "../../api/server";
import { leave } from "../../app/commands";
import { archive, currentDirectory } from "../../state/actions";
import { putSession } from "../../state/mirror";
import { EDITORS, isEditorAddress } from "../../state/editor";
import { isVolatile, prefs, setPrefs } from "../../state/prefs";
import { parseTheme, themeNames } from "../../state/themes";
import { ago, baseName } from "../../text/format";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Segments, Tabs } from "../../ui/tabs";
import { plain, prose } from "../../ui/text";
import { fail, toast } from "../../ui/toast";
import { StatusPanel } from "../status/status";
import { Page } from "./page";
import { AgentSettings } from "./agents";
import { ModelSettings } from "./models";
import { Providers } from "./providers";
import { PermissionSettings } from "./rules";
import { ServerSettings } from "./servers";

const PAGES = [
  "general",
  "providers",
  "models",
  "permissions",
  "servers",
  "agents",
  "archive",
  "status",
  "server",
] as const;
type PageName = (typeof PAGES)[number];
const TITLES: Record<PageName, string> = {
  general: t.appearance,
  providers: t.providers,
  models: t.models,
  permissions: t.permissions,
  servers: t.mcpServers,
  agents: t.agents,
  archive: t.archivedSessions,
  status: t.status,
  server: t.server,
};

export default function SettingsView(): JSX.Element {
  const page = createMemo<PageName>(() => {
    const now = route();
    return PAGES.find((one) => now.name === "settings" && one === now.page) ?? "general";
  });
  return (
    <Page title={t.settings}>
      <Tabs
        label={t.settings}
        value={page()}
        onChange={(name) => go({ name: "settings", page: name })}
        tabs={PAGES.map((name) => ({ name, label: TITLES[name] }))}
      />
      <Suspense fallback={<div class="empty">{t.loading}</div>}>
        <Switch>
          <Match when={page() === "general"}>
            <General />
          </Match>
          <Match when={page() === "providers"}>
            <Providers />
          </Match>
          <Match when={page() === "models"}>
            <ModelSettings />
          </Match>
          <Match when={page() === "permissions"}>
            <PermissionSettings />
          </Match>
          <Match when={page() === "servers"}>
            <ServerSettings />
          </Match>
          <Match when={page() === "agents"}>
            <AgentSettings />
          </Match>
          <Match when={page() === "archive"}>
            <Archive />
          </Match>
          <Match when={page() === "status"}>
            <StatusPanel directory={currentDirectory()} />
          </Match>
          <Match when={page() === "server"}>
            <Server />
          </Match>
        </Switch>
      </Suspense>
    </Page>
  );
}

interface SettingProps {
  label: string;
  children: JSX.Element;
}

function Setting(props: SettingProps): JSX.Element {
  return (
    <div class="setting">
      <span>{props.label}</span>
      <span class="setting-control">{props.children}</span>
    </div>
  );
}

type Flag = "split" | "thinking" | "outputs" | "times" | "enterSends";

function General(): JSX.Element {
  const [query, setQuery] = createSignal("");
  const flag = (name: Flag, label: string) => ({
    label,
    view: () => (
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          aria-label={label}
          checked={prefs[name]}
          onChange={(event) => setPrefs(name, event.currentTarget.checked)}
        />
      </label>
    ),
  });
  const settings = [
    {
      label: t.scheme,
      view: () => (
        <Segments
          label={t.scheme}
          value={prefs.scheme}
          onChange={(value) => setPrefs("scheme", value)}
          options={[
            { name: "system", label: t.system },
            { name: "light", label: t.light },
            { name: "dark", label: t.dark },
          ]}
        />
      ),
    },
    {
      label: t.theme,
      view: () => (
        <select
          class="field"
          aria-label={t.theme}
          value={prefs.theme}
          onChange={(event) => setPrefs("theme", event.currentTarget.value)}
        >
          <For each={themeNames()}>
            {(name) => (
              <option value={name} selected={name === prefs.theme}>
                {name}
              </option>
            )}
          </For>
        </select>
      ),
    },
    { label: t.importTheme, view: () => <ImportTheme /> },
    {
      label: t.textSize,
      view: () => (
        <Segments
          label={t.textSize}
          value={String(prefs.textSize)}
          onChange={(value) => setPrefs("textSize", Number(value))}
          options={["90", "100", "115", "130"].map((name) => ({ name, label: `${name}%` }))}
        />
      ),
    },
    flag("split", t.diffsSplit),
    flag("thinking", t.showThinking),
    flag("outputs", t.showOutputs),
    flag("times", t.showTimes),
    flag("enterSends", t.enterSends),
    { label: t.editor, view: () => <EditorChoice /> },
    { label: t.notifyMe, view: () => <Notify /> },
  ];
  return (
    <div class="settings">
      <input
        class="field"
        type="search"
        aria-label={t.searchSettings}
        placeholder={t.searchSettings}
        value={query()}
        onInput={(event) => setQuery(event.currentTarget.value)}
      />
      <Show when={isVolatile()}>
        <p class="notice warn">{t.storageOff}</p>
      </Show>
      <For
        each={settings.filter((one) => one.label.toLowerCase().includes(query().toLowerCase()))}
        fallback={<p class="empty">{t.nothingFound}</p>}
      >
        {(one) => <Setting label={one.label}>{one.view()}</Setting>}
      </For>
    </div>
  );
}

function ImportTheme(): JSX.Element {
  const load = async (file: File | undefined) => {
    if (!file) return;
    try {
      const value: unknown = JSON.parse(await file.text());
      if (!parseTheme(value)) throw new Error(t.notTheme);
      const name = file.name.replace(/\.json$/, "");
      setPrefs("themes", name, value);
      setPrefs("theme", name);
    } catch (error) {
      fail(error instanceof SyntaxError ? new Error(t.notTheme) : error);
    }
  };
  let input!: HTMLInputElement;
  return (
    <>
      <Button small onClick={() => input.click()}>
        {t.chooseFile}
      </Button>
      <input
        ref={input}
        type="file"
        hidden
        accept=".json,application/json"
        aria-label={t.importTheme}
        onChange={(event) => void load(event.currentTarget.files?.[0])}
      />
    </>
  );
}

/** The editor that opens files: one of the known ones, or one with an address of its own. */
function EditorChoice(): JSX.Element {
  const isKnown = () => prefs.editor === "" || EDITORS.some((one) => one.id === prefs.editor);
  const [isOther, setOther] = createSignal(!isKnown());
  const [address, setAddress] = createSignal(isKnown() ? "" : prefs.editor);
  const choose = (id: string) => {
    setOther(id === "other");
    setPrefs("editor", id === "other" ? (isEditorAddress(address()) ? address() : "") : id);
  };
  const enter = (text: string) => {
    setAddress(text.trim());
    setPrefs("editor", isEditorAddress(text.trim()) ? text.trim() : "");
  };
  return (
    <span class="column">
      <select class="field" aria-label={t.editor} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="" selected={!isOther() && prefs.editor === ""}>
          {t.noEditor}
        </option>
        <For each={EDITORS}>
          {(one) => (
            <option value={one.id} selected={!isOther() && prefs.editor === one.id}>
              {one.name}
            </option>
          )}
        </For>
        <option value="other" selected={isOther()}>
          {t.otherEditor}
        </option>
      </select>
      <Show when={isOther()}>
        <input
          class="field mono"
          aria-label={t.editorAddress}
          aria-invalid={address() !== "" && !isEditorAddress(address())}
          placeholder="myeditor://open?file={path}&line={line}"
          value={address()}
          onInput={(event) => enter(event.currentTarget.value)}
        />
        <small class="muted">
          {address() !== "" && !isEditorAddress(address()) ? t.editorAddressBad : t.editorAddressHint}
        </small>
      </Show>
    </span>
  );
}

function Notify(): JSX.Element {
  const change = async (wanted: boolean) => {
    if (!wanted) {
      setPrefs("notify", false);
      return;
    }
    const answer = typeof Notification === "undefined" ? "denied" : await Notification.requestPermission();
    setPrefs("notify", answer === "granted");
    if (answer !== "granted") toast({ text: t.notificationsBlocked, kind: "bad" });
  };
  return (
    <label class="switch">
      <input
        type="checkbox"
        role="switch"
        aria-label={t.notifyMe}
        checked={prefs.notify}
        onChange={(event) => void change(event.currentTarget.checked)}
      />
    </label>
  );
}

function Archive(): JSX.Element {
  const [found, { refetch }] = createResource(async () => {
    const all = await call("GET /experimental/session", { query: { roots: "true", archived: "true", limit: 500 } });
    return all.filter((session) => session.time.archived !== undefined);
  });
  const restore = (session: GlobalSession) => {
    putSession(session as never);
    archive(session.id, undefined);
    setTimeout(() => void refetch(), 300);
  };
  return (
    <ul class="rows settings">
      <For each={found.latest ?? []} fallback={<li class="empty">{found.loading ? t.loading : t.none}</li>}>
        {(session) => (
          <li class="status-row">
            <button type="button" class="link grow clip" onClick={() => openSession(session.id)}>
              {prose(session.title) || t.untitled}
            </button>
            <span class="muted clip">{plain(baseName(session.directory))}</span>
            <span class="muted tabular">{ago(session.time.updated)}</span>
            <Button small onClick={() => restore(session)}>
              {t.unarchive}
            </Button>
          </li>
        )}
      </For>
    </ul>
  );
}

function Server(): JSX.Element {
  const [health] = createResource(() => call("GET /global/health"));
  const [address, setAddress] = createSignal("");
  const use = () => location.assign(`${location.pathname}?server=${encodeURIComponent(address().trim())}`);
  return (
    <div class="settings">
      <Setting label={t.server}>
        <code>{base.href}</code>
      </Setting>
      <Show when={isSignedIn()}>
        <Setting label={t.signedIn}>
          <Button icon="key" onClick={() => void leave()}>
            {t.signOutHere}
          </Button>
        </Setting>
      </Show>
      <Setting label={t.version}>
        <code>{health.latest?.version ?? "…"}</code>
      </Setting>
      <Setting label={t.directory}>
        <code>{plain(currentDirectory())}</code>
      </Setting>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          use();
        }}
      >
        <input
          class="field"
          aria-label={t.serverAddress}
          placeholder="http://localhost:4096"
          value={address()}
          onInput={(event) => setAddress(event.currentTarget.value)}
        />
        <Button type="submit" disabled={!address().trim()}>
          {t.useServer}
        </Button>
      </form>
    </div>
  );
}
