// Diffs: unified or side by side, with the words that changed.
import { createMemo, createSignal, For, Show, type JSX } from "solid-js";
import { t } from "../text";
import { Icon } from "./icon";
import { pairs, parsePatch, wordsOf, type FilePatch, type Hunk, type Line, type Piece } from "./patch";
import { code, plain } from "./text";

/** More lines of a file are displayed on request. */
const MAX_LINES = 1_200;

interface Props {
  patch: string;
  split?: boolean;
  /** The name to display if it differs from the one in the patch. */
  title?: string;
  bare?: boolean;
  /** Called with a line that the user wants to comment on. */
  onComment?: ((file: string, line: Line) => void) | undefined;
  /** What is displayed below a line, such as a comment. */
  below?: (file: string, line: Line) => JSX.Element;
  actions?: JSX.Element;
}

export function Diff(props: Props): JSX.Element {
  const files = createMemo(() => parsePatch(props.patch));
  return <For each={files()}>{(file) => <FileDiff {...props} file={file} />}</For>;
}

function FileDiff(props: Props & { file: FilePatch }): JSX.Element {
  const [all, setAll] = createSignal(false);
  const name = () =>
    props.title ?? (props.file.new && props.file.new !== "/dev/null" ? props.file.new : props.file.old);
  const total = () => props.file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  const hunks = createMemo(() => {
    if (all() || total() <= MAX_LINES) return props.file.hunks;
    let left = MAX_LINES;
    return props.file.hunks.flatMap((hunk) => {
      const lines = hunk.lines.slice(0, Math.max(0, left));
      left -= lines.length;
      return lines.length > 0 ? [{ ...hunk, lines }] : [];
    });
  });
  const count = (kind: Line["kind"]) =>
    props.file.hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.kind === kind).length, 0);
  return (
    <div class={`diff ${props.split ? "split" : ""}`} dir="ltr">
      <Show when={!props.bare}>
        <div class="diff-head">
          <Icon name="file" />
          <span class="clip mono">{plain(name())}</span>
          <span class="tabular">
            <span class="plus">+{count("add")}</span> <span class="minus">−{count("del")}</span>
          </span>
          <span class="grow" />
          {props.actions}
        </div>
      </Show>
      <Show when={props.file.isBinary}>
        <div class="diff-gap">{t.binary}</div>
      </Show>
      <div class="diff-scroll" tabindex={0} role="group" aria-label={t.diffOf(plain(name()))}>
        <div class="diff-body">
          <For each={hunks()}>
            {(hunk) => (
              <>
                <Show when={hunk.skipped > 0 || hunk.head}>
                  <div class="diff-gap">
                    {hunk.skipped > 0 ? t.unchangedLines(hunk.skipped) : ""}{" "}
                    <span class="mono">{plain(hunk.head)}</span>
                  </div>
                </Show>
                {props.split ? (
                  <SplitHunk {...props} name={name()} hunk={hunk} />
                ) : (
                  <UnifiedHunk {...props} name={name()} hunk={hunk} />
                )}
              </>
            )}
          </For>
        </div>
      </div>
      <Show when={!all() && total() > MAX_LINES}>
        <button type="button" class="diff-gap" onClick={() => setAll(true)}>
          {t.showAllLines(total())}
        </button>
      </Show>
    </div>
  );
}

type HunkProps = Props & { name: string; hunk: Hunk };

function UnifiedHunk(props: HunkProps): JSX.Element {
  const changed = createMemo(() => wordsOf(props.hunk));
  return (
    <For each={props.hunk.lines}>
      {(line) => (
        <>
          <div class={`diff-line ${line.kind === "same" ? "" : line.kind}`}>
            <span class="n">{line.old}</span>
            <LineNumber line={line} shown={line.new} props={props} />
            <span class="s">{sign(line)}</span>
            <span class="t">
              <Text line={line} pieces={changed().get(line)} />
            </span>
          </div>
          {props.below?.(props.name, line)}
        </>
      )}
    </For>
  );
}

function SplitHunk(props: HunkProps): JSX.Element {
  const changed = createMemo(() => wordsOf(props.hunk));
  const side = (line: Line | null, shown: number | null | undefined) =>
    line === null ? (
      <div class="diff-line none">
        <span class="n" />
        <span class="s" />
        <span class="t" />
      </div>
    ) : (
      <div class={`diff-line ${line.kind === "same" ? "" : line.kind}`}>
        <LineNumber line={line} shown={shown ?? null} props={props} />
        <span class="s">{sign(line)}</span>
        <span class="t">
          <Text line={line} pieces={changed().get(line)} />
        </span>
      </div>
    );
  return (
    <For each={pairs(props.hunk)}>
      {(pair) => (
        <>
          <div class="diff-pair">
            {side(pair.left, pair.left?.old)}
            {side(pair.right, pair.right?.new)}
          </div>
          {pair.left && pair.left !== pair.right && props.below?.(props.name, pair.left)}
          {pair.right && props.below?.(props.name, pair.right)}
        </>
      )}
    </For>
  );
}

function LineNumber(props: { line: Line; shown: number | null; props: HunkProps }): JSX.Element {
  return (
    <Show when={props.props.onComment} fallback={<span class="n">{props.shown}</span>}>
      <button
        type="button"
        class="n"
        aria-label={t.commentOnLine(props.line.new ?? props.line.old ?? 0)}
        onClick={() => props.props.onComment?.(props.props.name, props.line)}
      >
        {props.shown ?? ""}
      </button>
    </Show>
  );
}

function sign(line: Line): string {
  return { add: "+", del: "−", same: " " }[line.kind];
}

function Text(props: { line: Line; pieces: Piece[] | undefined }): JSX.Element {
  return (
    <Show when={props.pieces} fallback={code(props.line.text)}>
      {(pieces) => (
        <For each={pieces()}>{(piece) => (piece.changed ? <mark>{code(piece.text)}</mark> : code(piece.text))}</For>
      )}
    </Show>
  );
}
