// Home: a prompt, what waits or runs, and the sessions of all directories.
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  lazy,
  on,
  onCleanup,
  onMount,
  Show,
  Suspense,
  type JSX,
} from "solid-js";
import { openDirectoryDialog } from "../../app/directory";
import { groups as allGroups, groupSessions, rootSessions, waitsFor, type Group } from "../../app/lists";
import { format, openSession } from "../../app/router";
import { SessionMenu } from "../../app/session-menu";
import { currentDirectory } from "../../state/actions";
import { needsChoice } from "../../state/choice";
import { loadMoreSessions, searchSessions, state, type KnownSession } from "../../state/mirror";
import { placeOf } from "../../state/place";
import { prefs, setPrefs, toFront } from "../../state/prefs";
import { ago, baseName, money, shortPath } from "../../text/format";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { filter } from "../../ui/fuzzy";
import { Icon } from "../../ui/icon";
import { plain, prose } from "../../ui/text";
import { Composer } from "../session/composer/composer";

/** Most users have a model. */
const FirstRunCard = lazy(() => import("./first-run"));

/** Directories that are displayed as buttons. */
const MAX_DIRECTORIES = 6;
/** Sessions of a group before the rest is unfolded. */
const MAX_ROWS = 40;
/** Sessions of a group in the first frame: more are below the edge of most screens. */
const FIRST_ROWS = 12;
/** The delay of the other rows. */
const ROWS_MS = 60;
const SEARCH_MS = 200;

export function HomeView(): JSX.Element {
  const [query, setQuery] = createSignal("");
  // The server searches, too, because not all sessions are loaded.
  createEffect(
    on(
      query,
      (text) => {
        const timer = setTimeout(() => {
          if (text.trim() && state.hasMore) void searchSessions(text.trim());
        }, SEARCH_MS);
        onCleanup(() => clearTimeout(timer));
      },
      { defer: true },
    ),
  );
  const groups = createMemo(() => {
    if (!query()) return allGroups();
    return groupSessions(filter(rootSessions(), query(), (session) => `${session.title} ${session.directory}`));
  });
  /** Names, because rows of a group with a known name stay when a session changes. */
  const shown = createMemo(() => groups().map((group) => group.id));
  const directories = createMemo(() => {
    const all = [
      ...prefs.directories,
      state.directory,
      ...state.projects.map((project) => project.worktree),
      ...rootSessions()
        .slice(0, 50)
        .map((session) => session.directory),
    ];
    return [...new Set(all)].filter((one) => one && one !== "/").slice(0, MAX_DIRECTORIES);
  });
  return (
    <div class="home" tabindex={0} role="group" aria-label={t.home}>
      <div class="home-inner">
        <h1>{t.homeTitle}</h1>
        <Show
          when={state.ready}
          fallback={
            <div class="empty" role="status">
              {state.error || t.connecting}
            </div>
          }
        >
          <div class="home-places" role="group" aria-label={t.directory}>
            <For each={directories()}>
              {(directory) => (
                <button
                  type="button"
                  class="place"
                  aria-pressed={directory === currentDirectory()}
                  title={plain(directory)}
                  onClick={() => setPrefs("directories", toFront(prefs.directories, directory, 24))}
                >
                  <Icon name="folder" />
                  <span class="clip">{plain(baseName(directory))}</span>
                </button>
              )}
            </For>
            <button type="button" class="place" onClick={() => openDirectoryDialog()}>
              <Icon name="add" />
              {t.openDirectory}
            </button>
          </div>
          <Show when={currentDirectory()} keyed>
            {(directory) => (
              <Show when={needsChoice(placeOf(directory))}>
                <Suspense>
                  <FirstRunCard directory={directory} />
                </Suspense>
              </Show>
            )}
          </Show>
          <Show when={currentDirectory()} keyed>
            {(directory) => <Composer id="" directory={directory} onSent={(id) => openSession(id)} />}
          </Show>
          <p class="home-path muted mono clip">{plain(shortPath(currentDirectory(), state.home))}</p>
          <Show
            when={rootSessions().length > 0}
            fallback={
              <div class="empty">
                <h2>{t.noSessions}</h2>
                <p>{t.noSessionsHint}</p>
              </div>
            }
          >
            <div class="search home-search">
              <Icon name="search" />
              <input
                class="field"
                type="search"
                aria-label={t.searchSessions}
                placeholder={t.searchSessions}
                value={query()}
                onInput={(event) => setQuery(event.currentTarget.value)}
              />
            </div>
            <For each={shown()}>
              {(id) => {
                const group = () => groups().find((one) => one.id === id);
                return (
                  <GroupView
                    id={id}
                    title={group()?.title ?? ""}
                    sessions={group()?.sessions.map((session) => session.id) ?? []}
                  />
                );
              }}
            </For>
            <Show when={groups().length === 0}>
              <p class="empty" role="status">
                {t.nothingFound}
              </p>
            </Show>
            <Show when={state.hasMore && !query()}>
              <Button kind="quiet" onClick={() => void loadMoreSessions()}>
                {t.moreSessions}
              </Button>
            </Show>
          </Show>
        </Show>
      </div>
    </div>
  );
}

function GroupView(props: { id: Group["id"]; title: string; sessions: string[] }): JSX.Element {
  const [limit, setLimit] = createSignal(FIRST_ROWS);
  onMount(() => {
    const timer = setTimeout(() => setLimit(MAX_ROWS), ROWS_MS);
    onCleanup(() => clearTimeout(timer));
  });
  const rows = createMemo(() => props.sessions.slice(0, limit()));
  return (
    <section class="home-group">
      <h2>{props.title}</h2>
      <ul>
        <For each={rows()}>
          {(id) => (
            <Show when={state.sessions[id]}>{(session) => <SessionRow session={session()} group={props.id} />}</Show>
          )}
        </For>
      </ul>
      <Show when={limit() > FIRST_ROWS && props.sessions.length > rows().length}>
        <Button small kind="quiet" onClick={() => setLimit(Infinity)}>
          {t.sessionsIn(props.sessions.length)}
        </Button>
      </Show>
    </section>
  );
}

function SessionRow(props: { session: KnownSession; group: Group["id"] }): JSX.Element {
  const summary = () => props.session.summary;
  return (
    <li class="session-row">
      <a class="session-link" href={format({ name: "session", id: props.session.id, panel: null, message: null })}>
        <span class={`dot ${props.group === "waiting" ? "warn" : props.group === "running" ? "busy" : "none"}`} />
        <span class="session-title clip">{prose(props.session.title) || t.untitled}</span>
        <Show when={props.group === "waiting"}>
          <span class="badge warn">{waitsFor(props.session.id)}</span>
        </Show>
        <Show when={prefs.pinned.includes(props.session.id)}>
          <Icon name="pin" />
        </Show>
        <span class="session-facts muted">
          <Show when={(summary()?.files ?? 0) > 0}>
            <span class="tabular">
              <span class="plus">+{summary()?.additions}</span> <span class="minus">−{summary()?.deletions}</span>
            </span>
          </Show>
          <Show when={(props.session.cost ?? 0) > 0}>
            <span class="tabular">{money(props.session.cost ?? 0)}</span>
          </Show>
          <span class="clip session-place">{plain(baseName(props.session.directory))}</span>
          <span class="tabular session-time">{ago(props.session.time.updated)}</span>
        </span>
      </a>
      <SessionMenu id={props.session.id} />
    </li>
  );
}
