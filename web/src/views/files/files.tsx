// The files of a directory: tree, viewer, and search by name, text and symbol.
import {
  createEffect,
  createMemo,
  createResource,
  createSignal,
  For,
  Match,
  on,
  Show,
  Suspense,
  Switch,
  type JSX,
} from "solid-js";
import { call, type FileNode } from "../../api";
import { placeOf } from "../../state/place";
import { prefs } from "../../state/prefs";
import { baseName } from "../../text/format";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Diff } from "../../ui/diff";
import { highlightLines, languageOf } from "../../ui/highlight";
import { Icon } from "../../ui/icon";
import { Markdown } from "../../ui/markdown";
import { Segments } from "../../ui/tabs";
import { code, plain } from "../../ui/text";
import { VirtualList, type VirtualHandle } from "../../ui/virtual/virtual";
import { draftOf, focusPrompt } from "../session/draft";
import { setTarget, target } from "../session/open-file";
import { openId } from "../../app/command";
import { EditorButton } from "../../app/editor";

type Mode = "names" | "text" | "symbols";
/** Longer files are not displayed. */
const MAX_BYTES = 4 * 1024 * 1024;
const SEARCH_MS = 160;

export default function FilesPanel(props: { directory: string }): JSX.Element {
  const [mode, setMode] = createSignal<Mode>("names");
  const [query, setQuery] = createSignal("");
  const [typed, setTyped] = createSignal("");
  let timer = 0;
  createEffect(
    on(
      typed,
      (text) => {
        clearTimeout(timer);
        timer = window.setTimeout(() => setQuery(text.trim()), SEARCH_MS);
      },
      { defer: true },
    ),
  );
  return (
    <Show
      when={target()}
      keyed
      fallback={
        <div class="files">
          <div class="toolbar">
            <div class="search grow">
              <Icon name="search" />
              <input
                class="field"
                type="search"
                value={typed()}
                aria-label={{ names: t.filterFiles, text: t.findInFiles, symbols: t.findSymbols }[mode()]}
                placeholder={{ names: t.filterFiles, text: t.findInFiles, symbols: t.findSymbols }[mode()]}
                onInput={(event) => setTyped(event.currentTarget.value)}
              />
            </div>
            <Segments
              label={t.search}
              value={mode()}
              onChange={setMode}
              options={[
                { name: "names", label: "Name" },
                { name: "text", label: "Text" },
                { name: "symbols", label: "Symbol" },
              ]}
            />
          </div>
          <div class="files-body">
            <Show when={query()} fallback={<Tree directory={props.directory} path="" depth={0} />}>
              <Suspense fallback={<p class="muted files-count">{t.loading}</p>}>
                <Found directory={props.directory} query={query()} mode={mode()} />
              </Suspense>
            </Show>
          </div>
        </div>
      }
    >
      {(file) => (
        <Viewer directory={props.directory} path={file.path} line={file.line} onBack={() => setTarget(null)} />
      )}
    </Show>
  );
}

function Tree(props: { directory: string; path: string; depth: number }): JSX.Element {
  const [nodes] = createResource(
    () => ({ directory: props.directory, path: props.path || "." }),
    (query) => call("GET /file", { query }),
  );
  const sorted = createMemo(() =>
    (nodes.latest ?? [])
      .filter((node) => node.name !== ".git")
      .sort((a, b) => Number(b.type === "directory") - Number(a.type === "directory") || a.name.localeCompare(b.name)),
  );
  return (
    <Show
      when={!nodes.error}
      fallback={<p class="notice bad">{String(nodes.error instanceof Error ? nodes.error.message : nodes.error)}</p>}
    >
      <ul
        role={props.depth === 0 ? "tree" : "group"}
        class="tree"
        aria-label={props.depth === 0 ? t.fileTree : undefined}
      >
        <For each={sorted()}>{(node) => <TreeNode directory={props.directory} node={node} depth={props.depth} />}</For>
      </ul>
    </Show>
  );
}

const [opened, setOpened] = createSignal<ReadonlySet<string>>(new Set());

function TreeNode(props: { directory: string; node: FileNode; depth: number }): JSX.Element {
  const isDirectory = () => props.node.type === "directory";
  const key = () => `${props.directory}\n${props.node.path}`;
  const isOpen = () => opened().has(key());
  const status = createMemo(() => {
    const changes = placeOf(props.directory).changes() ?? [];
    if (isDirectory()) return changes.some((change) => change.file.startsWith(`${props.node.path}/`)) ? "modified" : "";
    return changes.find((change) => change.file === props.node.path)?.status ?? "";
  });
  const toggle = (open: boolean) =>
    setOpened((all) => {
      const next = new Set(all);
      if (open) next.add(key());
      else next.delete(key());
      return next;
    });
  const act = () => (isDirectory() ? toggle(!isOpen()) : setTarget({ path: props.node.path, line: undefined }));
  const keys = (event: KeyboardEvent) => {
    const rows = [...document.querySelectorAll<HTMLElement>(".tree [role=treeitem]")];
    const at = rows.indexOf(event.currentTarget as HTMLElement);
    const move = { ArrowDown: rows[at + 1], ArrowUp: rows[at - 1], Home: rows[0], End: rows.at(-1) }[event.key];
    if (move) move.focus();
    else if (event.key === "ArrowRight" && isDirectory()) toggle(true);
    else if (event.key === "ArrowLeft" && isDirectory()) toggle(false);
    else if (event.key === "Enter" || event.key === " ") act();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <li role="none">
      <div
        role="treeitem"
        class={`tree-row ${status()} ${props.node.ignored ? "ignored" : ""}`}
        tabindex={0}
        aria-expanded={isDirectory() ? isOpen() : undefined}
        aria-selected={false}
        aria-label={`${props.node.name} ${status()} ${props.node.ignored ? t.ignored : ""}`.trim()}
        style={{ "padding-inline-start": `${0.5 + props.depth * 0.9}rem` }}
        onClick={act}
        onKeyDown={keys}
      >
        <Icon name={isDirectory() ? (isOpen() ? "chevronDown" : "chevron") : "file"} />
        <span class="clip">{plain(props.node.name)}</span>
        <Show when={status()}>
          <span class="tree-status" aria-hidden="true">
            {isDirectory() ? "•" : (status()[0] ?? "").toUpperCase()}
          </span>
        </Show>
      </div>
      <Show when={isOpen()}>
        {/* Of its own, so that the rest of the tree stays and keeps the focus. */}
        <Suspense>
          <Tree directory={props.directory} path={props.node.path} depth={props.depth + 1} />
        </Suspense>
      </Show>
    </li>
  );
}

interface Hit {
  path: string;
  line: number | undefined;
  text: string;
}

function Found(props: { directory: string; query: string; mode: Mode }): JSX.Element {
  const [hits] = createResource(
    () => ({ directory: props.directory, query: props.query, mode: props.mode }),
    async ({ directory, query, mode }): Promise<Hit[]> => {
      if (mode === "names")
        return (await call("GET /find/file", { query: { directory, query, limit: 100 } })).map((path) => ({
          path,
          line: undefined,
          text: "",
        }));
      if (mode === "text")
        return (await call("GET /find", { query: { directory, pattern: query } })).map((hit) => ({
          path: hit.path.text,
          line: hit.line_number,
          text: hit.lines.text.trim(),
        }));
      const symbols = await call("GET /find/symbol", { query: { directory, query } });
      return symbols.map((symbol) => ({
        path: decodeURIComponent(symbol.location.uri.replace(/^file:\/\//, "")).replace(`${directory}/`, ""),
        line: symbol.location.range.start.line + 1,
        text: symbol.name,
      }));
    },
  );
  return (
    <Show
      when={!hits.error}
      fallback={
        <p class="notice bad" role="alert">
          {String(hits.error instanceof Error ? hits.error.message : hits.error)}
        </p>
      }
    >
      <p class="muted files-count" role="status">
        {hits.loading ? t.loading : t.results(hits.latest?.length ?? 0)}
      </p>
      <ul class="rows">
        <For each={hits.latest ?? []}>
          {(hit) => (
            <li>
              <button
                type="button"
                class="row-button hit"
                onClick={() => setTarget({ path: hit.path, line: hit.line })}
              >
                <Icon name="file" />
                <span class="clip mono">
                  {plain(hit.path)}
                  {hit.line ? `:${hit.line}` : ""}
                </span>
                <Show when={hit.text}>
                  <code class="clip muted">{code(hit.text).slice(0, 200)}</code>
                </Show>
              </button>
            </li>
          )}
        </For>
      </ul>
    </Show>
  );
}

function Viewer(props: { directory: string; path: string; line: number | undefined; onBack: () => void }): JSX.Element {
  const [file] = createResource(
    () => ({ directory: props.directory, path: props.path }),
    (query) => call("GET /file/content", { query }),
  );
  const [view, setView] = createSignal<"code" | "changes" | "preview">("code");
  const isPicture = () =>
    file.latest?.encoding === "base64" && /^image\/(png|jpeg|gif|webp|avif)$/.test(file.latest.mimeType ?? "");
  const isMarkdown = () => /\.(md|markdown)$/i.test(props.path);
  const patch = () => file.latest?.diff ?? "";
  const mention = () => {
    const draft = draftOf(openId() ?? "new");
    draft.mentions.set(`@${props.path}`, { kind: "file", path: props.path });
    draft.setText(`${draft.text()}${draft.text() && !draft.text().endsWith(" ") ? " " : ""}@${props.path} `);
    focusPrompt();
  };
  const views = () => [
    { name: "code" as const, label: t.viewer },
    ...(patch() ? [{ name: "changes" as const, label: t.changes }] : []),
    ...(isMarkdown() ? [{ name: "preview" as const, label: "Preview" }] : []),
  ];
  return (
    <div class="files">
      <div class="toolbar">
        <Button small kind="quiet" icon="back" label={t.back} onClick={() => props.onBack()} />
        <span class="clip mono grow" title={plain(props.path)}>
          {plain(props.path)}
        </span>
        <Show when={views().length > 1}>
          <Segments label={t.viewer} value={view()} onChange={setView} options={views()} />
        </Show>
        <EditorButton directory={props.directory} path={props.path} line={props.line} />
        <Button small kind="quiet" icon="attach" label={t.mention} onClick={mention} />
      </div>
      <div class="viewer">
        <Show
          when={!file.error}
          fallback={
            <p class="notice bad" role="alert">
              {String(file.error instanceof Error ? file.error.message : file.error)}
            </p>
          }
        >
          <Show when={file.latest} fallback={<p class="empty">{t.loading}</p>}>
            {(content) => (
              <Switch>
                <Match when={isPicture()}>
                  <img
                    class="viewer-image"
                    src={`data:${content().mimeType};base64,${content().content}`}
                    alt={plain(baseName(props.path))}
                  />
                </Match>
                <Match when={content().type === "binary" || content().encoding === "base64"}>
                  <p class="empty">{t.binary}</p>
                </Match>
                <Match when={content().content.length > MAX_BYTES}>
                  <p class="empty">{t.tooLarge}</p>
                </Match>
                <Match when={view() === "changes"}>
                  <div class="viewer-scroll">
                    <Diff bare patch={patch()} title={props.path} split={prefs.split} />
                  </div>
                </Match>
                <Match when={view() === "preview"}>
                  <div class="viewer-scroll padded">
                    <Markdown text={content().content} />
                  </div>
                </Match>
                <Match when={view() === "code"}>
                  <Lines text={content().content} path={props.path} line={props.line} />
                </Match>
              </Switch>
            )}
          </Show>
        </Show>
      </div>
    </div>
  );
}

function Lines(props: { text: string; path: string; line: number | undefined }): JSX.Element {
  const lines = createMemo(() => code(props.text).replace(/\n$/, "").split("\n"));
  const [colours, setColours] = createSignal<Node[][] | null>(null);
  createEffect(() => {
    const text = code(props.text);
    setColours(null);
    void highlightLines(text, languageOf(props.path)).then((found) => code(props.text) === text && setColours(found));
  });
  const keys = createMemo(() => lines().map((_, at) => String(at)));
  const [handle, setHandle] = createSignal<VirtualHandle>();
  createEffect(() => {
    const line = props.line;
    if (line && handle())
      requestAnimationFrame(() => handle()?.scrollTo(String(Math.max(0, Math.min(line - 4, lines().length - 1)))));
  });
  return (
    <VirtualList keys={keys()} estimate={20} class="lines" label={plain(props.path)} handle={setHandle}>
      {(key) => {
        const at = Number(key);
        return (
          <div class="line" classList={{ marked: props.line === at + 1 }} dir="ltr">
            <span class="line-number" aria-hidden="true">
              {at + 1}
            </span>
            <code>
              {(colours()?.[at] ?? []).length > 0
                ? colours()?.[at]?.map((node) => node.cloneNode(true))
                : lines()[at] || " "}
            </code>
          </div>
        );
      }}
    </VirtualList>
  );
}
