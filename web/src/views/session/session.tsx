// A session: the transcript, what waits for the user, the prompt, and the panel next to them. Also a new session, which
// exists on the server once its first prompt is sent.
import { createEffect, createMemo, createSignal, For, lazy, on, Show, Suspense, type JSX } from "solid-js";
import { openSession, PANELS, replace, route, showPanel, type Panel } from "../../app/router";
import { SessionMenu } from "../../app/session-menu";
import { currentDirectory, redo } from "../../state/actions";
import { fetchSession, state, transcriptOf } from "../../state/mirror";
import { placeOf } from "../../state/place";
import { prefs, setPrefs } from "../../state/prefs";
import { shortPath } from "../../text/format";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { Menu } from "../../ui/menu";
import { plain, prose } from "../../ui/text";
import { renameDialog } from "../../app/session-menu";
import { openTrust } from "../trust/trust";
import { Composer } from "./composer/composer";
import { Meter } from "./meter";
import { Requests } from "./requests";
import { openSearch } from "./search";
import { TranscriptView } from "./transcript";

/** The keys that open the panels. */
const PANEL_KEYS: Partial<Record<Panel, string>> = {
  changes: "Ctrl Alt D",
  files: "Ctrl Alt F",
  terminal: "Ctrl Alt T",
  status: "Ctrl Alt S",
};

const SidePanel = lazy(() => import("../panel/panel"));

export default function SessionView(): JSX.Element {
  const id = createMemo(() => {
    const now = route();
    return now.name === "session" ? now.id : "";
  });
  const [isMissing, setMissing] = createSignal(false);
  createEffect(
    on(id, (open) => {
      setMissing(false);
      if (open) void fetchSession(open).then((session) => setMissing(session === null && id() === open));
    }),
  );
  // A session that is deleted elsewhere while it is open.
  createEffect(
    on(
      () => id() !== "" && state.ready && state.sessions[id()] === undefined,
      (gone, before) => {
        if (gone && before === false) setMissing(true);
      },
    ),
  );
  const session = () => state.sessions[id()];
  const directory = () => session()?.directory ?? (id() ? "" : currentDirectory());
  const panel = (): Panel | null => {
    const now = route();
    return now.name === "session" ? now.panel : null;
  };
  return (
    <Show
      when={!isMissing()}
      fallback={
        <div class="empty">
          <h2>{t.sessionMissing}</h2>
          <p>{t.sessionMissingHint}</p>
        </div>
      }
    >
      <div class="session" classList={{ "with-panel": panel() !== null }}>
        <section class="session-main" aria-label={t.transcript}>
          <Head id={id()} directory={directory()} panel={panel()} />
          <Show when={id()} keyed fallback={<NewSession directory={directory()} />}>
            {(open) => (
              <>
                <TranscriptView id={open} />
                <div class="session-foot">
                  <Reverted id={open} />
                  <Requests id={open} />
                  <Composer id={open} directory={directory()} onSent={() => {}} />
                </div>
              </>
            )}
          </Show>
        </section>
        <Show when={panel()}>
          {(open) => (
            <aside class="panel" aria-label={t[open()]} style={{ "--panel-width": `${prefs.panelWidth}px` }}>
              <Divider />
              <Suspense fallback={<div class="empty">{t.loading}</div>}>
                <SidePanel id={id()} directory={directory()} panel={open()} />
              </Suspense>
            </aside>
          )}
        </Show>
      </div>
    </Show>
  );
}

function Head(props: { id: string; directory: string; panel: Panel | null }): JSX.Element {
  const session = () => state.sessions[props.id];
  const place = createMemo(() => (props.directory ? placeOf(props.directory) : null));
  const untrusted = () => ["undecided", "restricted"].includes(place()?.trust()?.status ?? "");
  const toggle = (panel: Panel) => () => showPanel(props.panel === panel ? null : panel);
  return (
    <header class="head">
      <div class="head-title">
        <Show when={session()?.parentID}>
          {(parent) => (
            <Button small kind="quiet" icon="back" label={t.parentSession} onClick={() => openSession(parent())} />
          )}
        </Show>
        <h1 class="clip" onDblClick={() => props.id && renameDialog(props.id)}>
          {prose(session()?.title ?? "") || (props.id ? t.untitled : t.newSession)}
        </h1>
        <Show when={session()?.time.archived}>
          <span class="badge">{t.archived}</span>
        </Show>
        <Show when={props.id}>
          <SessionMenu id={props.id} />
        </Show>
      </div>
      <div class="head-place muted">
        <span class="clip mono">{plain(shortPath(props.directory, state.home))}</span>
        <Show when={place()?.vcs()?.branch}>
          {(branch) => (
            <span class="row head-branch">
              <Icon name="branch" />
              <span class="clip">{plain(branch())}</span>
            </span>
          )}
        </Show>
        <Show when={untrusted()}>
          <button
            type="button"
            class="badge warn link-badge"
            onClick={() => {
              const at = place();
              if (at) openTrust(at);
            }}
          >
            <Icon name="shield" />
            {t.untrusted}
          </button>
        </Show>
      </div>
      <Show when={props.id}>
        <div class="head-actions" role="group" aria-label={t.display}>
          <Meter id={props.id} />
          <span class="head-panels row">
            <For each={PANELS.filter((name) => name !== "context")}>
              {(name) => (
                <Button kind="quiet" keys={PANEL_KEYS[name]} aria-pressed={props.panel === name} onClick={toggle(name)}>
                  {t[name]}
                </Button>
              )}
            </For>
          </span>
          <Button kind="quiet" icon="search" label={t.searchSession} keys="Ctrl F" onClick={() => openSearch()} />
          <span class="head-menu">
            <Menu
              label={t.panels}
              icon="menu"
              entries={() =>
                PANELS.map((name) => ({
                  label: t[name],
                  keys: PANEL_KEYS[name],
                  checked: props.panel === name,
                  run: toggle(name),
                }))
              }
            >
              {t.panels}
            </Menu>
          </span>
        </div>
      </Show>
    </header>
  );
}

function NewSession(props: { directory: string }): JSX.Element {
  return (
    <div class="new-session">
      <div class="new-session-box">
        <h2>{t.homeTitle}</h2>
        <Show when={props.directory}>
          <Composer
            id=""
            directory={props.directory}
            onSent={(id) => replace({ name: "session", id, panel: null, message: null })}
          />
        </Show>
      </div>
    </div>
  );
}

/** The line that shows how many messages are undone. */
function Reverted(props: { id: string }): JSX.Element {
  const count = createMemo(() => {
    const at = state.sessions[props.id]?.revert?.messageID;
    if (!at) return 0;
    const transcript = transcriptOf(props.id);
    const order = transcript.order();
    const from = order.indexOf(at);
    return from < 0 ? 1 : order.slice(from).filter((one) => transcript.message(one)?.info().role === "user").length;
  });
  return (
    <Show when={count() > 0}>
      <div class="notice reverted" role="status">
        <Icon name="undo" />
        <span class="grow">{t.undone(count())}</span>
        <Button small icon="redo" onClick={() => redo(props.id, false)}>
          {t.redo}
        </Button>
        <Show when={count() > 1}>
          <Button small onClick={() => redo(props.id, true)}>
            {t.redoAll}
          </Button>
        </Show>
      </div>
    </Show>
  );
}

/** The line that changes the width of the panel. */
function Divider(): JSX.Element {
  const resize = (event: PointerEvent) => {
    const target = event.currentTarget as HTMLElement;
    target.setPointerCapture(event.pointerId);
    const [start, width] = [event.clientX, prefs.panelWidth];
    const move = (moved: PointerEvent) =>
      setPrefs("panelWidth", Math.round(Math.min(Math.max(width + start - moved.clientX, 300), innerWidth * 0.7)));
    const end = () => {
      target.removeEventListener("pointermove", move);
      target.removeEventListener("pointerup", end);
    };
    target.addEventListener("pointermove", move);
    target.addEventListener("pointerup", end);
  };
  const keys = (event: KeyboardEvent) => {
    const by = { ArrowLeft: 32, ArrowRight: -32 }[event.key];
    if (by) setPrefs("panelWidth", Math.min(Math.max(prefs.panelWidth + by, 300), Math.round(innerWidth * 0.7)));
  };
  return (
    <div
      class="divider"
      role="separator"
      aria-orientation="vertical"
      aria-label={t.togglePanel}
      aria-valuenow={prefs.panelWidth}
      aria-valuemin={300}
      aria-valuemax={2000}
      tabindex={0}
      onPointerDown={resize}
      onKeyDown={keys}
    />
  );
}
