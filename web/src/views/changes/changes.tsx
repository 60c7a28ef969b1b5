// The changes of the working tree, the branch, the session or its last turn, with comments on lines for the next
// prompt.
import { createMemo, createResource, createSignal, For, on, onCleanup, Show, createEffect, type JSX } from "solid-js";
import { EditorButton } from "../../app/editor";
import { call, type SnapshotFileDiff, type VcsFileDiff } from "../../api";
import { listen, transcriptOf } from "../../state/mirror";
import { prefs, setPrefs } from "../../state/prefs";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Diff } from "../../ui/diff";
import { Icon } from "../../ui/icon";
import { Segments } from "../../ui/tabs";
import { plain, prose } from "../../ui/text";
import type { Line } from "../../ui/patch";
import { draftOf, focusPrompt, type Comment } from "../session/draft";
import { openFile } from "../session/open-file";

type Scope = "git" | "branch" | "session" | "turn";
type Change = VcsFileDiff | SnapshotFileDiff;
/** Changes are fetched at most this often while a model works. */
const REFRESH_MS = 800;
/** The events after which they are fetched again. */
const REFRESHING = new Set([
  "file.edited",
  "file.watcher.updated",
  "session.diff",
  "session.idle",
  "vcs.branch.updated",
]);

export default function ChangesPanel(props: { id: string; directory: string }): JSX.Element {
  const [scope, setScope] = createSignal<Scope>("git");
  const [folded, setFolded] = createSignal<ReadonlySet<string>>(new Set());
  const [reviewed, setReviewed] = createSignal<Record<string, string>>({});
  const [editing, setEditing] = createSignal<{ file: string; line: Line } | null>(null);
  const lastPrompt = () => {
    const transcript = transcriptOf(props.id);
    return transcript.order().findLast((id) => transcript.message(id)?.info().role === "user");
  };
  const [changes, { refetch }] = createResource(
    () => ({ scope: scope(), id: props.id, directory: props.directory }),
    async ({ scope, id, directory }): Promise<Change[]> => {
      if (scope === "git" || scope === "branch") return call("GET /vcs/diff", { query: { directory, mode: scope } });
      const messageID = scope === "turn" ? lastPrompt() : undefined;
      return call("GET /session/{sessionID}/diff", { path: { sessionID: id }, query: messageID ? { messageID } : {} });
    },
  );
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void refetch(), REFRESH_MS);
  };
  createEffect(
    on(
      () => props.directory,
      (directory) => {
        const stop = listen((event, at) => {
          if ((at === undefined || at === directory) && REFRESHING.has(event.type)) later();
        });
        onCleanup(stop);
      },
    ),
  );
  onCleanup(() => clearTimeout(timer));
  const files = createMemo(() => (changes.latest ?? []).filter((change) => change.file));
  const total = (key: "additions" | "deletions") => files().reduce((sum, change) => sum + change[key], 0);
  const draft = () => draftOf(props.id);
  const below = (file: string, line: Line) => (
    <>
      <For each={commentsOf(draft().comments(), file, line)}>
        {(comment) => (
          <div class="review">
            <span class="grow">{prose(comment.text)}</span>
            <Button
              small
              kind="quiet"
              icon="close"
              label={`${t.remove}: ${comment.text}`}
              onClick={() => draft().setComments((all) => all.filter((one) => one !== comment))}
            />
          </div>
        )}
      </For>
      <Show when={editing()?.line === line}>
        <CommentBox
          file={file}
          line={line}
          onAdd={(comment) => {
            draft().setComments((all) => [...all, comment]);
            setEditing(null);
            focusPrompt();
          }}
          onCancel={() => setEditing(null)}
        />
      </Show>
    </>
  );
  const toggle = (file: string) =>
    setFolded((all) => {
      const next = new Set(all);
      if (!next.delete(file)) next.add(file);
      return next;
    });
  const isReviewed = (change: Change) => reviewed()[change.file ?? ""] === (change.patch ?? "");
  return (
    <div class="changes">
      <Toolbar scope={scope()} onScope={setScope} />
      <div class="changes-body">
        <Show
          when={!changes.error}
          fallback={
            <p class="notice bad" role="alert">
              {String(changes.error instanceof Error ? changes.error.message : changes.error)}
            </p>
          }
        >
          <Show when={files().length > 0} fallback={<p class="empty">{changes.loading ? t.loading : t.noChanges}</p>}>
            <p class="muted tabular changes-sum">
              {files().length} · <span class="plus">+{total("additions")}</span>{" "}
              <span class="minus">−{total("deletions")}</span>
            </p>
            <For each={files()}>
              {(change) => (
                <ChangeView
                  change={change}
                  directory={props.directory}
                  isFolded={folded().has(change.file ?? "")}
                  isReviewed={isReviewed(change)}
                  onFold={() => toggle(change.file ?? "")}
                  onReview={(done) => {
                    setReviewed((all) => ({ ...all, [change.file ?? ""]: done ? (change.patch ?? "") : "-" }));
                  }}
                  onComment={(file, line) => setEditing({ file, line })}
                  below={below}
                />
              )}
            </For>
          </Show>
        </Show>
      </div>
    </div>
  );
}

/** Returns the comments on a line. */
function commentsOf(comments: Comment[], file: string, line: Line): Comment[] {
  const [number, side] = [line.new ?? line.old, line.new === null ? "old" : "new"];
  return comments.filter((one) => one.file === file && one.line === number && one.side === side);
}

/** Which changes are displayed, and how. */
function Toolbar(props: { scope: Scope; onScope: (scope: Scope) => void }): JSX.Element {
  return (
    <div class="toolbar">
      <Segments
        label={t.changes}
        value={props.scope}
        onChange={props.onScope}
        options={[
          { name: "git", label: t.workingTree },
          { name: "branch", label: t.branch },
          { name: "session", label: t.thisSession },
          { name: "turn", label: t.lastTurn },
        ]}
      />
      <span class="grow" />
      <Segments
        label={t.layout}
        value={prefs.split ? "split" : "unified"}
        onChange={(value) => setPrefs("split", value === "split")}
        options={[
          { name: "unified", label: t.unified },
          { name: "split", label: t.split },
        ]}
      />
    </div>
  );
}

interface ChangeProps {
  change: Change;
  directory: string;
  isFolded: boolean;
  isReviewed: boolean;
  onFold: () => void;
  onReview: (isDone: boolean) => void;
  onComment: (file: string, line: Line) => void;
  /** Returns what is displayed below a line. */
  below: (file: string, line: Line) => JSX.Element;
}

/** The changes of a file. */
function ChangeView(props: ChangeProps): JSX.Element {
  const file = () => props.change.file ?? "";
  return (
    <section class="change" classList={{ reviewed: props.isReviewed }}>
      <div class="change-head">
        <button type="button" class="fold" aria-expanded={!props.isFolded} onClick={() => props.onFold()}>
          <Icon name={props.isFolded ? "chevron" : "chevronDown"} />
          <span class="clip mono">{plain(file())}</span>
          <Show when={props.change.status && props.change.status !== "modified"}>
            <span class="badge">{props.change.status}</span>
          </Show>
        </button>
        <span class="tabular">
          <span class="plus">+{props.change.additions}</span> <span class="minus">−{props.change.deletions}</span>
        </span>
        <EditorButton directory={props.directory} path={file()} />
        <Button
          small
          kind="quiet"
          icon="file"
          label={`${t.open}: ${props.change.file}`}
          onClick={() => openFile(file())}
        />
        <Button
          small
          kind="quiet"
          icon="check"
          label={`${t.reviewed}: ${props.change.file}`}
          aria-pressed={props.isReviewed}
          onClick={() => {
            const done = !props.isReviewed;
            props.onReview(done);
            if (done !== props.isFolded) props.onFold();
          }}
        />
      </div>
      <Show when={!props.isFolded}>
        <Show when={props.change.patch} fallback={<p class="muted change-none">{t.tooLarge}</p>}>
          {(patch) => (
            <Diff
              bare
              patch={patch()}
              title={file()}
              split={prefs.split}
              onComment={props.onComment}
              below={props.below}
            />
          )}
        </Show>
      </Show>
    </section>
  );
}

function CommentBox(props: {
  file: string;
  line: Line;
  onAdd: (comment: Comment) => void;
  onCancel: () => void;
}): JSX.Element {
  const [text, setText] = createSignal("");
  const add = () => {
    if (!text().trim()) return;
    const side = props.line.new === null ? "old" : "new";
    props.onAdd({
      file: props.file,
      line: props.line.new ?? props.line.old ?? 0,
      side,
      snippet: props.line.text,
      text: text().trim(),
    });
  };
  return (
    <div class="review-box">
      <textarea
        class="field"
        rows={2}
        aria-label={t.comment}
        placeholder={t.commentPlaceholder}
        value={text()}
        onInput={(event) => setText(event.currentTarget.value)}
        ref={(element) => requestAnimationFrame(() => element.focus())}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            add();
          }
          if (event.key === "Escape") props.onCancel();
        }}
      />
      <div class="row">
        <span class="grow" />
        <Button small onClick={props.onCancel}>
          {t.cancel}
        </Button>
        <Button small kind="primary" disabled={!text().trim()} onClick={add}>
          {t.addComment}
        </Button>
      </div>
    </div>
  );
}
