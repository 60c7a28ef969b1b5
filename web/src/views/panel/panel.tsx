// The panel next to a session.
import { lazy, Match, Suspense, Switch, type JSX } from "solid-js";
import { PANELS, showPanel, type Panel } from "../../app/router";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Tabs } from "../../ui/tabs";
import { TasksPanel } from "./tasks";
import { StatusPanel } from "../status/status";

const ChangesPanel = lazy(() => import("../changes/changes"));
const FilesPanel = lazy(() => import("../files/files"));
const ContextPanel = lazy(() => import("../context/context"));
const TerminalPanel = lazy(() => import("../terminal/terminal"));

export default function SidePanel(props: { id: string; directory: string; panel: Panel }): JSX.Element {
  return (
    <>
      <div class="panel-head">
        <Tabs
          label={t.togglePanel}
          value={props.panel}
          onChange={showPanel}
          tabs={PANELS.map((name) => ({ name, label: t[name] }))}
        />
        <span class="grow" />
        <Button small kind="quiet" icon="close" label={t.close} onClick={() => showPanel(null)} />
      </div>
      <div class="panel-body" role="tabpanel" aria-label={t[props.panel]}>
        <Suspense fallback={<div class="empty">{t.loading}</div>}>
          <Switch>
            <Match when={props.panel === "changes"}>
              <ChangesPanel id={props.id} directory={props.directory} />
            </Match>
            <Match when={props.panel === "files"}>
              <FilesPanel directory={props.directory} />
            </Match>
            <Match when={props.panel === "terminal"}>
              <TerminalPanel directory={props.directory} />
            </Match>
            <Match when={props.panel === "tasks"}>
              <TasksPanel id={props.id} />
            </Match>
            <Match when={props.panel === "context"}>
              <ContextPanel id={props.id} directory={props.directory} />
            </Match>
            <Match when={props.panel === "status"}>
              <StatusPanel directory={props.directory} />
            </Match>
          </Switch>
        </Suspense>
      </div>
    </>
  );
}
