// The sidebar: the sessions, grouped by what needs attention.
import { createMemo, createSignal, onCleanup, Show, type JSX } from "solid-js";
import { currentDirectory } from "../state/actions";
import { loadMoreSessions, state } from "../state/mirror";
import { prefs } from "../state/prefs";
import { ago, baseName } from "../text/format";
import { t } from "../text";
import { Button } from "../ui/button";
import { Icon } from "../ui/icon";
import { isDrawn } from "../ui/idle";
import { plain, prose } from "../ui/text";
import { VirtualList } from "../ui/virtual/virtual";
import { groups, runningRoots, waitingRoots } from "./lists";
import { format, go, route } from "./router";
import { SessionMenu } from "./session-menu";
import { COMMANDS } from "./commands";
import { openPalette } from "./palette";

/** A first connection that takes longer is mentioned. */
const SLOW_MS = 400;

export function Sidebar(): JSX.Element {
  const rows = createMemo(() =>
    groups().flatMap((group) => [`# ${group.title}`, ...group.sessions.map((session) => session.id)]),
  );
  const waiting = createMemo(waitingRoots);
  const running = createMemo(runningRoots);
  const current = () => {
    const now = route();
    return now.name === "session" ? now.id : "";
  };
  return (
    <nav class="sidebar" aria-label={t.sessions}>
      <div class="sidebar-head">
        <a class="brand" href="#/" aria-current={route().name === "home" ? "page" : undefined}>
          <Logo />
          <span>{t.app}</span>
        </a>
        <Button kind="quiet" icon="search" label={t.commands} keys="Ctrl K" onClick={() => openPalette(COMMANDS)} />
      </div>
      <div class="sidebar-new">
        <Button
          class="grow"
          icon="add"
          keys="Ctrl Alt N"
          onClick={() => go({ name: "new", directory: currentDirectory() })}
        >
          {t.newSession}
        </Button>
      </div>
      <div class="sidebar-list">
        <Show
          when={rows().length > 0}
          fallback={
            <Show when={state.ready}>
              <p class="empty">{t.noSessions}</p>
            </Show>
          }
        >
          <VirtualList keys={rows()} estimate={34} label={t.sessions} onEnd={() => void loadMoreSessions()}>
            {(key) =>
              key.startsWith("# ") ? (
                <h2 class="sidebar-group">{key.slice(2)}</h2>
              ) : (
                <div class="sidebar-row" classList={{ current: current() === key }}>
                  <a
                    class="sidebar-link"
                    href={format({ name: "session", id: key, panel: null, message: null })}
                    aria-current={current() === key ? "page" : undefined}
                    title={`${prose(state.sessions[key]?.title ?? "")}\n${plain(state.sessions[key]?.directory ?? "")}`}
                  >
                    <Show when={waiting().has(key) || running().has(key)}>
                      <span class={`dot ${waiting().has(key) ? "warn" : "busy"}`} />
                    </Show>
                    <span class="clip grow">{prose(state.sessions[key]?.title ?? "") || t.untitled}</span>
                    <Show when={prefs.pinned.includes(key)}>
                      <Icon name="pin" />
                    </Show>
                    <span class="sidebar-time tabular">{ago(state.sessions[key]?.time.updated ?? 0)}</span>
                    <span class="visually-hidden">
                      {baseName(state.sessions[key]?.directory ?? "")}{" "}
                      {waiting().has(key) ? t.waitsForYou : running().has(key) ? t.running : ""}
                    </span>
                  </a>
                  {/* Invisible before the pointer or the keyboard is there, so not part of the first frame. */}
                  <Show when={isDrawn()}>
                    <SessionMenu id={key} />
                  </Show>
                </div>
              )
            }
          </VirtualList>
        </Show>
      </div>
      <div class="sidebar-foot">
        <Button kind="quiet" icon="home" aria-pressed={route().name === "home"} onClick={() => go({ name: "home" })}>
          {t.home}
        </Button>
        <Button
          kind="quiet"
          icon="settings"
          aria-pressed={route().name === "settings"}
          onClick={() => go({ name: "settings", page: "" })}
        >
          {t.settings}
        </Button>
        <Button
          kind="quiet"
          icon="question"
          keys="Ctrl /"
          aria-pressed={route().name === "shortcuts"}
          onClick={() => go({ name: "shortcuts" })}
        >
          {t.keys}
        </Button>
        <Connection />
      </div>
    </nav>
  );
}

function Connection(): JSX.Element {
  const [isSlow, setSlow] = createSignal(false);
  const timer = setTimeout(() => setSlow(true), SLOW_MS);
  onCleanup(() => clearTimeout(timer));
  const label = () =>
    state.connection === "open"
      ? ""
      : state.connection !== "connecting"
        ? t.connectionLost
        : isSlow()
          ? t.connecting
          : "";
  return (
    <Show when={label()}>
      <span class="badge warn clip">{label()}</span>
    </Show>
  );
}

export function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 20 20" aria-hidden="true">
      <path d="M7.500 4.500 2.500 10l5 5.500M12.500 4.500l5 5.500-5 5.500" />
      <circle cx="10" cy="10" r="1.600" />
    </svg>
  );
}
