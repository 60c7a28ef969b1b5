// The MCP servers of a directory, with their switches and sign-ins.
import { createEffect, createMemo, createSignal, For, on, Show, type JSX } from "solid-js";
import { call, type MCPStatus } from "../../api";
import { attempt } from "../../state/actions";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { plain, prose } from "../../ui/text";

/** The colours of states. */
export const KINDS: Record<string, string> = {
  connected: "good",
  failed: "bad",
  error: "bad",
  needs_auth: "warn",
  needs_client_registration: "warn",
};

/** `more` is what a row has in addition. */
export function McpList(props: { directory: string; more?: (name: string) => JSX.Element }): JSX.Element {
  const place = () => placeOf(props.directory);
  /** Names, because the row of a server keeps a sign-in that has begun while its status changes. */
  const names = createMemo(() => Object.keys(place().mcp() ?? {}));
  return (
    <Show when={names().length > 0} fallback={<p class="muted">{place().mcp.error() || t.none}</p>}>
      <ul class="rows">
        <For each={names()}>
          {(name) => (
            <Show when={place().mcp()?.[name]}>
              {(status) => (
                <McpRow directory={props.directory} name={name} status={status()} more={props.more?.(name)} />
              )}
            </Show>
          )}
        </For>
      </ul>
    </Show>
  );
}

function McpRow(props: { directory: string; name: string; status: MCPStatus; more?: JSX.Element }): JSX.Element {
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
  const toggle = () =>
    run(() =>
      props.status.status === "connected"
        ? call("POST /mcp/{name}/disconnect", input())
        : call("POST /mcp/{name}/connect", input()),
    );
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
  createEffect(
    on(
      () => props.status.status,
      (status) => status === "connected" && setPage(""),
    ),
  );
  return (
    <li class="status-row wrap">
      <span class={`dot ${KINDS[props.status.status] ?? ""}`} />
      <span class="grow clip">{plain(props.name)}</span>
      <span class="muted">{t.statusOf[props.status.status] ?? props.status.status}</span>
      <Show when={props.status.status === "needs_auth"}>
        <Button small disabled={isBusy()} onClick={() => void signIn()}>
          {t.authorize}
        </Button>
      </Show>
      <Show when={canSignOut()}>
        <Button small kind="quiet" disabled={isBusy()} onClick={() => void signOut()}>
          {t.signOut}
        </Button>
      </Show>
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          aria-label={props.name}
          checked={props.status.status === "connected"}
          disabled={isBusy()}
          onChange={() => void toggle()}
        />
      </label>
      {props.more}
      <Show when={error()}>
        <p class="muted full">{prose(error())}</p>
      </Show>
      <Show when={page()}>
        <div class="full column">
          <a href={page()} target="_blank" rel="noopener noreferrer">
            {t.openSignIn}
          </a>
          <div class="row">
            <input
              class="field"
              aria-label={t.pasteCode}
              placeholder={t.pasteCode}
              value={code()}
              onInput={(event) => setCode(event.currentTarget.value)}
            />
            <Button small disabled={!code().trim()} onClick={() => void finish()}>
              {t.done}
            </Button>
          </div>
        </div>
      </Show>
    </li>
  );
}
