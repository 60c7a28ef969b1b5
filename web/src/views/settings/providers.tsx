// Providers: their models, keys and sign-ins.
import { createMemo, createResource, createSignal, For, Show, type JSX } from "solid-js";
import { call } from "../../api";
import { attempt, currentDirectory } from "../../state/actions";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { filter } from "../../ui/fuzzy";
import { prose } from "../../ui/text";
import { ownConfig, RemoveButton } from "./change";
import { connectDialog } from "./connect";
import { popularity } from "./popular";

/** Providers that are displayed without a search. */
const MAX_PROVIDERS = 40;

export function Providers(): JSX.Element {
  const directory = currentDirectory();
  const { own, change } = ownConfig();
  const [query, setQuery] = createSignal("");
  const [found, { refetch }] = createResource(async () => {
    const [list, methods] = await Promise.all([
      call("GET /provider", { query: { directory } }),
      call("GET /provider/auth", { query: { directory } }),
    ]);
    return { ...list, methods };
  });
  const rows = createMemo(() => {
    const connected = new Set(found.latest?.connected ?? []);
    const all = [...(found.latest?.all ?? [])].sort(
      (a, b) => Number(connected.has(b.id)) - Number(connected.has(a.id)) || popularity(a.id) - popularity(b.id),
    );
    return filter(all, query(), (provider) => `${provider.name} ${provider.id}`)
      .slice(0, MAX_PROVIDERS)
      .map((provider) => ({ provider, isConnected: connected.has(provider.id) }));
  });
  const done = async () => {
    await refetch();
    await placeOf(directory).providers.refresh();
  };
  return (
    <div class="settings">
      <input
        class="field"
        type="search"
        aria-label={t.search}
        placeholder={t.search}
        value={query()}
        onInput={(event) => setQuery(event.currentTarget.value)}
      />
      <ul class="rows">
        <For each={rows()} fallback={<li class="empty">{found.loading ? t.loading : t.nothingFound}</li>}>
          {({ provider, isConnected }) => (
            <li class="status-row">
              <span class={`dot ${isConnected ? "good" : ""}`} />
              <span class="grow clip">
                {prose(provider.name || provider.id)}{" "}
                <span class="muted">
                  {Object.keys(provider.models).length} {t.models.toLowerCase()}
                </span>
              </span>
              <Show when={isConnected}>
                <span class="muted">{t.connected}</span>
              </Show>
              <Show when={isConnected && provider.source === "api"}>
                <Button
                  small
                  onClick={() =>
                    void attempt(async () => {
                      await call("DELETE /auth/{providerID}", { path: { providerID: provider.id } });
                      await done();
                    })
                  }
                >
                  {t.signOut}
                </Button>
              </Show>
              <Show when={own.latest?.provider?.[provider.id] !== undefined}>
                <RemoveButton
                  name={provider.id}
                  onRemove={() => void change({ provider: { [provider.id]: null } }).then(done)}
                />
              </Show>
              <Button
                small
                onClick={() =>
                  connectDialog(
                    provider.id,
                    prose(provider.name || provider.id),
                    found.latest?.methods[provider.id] ?? [],
                    () => void done(),
                  )
                }
              >
                {isConnected ? t.edit : t.connect}
              </Button>
            </li>
          )}
        </For>
      </ul>
    </div>
  );
}
