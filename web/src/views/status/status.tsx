// The state of a directory's servers, formatters, sandbox and trust.
import { createEffect, createMemo, createSignal, For, on, Show, type JSX } from "solid-js";
import { call, type MCPStatus } from "../../api";
import { attempt } from "../../state/actions";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { plain, prose } from "../../ui/text";
import { openTrust } from "../trust/trust";
import { UsageSection } from "./usage";

const KINDS: Record<string, string> = { connected: "good", failed: "bad", error: "bad", needs_auth: "warn", needs_client_registration: "warn" };

export function StatusPanel(props: { directory: string }): JSX.Element {
  const place = () => placeOf(props.directory);
  /** Names, because the row of a server keeps a sign-in that has begun while its status changes. */
  const names = createMemo(() => Object.keys(place().mcp() ?? {}));
  return (
    <div class="stack">
      <section>
        <h3>{t.mcpServers}</h3>
        <Show when={names().length > 0} fallback={<p class="muted">{place().mcp.error() || t.none}</p>}>
          <ul class="rows"><For each={names()}>{(name) => <Show when={place().mcp()?.[name]}>{(status) => <McpRow directory={props.directory} name={name} status={status()} />}</Show>}</For></ul>
        </Show>
      </section>
      <section>
        <h3>{t.languageServers}</h3>
        <Show when={(place().lsp() ?? []).length > 0} fallback={<p class="muted">{t.none}</p>}>
          <ul class="rows">
            <For each={place().lsp()}>
              {(server) => (
                <li class="status-row">
                  <span class={`dot ${KINDS[server.status] ?? ""}`} />
                  <span class="grow"><span>{plain(server.name)}</span> <span class="muted mono">{plain(server.root)}</span><Show when={server.error}>{(error) => <p class="muted">{prose(error())}</p>}</Show></span>
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
              {(one) => <li class="status-row"><span class="dot good" /><span>{plain(one.name)}</span><span class="muted mono clip">{plain(one.extensions.join(" "))}</span></li>}
            </For>
          </ul>
        </Show>
      </section>
      <section>
        <h3>{t.sandbox}</h3>
        <Show when={place().sandbox()} fallback={<p class="muted">{t.none}</p>}>
          {(sandbox) => (
            <dl class="facts">
              <dt>Mode</dt><dd>{sandbox().mode}</dd>
              <Show when={sandbox().mode !== "off"}>
                <dt>Mechanism</dt><dd>{sandbox().mechanism ?? "–"}{sandbox().enforced === false ? " (not enforced)" : ""}</dd>
                <dt>Network</dt><dd>{sandbox().network}</dd>
              </Show>
              <For each={sandbox().enforced === false ? [...(sandbox().reasons ?? []), ...(sandbox().gaps ?? [])] : []}>{(reason) => <dd class="muted">{prose(reason)}</dd>}</For>
            </dl>
          )}
        </Show>
      </section>
      <section>
        <h3>{t.trust}</h3>
        <div class="status-row">
          <span class={`dot ${place().trust()?.status === "undecided" || place().trust()?.status === "restricted" ? "warn" : "good"}`} />
          <span class="grow">{place().trust()?.status ?? "–"}</span>
          <Button small onClick={() => openTrust(place())}>{t.open}</Button>
        </div>
      </section>
      <UsageSection />
    </div>
  );
}

function McpRow(props: { directory: string; name: string; status: MCPStatus }): JSX.Element {
  const [isBusy, setBusy] = createSignal(false);
  const [page, setPage] = createSignal("");
  const [code, setCode] = createSignal("");
  const input = () => ({ path: { name: props.name }, query: { directory: props.directory }, long: true as const });
  const error = () => ("error" in props.status ? props.status.error : "");
  const run = async (work: () => Promise<unknown>) => {
    setBusy(true);
    await attempt(work);
    await placeOf(props.directory).mcp.refresh();
    setBusy(false);
  };
  const toggle = () => run(() => (props.status.status === "connected" ? call("POST /mcp/{name}/disconnect", input()) : call("POST /mcp/{name}/connect", input())));
  const signIn = () =>
    run(async () => {
      const begun = (await call("POST /mcp/{name}/auth", input())) as { authorizationUrl?: string };
      const url = begun.authorizationUrl ?? "";
      // Only addresses of the web are opened.
      if (/^https?:/.test(url)) setPage(url);
      setSignedIn(true);
    });
  const finish = () =>
    run(async () => {
      await call("POST /mcp/{name}/auth/callback", { ...input(), body: { code: code().trim() } });
      setPage("");
    });
  /** Whether the server can have a sign-in. Servers that run on the server's machine have none. */
  const [isSignedIn, setSignedIn] = createSignal(false);
  const isRemote = () => {
    const config = placeOf(props.directory).config()?.mcp?.[props.name];
    return config !== undefined && "type" in config && config.type === "remote";
  };
  const canSignOut = () => props.status.status === "connected" && (isSignedIn() || isRemote());
  const signOut = () =>
    run(async () => {
      await call("DELETE /mcp/{name}/auth", input());
      await call("POST /mcp/{name}/disconnect", input());
      await call("POST /mcp/{name}/connect", input());
      setSignedIn(false);
    });
  // The sign-in can end in another tab.
  createEffect(on(() => props.status.status, (status) => status === "connected" && setPage("")));
  return (
    <li class="status-row wrap">
      <span class={`dot ${KINDS[props.status.status] ?? ""}`} />
      <span class="grow clip">{plain(props.name)}</span>
      <span class="muted">{t.statusOf[props.status.status] ?? props.status.status}</span>
      <Show when={props.status.status === "needs_auth"}><Button small disabled={isBusy()} onClick={() => void signIn()}>{t.authorize}</Button></Show>
      <Show when={canSignOut()}><Button small kind="quiet" disabled={isBusy()} onClick={() => void signOut()}>{t.signOut}</Button></Show>
      <label class="switch"><input type="checkbox" role="switch" aria-label={props.name} checked={props.status.status === "connected"} disabled={isBusy()} onChange={() => void toggle()} /></label>
      <Show when={error()}><p class="muted full">{prose(error())}</p></Show>
      <Show when={page()}>
        <div class="full column">
          <a href={page()} target="_blank" rel="noopener noreferrer">{t.openSignIn}</a>
          <div class="row"><input class="field" aria-label={t.pasteCode} placeholder={t.pasteCode} value={code()} onInput={(event) => setCode(event.currentTarget.value)} /><Button small disabled={!code().trim()} onClick={() => void finish()}>{t.done}</Button></div>
        </div>
      </Show>
    </li>
  );
}
