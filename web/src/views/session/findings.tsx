// The findings of a review: a list whose changes are applied or dismissed one by one.
import { createSignal, For, Show, type JSX } from "solid-js";
import { openDialog } from "../../app/dialogs";
import { go, openSession, route } from "../../app/router";
import { call, type Finding, type Review } from "../../api";
import { attempt } from "../../state/actions";
import { currentModel, currentVariant, isChosen, needsChoice } from "../../state/choice";
import { putSession, state } from "../../state/mirror";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Diff } from "../../ui/diff";
import { plain, prose } from "../../ui/text";
import { toast } from "../../ui/toast";
import { draftOf, focusPrompt } from "./draft";

/** What the user did with findings, by session and name. It ends with the page. */
const [handled, setHandled] = createSignal<Record<string, "applied" | "dismissed">>({});
const keyOf = (id: string, finding: Finding) => `${id} ${finding.file} ${finding.title}`;

/**
 * Reviews the uncommitted changes, or a range, in a new session, and opens the findings. If the user has gone elsewhere
 * meanwhile, they are offered instead.
 */
export async function startReview(directory: string, range: string): Promise<void> {
  const place = placeOf(directory);
  await Promise.all([place.providers.load(), place.config.load(), place.agents.load()]);
  if (needsChoice(place)) {
    (await import("../home/first-run")).firstRunDialog(directory);
    return;
  }
  const query = { directory };
  const request = await call("GET /experimental/review", { query: range ? { directory, range } : query, long: true });
  const session = await call("POST /session", { query, body: request.session });
  putSession(session);
  openSession(session.id);
  toast({ text: t.reviewing });
  const model = currentModel(place);
  const variant = model ? currentVariant(place, model) : undefined;
  const body = {
    ...request.prompt,
    ...(model ? { model } : {}),
    ...(variant ? { variant } : {}),
    ...(isChosen(place) ? { chosen: true } : {}),
  };
  await call("POST /session/{sessionID}/message", { path: { sessionID: session.id }, query, body, long: true });
  const review = await reviewOf(session.id);
  const at = route();
  if (at.name === "session" && at.id === session.id) {
    show(session.id, review);
    return;
  }
  const open = () => {
    openSession(session.id);
    show(session.id, review);
  };
  toast({ text: t.reviewEnded, kind: "good", action: { label: t.findings, run: open } });
}

/** Fetches the findings of a session, and opens them. */
export async function openFindings(id: string): Promise<void> {
  show(id, await reviewOf(id));
}

const reviewOf = (id: string): Promise<Review> => call("GET /session/{sessionID}/review", { path: { sessionID: id } });

function show(id: string, review: Review): void {
  for (const problem of review.problems) toast({ text: plain(problem), kind: "bad" });
  if (review.findings.length === 0) {
    toast({ text: t.noFindings, kind: "good" });
    return;
  }
  const directory = state.sessions[id]?.directory ?? state.directory;
  openDialog((dialog) => (
    <Dialog title={t.findings} onClose={dialog.close} wide>
      <Findings id={id} directory={directory} review={review} onLeave={dialog.close} />
    </Dialog>
  ));
}

function Findings(props: { id: string; directory: string; review: Review; onLeave: () => void }): JSX.Element {
  const open = () => props.review.findings.filter((finding) => handled()[keyOf(props.id, finding)] !== "dismissed");
  return (
    <>
      <Show when={props.review.summary}>
        <p>{prose(props.review.summary)}</p>
      </Show>
      <ul class="rows findings">
        <For each={open()} fallback={<li class="empty">{t.allDismissed}</li>}>
          {(finding) => <Row {...props} finding={finding} />}
        </For>
      </ul>
    </>
  );
}

function Row(props: { id: string; directory: string; finding: Finding; onLeave: () => void }): JSX.Element {
  const [isBusy, setBusy] = createSignal(false);
  const key = () => keyOf(props.id, props.finding);
  const isApplied = () => handled()[key()] === "applied";
  const place = () => `${props.finding.file}:${props.finding.line}`;
  const apply = async () => {
    setBusy(true);
    await attempt(async () => {
      // Other changes of the file may have moved the lines.
      const now = await call("GET /session/{sessionID}/review", { path: { sessionID: props.id } });
      const patch = now.findings.find((finding) => keyOf(props.id, finding) === key())?.patch;
      if (!patch) throw new Error(t.changeGone);
      await call("POST /vcs/apply", { query: { directory: props.directory }, body: { patch } });
      setHandled((all) => ({ ...all, [key()]: "applied" as const }));
      toast({ text: t.changeApplied, kind: "good" });
    });
    setBusy(false);
  };
  /** A suggestion in words becomes a prompt, which the user sends. The session of the review may not change files. */
  const ask = () => {
    const { title, description, suggestion } = props.finding;
    const more = suggestion ? `\n\nSuggestion: ${suggestion.trim()}` : "";
    draftOf("new").setText(
      `Fix this finding of a review in ${place()}: ${title.trim()}\n\n${description.trim()}${more}`,
    );
    props.onLeave();
    go({ name: "new", directory: props.directory });
    focusPrompt();
  };
  return (
    <li class="column finding" aria-label={plain(props.finding.title)}>
      <div class="row wrap">
        <span class="badge">{props.finding.severity}</span>
        <strong class="grow">{prose(props.finding.title)}</strong>
        <code class="muted clip">{plain(place())}</code>
      </div>
      <p>{prose(props.finding.description)}</p>
      <Show
        when={props.finding.patch}
        fallback={<Show when={props.finding.suggestion}>{(text) => <p class="muted">{prose(text())}</p>}</Show>}
      >
        {(patch) => <Diff patch={patch()} />}
      </Show>
      <div class="row wrap">
        <Show
          when={props.finding.patch}
          fallback={
            <Button small onClick={ask}>
              {t.giveToAgent}
            </Button>
          }
        >
          <Button small kind="primary" disabled={isBusy() || isApplied()} onClick={() => void apply()}>
            {isApplied() ? t.applied : t.applyChange}
          </Button>
        </Show>
        <Button small kind="quiet" onClick={() => setHandled((all) => ({ ...all, [key()]: "dismissed" as const }))}>
          {t.dismiss}
        </Button>
      </div>
    </li>
  );
}
