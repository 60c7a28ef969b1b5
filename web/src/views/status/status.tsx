// The state of a directory's servers, formatters, sandbox and trust.
import { For, Show, type JSX } from "solid-js";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { plain, prose } from "../../ui/text";
import { openTrust } from "../trust/trust";
import { KINDS, McpList } from "./mcp";
import { UsageSection } from "./usage";

export function StatusPanel(props: { directory: string }): JSX.Element {
  const place = () => placeOf(props.directory);
  return (
    <div class="stack">
      <section>
        <h3>{t.mcpServers}</h3>
        <McpList directory={props.directory} />
      </section>
      <section>
        <h3>{t.languageServers}</h3>
        <Show when={(place().lsp() ?? []).length > 0} fallback={<p class="muted">{t.none}</p>}>
          <ul class="rows">
            <For each={place().lsp()}>
              {(server) => (
                <li class="status-row">
                  <span class={`dot ${KINDS[server.status] ?? ""}`} />
                  <span class="grow">
                    <span>{plain(server.name)}</span> <span class="muted mono">{plain(server.root)}</span>
                    <Show when={server.error}>{(error) => <p class="muted">{prose(error())}</p>}</Show>
                  </span>
                  <span class="muted">{t.statusOf[server.status] ?? server.status}</span>
                </li>
              )}
            </For>
          </ul>
        </Show>
      </section>
      <section>
        <h3>{t.formatters}</h3>
        <Show when={(place().formatters() ?? []).some((one) => one.enabled)} fallback={<p class="muted">{t.none}</p>}>
          <ul class="rows">
            <For each={(place().formatters() ?? []).filter((one) => one.enabled)}>
              {(one) => (
                <li class="status-row">
                  <span class="dot good" />
                  <span>{plain(one.name)}</span>
                  <span class="muted mono clip">{plain(one.extensions.join(" "))}</span>
                </li>
              )}
            </For>
          </ul>
        </Show>
      </section>
      <section>
        <h3>{t.sandbox}</h3>
        <Show when={place().sandbox()} fallback={<p class="muted">{t.none}</p>}>
          {(sandbox) => (
            <dl class="facts">
              <dt>{t.sandboxMode}</dt>
              <dd>{t.sandboxModes[sandbox().mode] ?? sandbox().mode}</dd>
              <Show when={sandbox().mode !== "off"}>
                <dt>{t.mechanism}</dt>
                <dd>
                  {sandbox().mechanism ?? t.unknownYet}
                  {sandbox().enforced === false ? ` (${t.notEnforced})` : ""}
                </dd>
                <dt>{t.network}</dt>
                <dd>{sandbox().network}</dd>
              </Show>
              <For each={sandbox().enforced === false ? [...(sandbox().reasons ?? []), ...(sandbox().gaps ?? [])] : []}>
                {(reason) => <dd class="muted">{prose(reason)}</dd>}
              </For>
            </dl>
          )}
        </Show>
      </section>
      <section>
        <h3>{t.trust}</h3>
        <div class="status-row">
          <span
            class={`dot ${["undecided", "restricted"].includes(place().trust()?.status ?? "") ? "warn" : "good"}`}
          />
          <span class="grow">{t.trustWords[place().trust()?.status ?? ""] ?? "–"}</span>
          <Button small onClick={() => openTrust(place())}>
            {t.open}
          </Button>
        </div>
      </section>
      <UsageSection />
    </div>
  );
}
