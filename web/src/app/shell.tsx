// The frame around all views.
import {
  createEffect,
  createSignal,
  For,
  lazy,
  Match,
  onCleanup,
  onMount,
  Show,
  Suspense,
  Switch,
  type JSX,
} from "solid-js";
import { state } from "../state/mirror";
import { hasUpdate } from "../state/version";
import { prefs, setPrefs } from "../state/prefs";
import { t } from "../text";
import { Button } from "../ui/button";
import { idle } from "../ui/idle";
import { Icon } from "../ui/icon";
import { Toasts } from "../ui/toast";
import { HomeView } from "../views/home/home";
import { SignIn } from "../views/sign-in/sign-in";
import { TrustGuard } from "../views/trust/trust";
import { dialogs } from "./dialogs";
import { handleKeys } from "./keys";
import { followAttention } from "./notify";
import { route } from "./router";
import { Sidebar } from "./sidebar";

const SessionView = lazy(() => import("../views/session/session"));
const SettingsView = lazy(() => import("../views/settings/settings"));
const ShortcutsView = lazy(() => import("../views/settings/shortcuts"));
const GalleryView = lazy(() => import("../views/gallery/gallery"));

/** The width below which the sidebar is above the content. */
const NARROW = matchMedia("(max-width: 800px)");

export function Shell(): JSX.Element {
  const [isNarrow, setNarrow] = createSignal(NARROW.matches);
  const [isOpen, setOpen] = createSignal(false);
  const update = () => setNarrow(NARROW.matches);
  onMount(() => {
    NARROW.addEventListener("change", update);
    addEventListener("keydown", handleKeys);
  });
  // So that the first session opens at once.
  createEffect(() => {
    if (state.ready) void idle().then(() => SessionView.preload());
  });
  onCleanup(() => {
    NARROW.removeEventListener("change", update);
    removeEventListener("keydown", handleKeys);
  });
  createEffect(() => {
    route();
    setOpen(false);
  });
  followAttention();
  const showsSidebar = () => (isNarrow() ? isOpen() : prefs.sidebar);
  return (
    <Show when={state.connection !== "refused"} fallback={<SignIn />}>
      <div class="app-shell" classList={{ narrow: isNarrow(), "with-sidebar": showsSidebar() }}>
        <a
          class="skip"
          href="#main"
          onClick={(event) => {
            event.preventDefault();
            document.getElementById("main")?.focus();
          }}
        >
          {t.skipToContent}
        </a>
        <Show when={showsSidebar()}>
          <Show when={isNarrow()}>
            <div class="sidebar-shade" onClick={() => setOpen(false)} />
          </Show>
          <Sidebar />
        </Show>
        <main id="main" tabindex={-1}>
          <Button
            class="sidebar-toggle"
            kind="quiet"
            icon="sidebar"
            label={t.toggleSidebar}
            keys="Ctrl B"
            aria-expanded={showsSidebar()}
            onClick={() => (isNarrow() ? setOpen(!isOpen()) : setPrefs("sidebar", !prefs.sidebar))}
          />
          <Show when={state.connection === "lost"}>
            <div class="banner" role="status">
              <Icon name="warn" />
              {t.connectionLost}
            </div>
          </Show>
          <Show when={hasUpdate()}>
            <div class="banner update" role="status">
              {t.newVersion}
              <Button small onClick={() => location.reload()}>
                {t.reload}
              </Button>
            </div>
          </Show>
          <Suspense fallback={<div class="empty">{t.loading}</div>}>
            <Switch fallback={<HomeView />}>
              <Match when={route().name === "session" || route().name === "new"}>
                <SessionView />
              </Match>
              <Match when={route().name === "settings"}>
                <SettingsView />
              </Match>
              <Match when={route().name === "shortcuts"}>
                <ShortcutsView />
              </Match>
              <Match when={route().name === "gallery"}>
                <GalleryView />
              </Match>
            </Switch>
          </Suspense>
        </main>
      </div>
      <TrustGuard />
      <For each={dialogs()}>{(dialog) => <dialog.view close={dialog.close} />}</For>
      <Toasts />
    </Show>
  );
}
