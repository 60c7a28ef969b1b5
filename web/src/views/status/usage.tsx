// What the user and the user's teams have used today, and their quotas, on a server with users.
import { createEffect, createMemo, createSignal, For, on, onCleanup, Show, type JSX } from "solid-js";
import { ApiError, call } from "../../api";
import { listen, state } from "../../state/mirror";
import { count, money } from "../../text/format";
import { t } from "../../text";
import { plain } from "../../ui/text";

type Usage = Awaited<ReturnType<typeof load>>;
type Account = Usage["user"];
const load = () => call("GET /users/usage");

/** A use from which on a quota is marked. */
const NEAR = 0.9;

/** Whether the server said that it has no users, although its sessions are from a time when it had. */
const [isSingle, setSingle] = createSignal(false);

/** Only sessions that a server with users made have an owner. */
const hasUsers = () => !isSingle() && Object.values(state.sessions).some((session) => session.access !== undefined);

export function UsageSection(): JSX.Element {
  const [usage, setUsage] = createSignal<Usage>();
  // What is displayed stays if the server cannot be reached.
  const fetch = () =>
    void load().then(
      setUsage,
      (error: unknown) => error instanceof ApiError && error.status === 404 && setSingle(true),
    );
  createEffect(
    on(createMemo(hasUsers), (some) => {
      if (!some) return;
      fetch();
      // The end of a turn.
      onCleanup(listen((event) => event.type === "session.idle" && fetch()));
    }),
  );
  return (
    <Show when={usage()}>
      {(all) => (
        <section class="usage">
          <h3>{t.usageToday}</h3>
          <dl class="facts tabular">
            <AccountRow name={t.yours} account={all().user} />
            <For each={Object.keys(all().teams)}>
              {(team) => (
                <Show when={all().teams[team]}>
                  {(account) => <AccountRow name={t.team(plain(team))} account={account()} />}
                </Show>
              )}
            </For>
          </dl>
        </section>
      )}
    </Show>
  );
}

function AccountRow(props: { name: string; account: Account }): JSX.Element {
  const rows = () => {
    const { used, quota } = props.account;
    return [
      { used: used.tokens, quota: quota.tokens, text: count, unit: t.tokensOfDay },
      { used: used.cost, quota: quota.cost, text: money, unit: "" },
      { used: used.sessions, quota: quota.sessions, text: String, unit: t.sessionsAtWork },
    ];
  };
  return (
    <>
      <dt>{props.name}</dt>
      <For each={rows()}>
        {(row) => (
          <dd classList={{ warn: row.quota !== null && row.used >= row.quota * NEAR }}>
            {row.quota === null ? row.text(row.used) : t.ofLimit(row.text(row.used), row.text(row.quota))} {row.unit}
          </dd>
        )}
      </For>
    </>
  );
}
