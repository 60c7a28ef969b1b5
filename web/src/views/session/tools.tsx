// Tool calls, each in the form that suits its tool.
import { createMemo, createSignal, For, Match, Show, Switch, type JSX } from "solid-js";
import { EditorButton } from "../../app/editor";
import { openSession } from "../../app/router";
import type { ToolPart } from "../../api";
import { childrenOf, isBusy, state, transcriptOf } from "../../state/mirror";
import { prefs } from "../../state/prefs";
import { baseName, bytes, duration } from "../../text/format";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Code, CopyButton } from "../../ui/code";
import { Diff } from "../../ui/diff";
import { languageOf } from "../../ui/highlight";
import { Icon, type IconName } from "../../ui/icon";
import { Markdown } from "../../ui/markdown";
import { ending, MAX_OUTPUT, Output } from "../../ui/output";
import { code as cleanCode, plain, prose } from "../../ui/text";
import { FileChip } from "./file-chip";
import { openFile } from "./open-file";
import { callOf, list, number, text, type Call, type Values } from "./tool-call";

const ICONS: Record<string, IconName> = {
  bash: "terminal",
  read: "file",
  list: "folder",
  glob: "search",
  grep: "search",
  edit: "edit",
  multiedit: "edit",
  write: "edit",
  apply_patch: "diff",
  patch: "diff",
  webfetch: "globe",
  websearch: "globe",
  task: "fork",
  todowrite: "list",
  question: "question",
  skill: "spark",
  lsp: "search",
};

export function ToolView(props: { part: ToolPart }): JSX.Element {
  const call = createMemo(() => callOf(props.part));
  // The name of a call through a search tool is known only when the call is complete.
  return (
    <Switch fallback={<Generic call={call()} />}>
      <Match when={call().name === "bash"}>
        <Bash call={call()} />
      </Match>
      <Match when={/^(edit|multiedit)$/.test(call().name)}>
        <Edit call={call()} />
      </Match>
      <Match when={/^(apply_patch|patch)$/.test(call().name)}>
        <Patch call={call()} />
      </Match>
      <Match when={call().name === "write"}>
        <Write call={call()} />
      </Match>
      <Match when={call().name === "task"}>
        <Task call={call()} />
      </Match>
      <Match when={call().name === "todowrite"}>
        <Todos call={call()} />
      </Match>
      <Match when={call().name === "question"}>
        <Questions call={call()} />
      </Match>
      <Match when={/^(grep|glob|list)$/.test(call().name)}>
        <Search call={call()} />
      </Match>
    </Switch>
  );
}

interface RowProps {
  call: Call;
  verb: string;
  subject?: JSX.Element;
  note?: JSX.Element;
  /** What is visible when the row is unfolded. */
  children?: JSX.Element;
  /** Whether the row is unfolded unless the user folds it. */
  open?: boolean;
  canOpen?: boolean;
}

/** The line of a call, which unfolds its details. */
function Row(props: RowProps): JSX.Element {
  const [chosen, setChosen] = createSignal<boolean | null>(null);
  const canOpen = () => props.canOpen ?? true;
  const open = () => canOpen() && (chosen() ?? (props.open || prefs.outputs || false));
  return (
    <div class="tool" classList={{ open: open(), failed: props.call.error !== "", running: props.call.isRunning }}>
      <div class="tool-row" onClick={() => canOpen() && setChosen(!open())}>
        <Show when={!props.call.isRunning} fallback={<span class="spinner" role="img" aria-label={t.working} />}>
          <Icon name={props.call.error ? "error" : (ICONS[props.call.name] ?? "plug")} />
        </Show>
        <Show when={canOpen()} fallback={<span class="tool-verb">{props.verb}</span>}>
          <button
            type="button"
            class="tool-verb fold"
            aria-expanded={open()}
            onClick={(event) => {
              event.stopPropagation();
              setChosen(!open());
            }}
          >
            {props.verb}
          </button>
        </Show>
        <span class="tool-subject clip">{props.subject}</span>
        <span class="tool-note muted tabular">{props.note}</span>
        <Show when={canOpen()}>
          <Icon name="chevron" />
        </Show>
      </div>
      <Show when={open()}>
        <div class="tool-body">{props.children}</div>
      </Show>
      <Show when={props.call.error}>
        <ErrorText text={props.call.error} />
      </Show>
    </div>
  );
}

/** What follows in a refusal is for the model: the rules as JSON. */
const RULES = " Rules that speak of it:";

function ErrorText(props: { text: string }): JSX.Element {
  const [sentence, rules] = props.text.slice(0, 4_000).split(RULES, 2);
  return (
    <>
      <pre class="tool-error" dir="auto">
        {prose(sentence ?? "")}
      </pre>
      <Show when={rules}>
        <details class="tool-rules muted">
          <summary>{t.rulesOfRefusal}</summary>
          <pre dir="ltr">{prose(rules ?? "")}</pre>
        </details>
      </Show>
    </>
  );
}

function time(call: Call): string {
  return call.took >= 1_000 ? duration(call.took) : "";
}

function Bash(props: { call: Call }): JSX.Element {
  const whole = () => text(props.call.metadata, "output") || props.call.output;
  const output = createMemo(() => ending(whole()).trimEnd());
  const exit = () => number(props.call.metadata, "exit");
  const lines = createMemo(() => output().split("\n").length);
  const [isAll, setAll] = createSignal<boolean | null>(null);
  const all = () => isAll() ?? prefs.outputs;
  return (
    <div class="tool shell" classList={{ failed: props.call.error !== "", running: props.call.isRunning, all: all() }}>
      <div class="shell-head">
        <Show when={!props.call.isRunning} fallback={<span class="spinner" role="img" aria-label={t.working} />}>
          <Icon name="terminal" />
        </Show>
        <code class="shell-command" dir="ltr">
          {cleanCode(text(props.call.input, "command")) || "…"}
        </code>
        <span class="tool-note muted tabular">{time(props.call)}</span>
        <Show when={exit() !== null}>
          <span class="badge" classList={{ bad: exit() !== 0 }}>
            exit {exit()}
          </span>
        </Show>
        <CopyButton text={() => text(props.call.input, "command")} />
      </div>
      <Show when={output()}>
        <Output text={output()} label={t.showOutput} follow={props.call.isRunning} fromEnd />
        <Show when={lines() > 10}>
          <button type="button" class="shell-more" aria-expanded={all()} onClick={() => setAll(!all())}>
            {all() ? t.hideOutput : t.allLines(lines())}
          </button>
        </Show>
        <Shortened text={whole()} />
      </Show>
      <Show when={props.call.error && !output()}>
        <ErrorText text={props.call.error} />
      </Show>
    </div>
  );
}

/** Tells that an output is not displayed as a whole. */
function Shortened(props: { text: string }): JSX.Element {
  return (
    <Show when={props.text.length > MAX_OUTPUT}>
      <div class="shell-more" role="note">
        {t.truncated(bytes(props.text.length))}
      </div>
    </Show>
  );
}

function FileName(props: { path: string; line?: number | undefined }): JSX.Element {
  return (
    <a
      class="mono file-link clip"
      href="#"
      title={plain(props.path)}
      onClick={(event) => {
        event.preventDefault();
        event.stopPropagation();
        openFile(props.path, props.line);
      }}
    >
      {plain(shorten(props.path))}
    </a>
  );
}

function shorten(path: string): string {
  const directory = Object.values(state.sessions).find((session) =>
    path.startsWith(`${session.directory}/`),
  )?.directory;
  return directory ? path.slice(directory.length + 1) : path;
}

function DiffTool(props: { call: Call; path: string; patch: string; verb: string }): JSX.Element {
  const directory = () => state.sessions[props.call.part.sessionID]?.directory ?? "";
  /** The first line of the change in the new file. */
  const firstLine = () => Number(/^@@ -\d+(?:,\d+)? \+(\d+)/m.exec(props.patch)?.[1] ?? 1);
  return (
    <div class="tool" classList={{ failed: props.call.error !== "", running: props.call.isRunning }}>
      <Show
        when={props.patch}
        fallback={
          <Row
            call={props.call}
            verb={props.verb}
            canOpen={false}
            subject={<FileName path={props.path} />}
            note={time(props.call)}
          />
        }
      >
        <Diff
          patch={props.patch}
          split={prefs.split}
          title={shorten(props.path)}
          actions={
            <>
              <EditorButton directory={directory()} path={props.path} line={firstLine()} />
              <Button small kind="quiet" icon="file" label={t.open} onClick={() => openFile(props.path)} />
            </>
          }
        />
      </Show>
      <Diagnostics call={props.call} />
    </div>
  );
}

/** The errors of language servers after an edit. */
function Diagnostics(props: { call: Call }): JSX.Element {
  const found = createMemo(() => {
    const files = props.call.metadata["diagnostics"];
    if (files === null || typeof files !== "object") return [];
    const rows = Object.values(files as Values).flatMap((one) => (Array.isArray(one) ? (one as Values[]) : []));
    return rows.filter((row) => number(row, "severity") === 1).slice(0, 5);
  });
  return (
    <Show when={found().length > 0}>
      <ul class="diagnostics">
        <For each={found()}>
          {(row) => (
            <li class="row">
              <Icon name="error" />
              <span>{prose(text(row, "message"))}</span>
            </li>
          )}
        </For>
      </ul>
    </Show>
  );
}

function Edit(props: { call: Call }): JSX.Element {
  return (
    <DiffTool
      call={props.call}
      path={text(props.call.input, "filePath")}
      patch={text(props.call.metadata, "diff")}
      verb="Edit"
    />
  );
}

function Patch(props: { call: Call }): JSX.Element {
  const files = () => list(props.call.metadata, "files");
  return (
    <Show when={files().length > 0} fallback={<Row call={props.call} verb="Patch" canOpen={false} />}>
      <For each={files()}>
        {(file) => (
          <DiffTool
            call={props.call}
            path={text(file, "relativePath") || text(file, "filePath")}
            patch={text(file, "patch")}
            verb={text(file, "type")}
          />
        )}
      </For>
    </Show>
  );
}

function Write(props: { call: Call }): JSX.Element {
  const path = () => text(props.call.input, "filePath");
  const content = () => text(props.call.input, "content");
  return (
    <>
      <Row
        call={props.call}
        verb="Write"
        subject={<FileName path={path()} />}
        note={t.lines(content().split("\n").length)}
        canOpen={content() !== ""}
      >
        <Show
          when={text(props.call.metadata, "diff")}
          fallback={<Code code={content()} language={languageOf(path())} title={shorten(path())} />}
        >
          {(patch) => <Diff patch={patch()} split={prefs.split} title={shorten(path())} />}
        </Show>
      </Row>
      <Diagnostics call={props.call} />
    </>
  );
}

function Search(props: { call: Call }): JSX.Element {
  const found = () => number(props.call.metadata, "matches") ?? number(props.call.metadata, "count");
  const subject = () => text(props.call.input, "pattern") || text(props.call.input, "path");
  const verb = () => ({ grep: "Search", glob: "Find", list: "List" })[props.call.name] ?? props.call.name;
  const where = () => (text(props.call.input, "pattern") ? text(props.call.input, "path") : "");
  return (
    <Row
      call={props.call}
      verb={verb()}
      canOpen={props.call.output !== ""}
      note={found() === null ? "" : t.results(found() ?? 0)}
      subject={
        <>
          <code>{plain(subject())}</code>
          <Show when={where()}>
            {" "}
            <span class="muted">in {plain(shorten(where()))}</span>
          </Show>
        </>
      }
    >
      <Results text={props.call.output} />
    </Row>
  );
}

/** The results of a search, whose paths open the file. */
function Results(props: { text: string }): JSX.Element {
  const lines = createMemo(() => {
    let file = "";
    return props.text.split("\n", 400).map((line) => {
      const path = /^(\/?[^\s:][^:]*):$/.exec(line)?.[1] ?? /^(\/\S+)$/.exec(line)?.[1];
      if (path) file = path;
      const at = /^\s*(?:Line )?(\d+):/.exec(line)?.[1];
      return { line, path, at: at && file ? { file, line: Number(at) } : null };
    });
  });
  return (
    <div class="output results" tabindex={0} role="group" aria-label={t.showOutput} dir="ltr">
      <For each={lines()}>
        {(row) => (
          <div>
            <Show when={row.path ?? row.at?.file} fallback={cleanCode(row.line)}>
              <a
                class="file-link"
                href="#"
                onClick={(event) => {
                  event.preventDefault();
                  openFile(row.path ?? row.at?.file ?? "", row.at?.line);
                }}
              >
                {cleanCode(row.line) || " "}
              </a>
            </Show>
          </div>
        )}
      </For>
    </div>
  );
}

function Task(props: { call: Call }): JSX.Element {
  const id = () => text(props.call.metadata, "sessionId") || text(props.call.metadata, "sessionID");
  const child = () => state.sessions[id()];
  const running = () => props.call.isRunning && (id() === "" || isBusy(id()));
  const [isOpen, setOpen] = createSignal(false);
  const calls = createMemo(() => list(props.call.metadata, "summary").length);
  return (
    <div class="tool task" classList={{ running: running(), failed: props.call.error !== "" }}>
      <div class="task-head">
        <Show when={!running()} fallback={<span class="spinner" role="img" aria-label={t.working} />}>
          <Icon name="fork" />
        </Show>
        <span class="badge">{prose(text(props.call.input, "subagent_type")) || t.subagent}</span>
        <span class="clip grow">{prose(text(props.call.input, "description") || child()?.title || "")}</span>
        <Show when={calls() > 0}>
          <span class="muted tabular">{t.toolCalls(calls())}</span>
        </Show>
        <span class="muted tabular">{time(props.call)}</span>
        <Show when={id()}>
          <Button
            small
            kind="quiet"
            aria-expanded={isOpen()}
            icon={isOpen() ? "chevronDown" : "chevron"}
            label={t.showOutput}
            onClick={() => setOpen(!isOpen())}
          />
          <Button small onClick={() => openSession(id())}>
            {t.openSubagent}
          </Button>
        </Show>
      </div>
      <Show when={isOpen() && id()}>
        <Nested id={id()} />
      </Show>
      <Show when={!isOpen() && !running() && props.call.output}>
        <div class="task-result">
          <Markdown text={resultOf(props.call.output.slice(0, MAX_OUTPUT))} onFile={openFile} />
        </div>
      </Show>
      <Show when={props.call.error}>
        <ErrorText text={props.call.error} />
      </Show>
    </div>
  );
}

/** Returns the answer of a subagent without the marks that the model reads. */
function resultOf(output: string): string {
  const inside = /<task_result>\n?([\s\S]*?)\n?<\/task_result>/.exec(output)?.[1];
  return (
    inside ?? output.replace(/^task_id:.*\n+/, "").replace(/<\/?task(?:_result|_error)?(?: [^>\n]*)?>/g, "")
  ).trim();
}

/** The calls and texts of a subagent, below its call. */
function Nested(props: { id: string }): JSX.Element {
  const parts = createMemo(() => {
    const transcript = transcriptOf(props.id);
    return transcript.order().flatMap((id) => {
      const message = transcript.message(id);
      return message?.info().role === "assistant" ? message.parts() : [];
    });
  });
  return (
    <div class="nested">
      <For each={parts()}>
        {(node) => (
          <Switch>
            <Match when={node.part().type === "tool"}>
              <ToolView part={node.part() as ToolPart} />
            </Match>
            <Match when={node.part().type === "text"}>
              <Markdown text={(node.part() as { text: string }).text} done={!isBusy(props.id)} onFile={openFile} />
            </Match>
          </Switch>
        )}
      </For>
      <Show when={childrenOf(props.id).length > 0}>
        <span class="muted">
          {t.subagent}: {childrenOf(props.id).length}
        </span>
      </Show>
    </div>
  );
}

export function TodoList(props: { todos: { content: string; status: string }[] }): JSX.Element {
  return (
    <ul class="todos">
      <For each={props.todos}>
        {(todo) => (
          <li class={`todo ${todo.status}`}>
            <span class="todo-mark" aria-hidden="true">
              <Show when={todo.status === "completed"}>
                <Icon name="check" />
              </Show>
            </span>
            <span>{prose(todo.content)}</span>
            <span class="visually-hidden">{todo.status}</span>
          </li>
        )}
      </For>
    </ul>
  );
}

function Todos(props: { call: Call }): JSX.Element {
  const todos = createMemo(() =>
    list(props.call.input, "todos").map((one) => ({ content: text(one, "content"), status: text(one, "status") })),
  );
  const done = () => todos().filter((todo) => todo.status === "completed").length;
  return (
    <Row call={props.call} verb={t.todos} open canOpen={todos().length > 0} note={`${done()}/${todos().length}`}>
      <TodoList todos={todos()} />
    </Row>
  );
}

function Questions(props: { call: Call }): JSX.Element {
  const questions = () => list(props.call.input, "questions");
  const answers = (): unknown[] =>
    Array.isArray(props.call.metadata["answers"]) ? (props.call.metadata["answers"] as unknown[]) : [];
  return (
    <Row
      call={props.call}
      verb="Asked"
      open
      canOpen={answers().length > 0}
      subject={questions()
        .map((one) => prose(text(one, "header")))
        .join(", ")}
    >
      <dl class="answers">
        <For each={questions()}>
          {(question, at) => (
            <>
              <dt>{prose(text(question, "question"))}</dt>
              <dd>
                {Array.isArray(answers()[at()])
                  ? prose((answers()[at()] as unknown[]).map(String).join(", ")) || t.noAnswer
                  : t.noAnswer}
              </dd>
            </>
          )}
        </For>
      </dl>
    </Row>
  );
}

/** Names of tools in the words of a user. */
const VERBS: Record<string, string> = {
  read: "Read",
  webfetch: "Fetch",
  websearch: "Web search",
  skill: "Skill",
  lsp: "Language server",
  plan_exit: "Plan",
};

function Generic(props: { call: Call }): JSX.Element {
  const subject = (): JSX.Element => {
    const input = props.call.input;
    if (props.call.name === "read") {
      const offset = number(input, "offset");
      return (
        <>
          <FileName path={text(input, "filePath")} line={offset ?? undefined} />
          <Show when={offset !== null}>
            <span class="muted"> from line {offset}</span>
          </Show>
        </>
      );
    }
    const first = text(input, "url") || text(input, "query") || text(input, "name");
    if (first) return plain(first);
    const pairs = Object.entries(input)
      .slice(0, 6)
      .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
    return <span class="muted mono">{plain(pairs.join(" ").slice(0, 300))}</span>;
  };
  const pictures = () =>
    props.call.part.state.status === "completed" ? (props.call.part.state.attachments ?? []) : [];
  return (
    <>
      <Row
        call={props.call}
        verb={VERBS[props.call.name] ?? plain(props.call.name)}
        subject={subject()}
        note={time(props.call)}
        canOpen={props.call.output !== ""}
      >
        <Show
          when={props.call.name === "read"}
          fallback={
            <>
              <Output text={ending(props.call.output)} label={t.showOutput} />
              <Shortened text={props.call.output} />
            </>
          }
        >
          <Code
            code={fileContent(props.call.output.slice(0, MAX_OUTPUT))}
            language={languageOf(text(props.call.input, "filePath"))}
            title={baseName(text(props.call.input, "filePath"))}
          />
        </Show>
      </Row>
      <Show when={pictures().length > 0}>
        <div class="chips">
          <For each={pictures()}>{(file) => <FileChip file={file} />}</For>
        </div>
      </Show>
    </>
  );
}

/** Returns the lines of a read file without the marks and numbers that the model reads. */
function fileContent(output: string): string {
  const inside = /<(?:file|content)>\n?([\s\S]*?)\n?<\/(?:file|content)>/.exec(output)?.[1] ?? output;
  return inside.replace(/^\s*\d+(?:\||: |\t)/gm, "");
}
