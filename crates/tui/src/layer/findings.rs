//! The findings of a review: a list whose entries are applied or dismissed one by one.

use std::collections::{BTreeMap, BTreeSet};

use codewright_proto::{Finding, Review, SessionId, ToastVariant};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::page::{Page, Topic};
use super::{Item, Kind, Layer, List, Pick};
use crate::msg::Cmd;
use crate::state::{Route, State};

/// The findings of a session, and what the user did with them.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) session: SessionId,
    pub(crate) review: Review,
    pub(crate) applied: BTreeSet<String>,
}

/// The findings that the user dismissed, by session. The client's files keep them.
pub(crate) type Dismissed = BTreeMap<String, BTreeSet<String>>;

/// Returns the name of a finding that stays when its line changes.
pub(crate) fn key_of(finding: &Finding) -> String {
    format!("{} {}", finding.file, finding.title)
}

impl Findings {
    /// Returns the findings that are not dismissed, with their indexes.
    pub(crate) fn open(&self, dismissed: &Dismissed) -> impl Iterator<Item = (usize, &Finding)> {
        let dismissed = dismissed.get(self.session.as_str());
        let all = self.review.findings.iter().enumerate();
        all.filter(move |(_, finding)| dismissed.is_none_or(|keys| !keys.contains(&key_of(finding))))
    }
}

/// Starts a review of the uncommitted changes, or of a range.
pub(crate) fn begin(state: &mut State, range: Option<String>) -> Vec<Cmd> {
    let Some(model) = state.model() else {
        state.warn("no model is available yet: /connect stores the key of a provider");
        return Vec::new();
    };
    state.notify("reviewing the changes…", ToastVariant::Info);
    vec![Cmd::BeginReview { range, model, variant: state.variant() }]
}

/// Fetches the findings of the session on the screen, and opens them.
pub(crate) fn fetch(state: &mut State) -> Vec<Cmd> {
    state.session_id().cloned().map(Cmd::LoadFindings).into_iter().collect()
}

/// Stores fetched findings, and opens them if their session is on the screen.
pub(crate) fn show(state: &mut State, session: SessionId, review: Review) {
    let is_shown = state.session_id() == Some(&session);
    for problem in &review.problems {
        state.warn(problem.clone());
    }
    let known = state.findings.take().filter(|known| known.session == session);
    let applied = known.map(|known| known.applied).unwrap_or_default();
    let findings = Findings { session, review, applied };
    let count = findings.open(&state.dismissed).count();
    let is_empty = findings.review.findings.is_empty();
    state.findings = Some(findings);
    if is_empty {
        state.notify("the review has no findings", ToastVariant::Success);
    } else if count == 0 {
        state.notify("every finding of the review is dismissed", ToastVariant::Info);
    } else if is_shown {
        open(state, None);
    } else {
        state
            .notify(format!("the review has {count} findings: /findings in its session"), ToastVariant::Info);
    }
}

/// Opens the list.
fn open(state: &mut State, selected: Option<usize>) {
    let mut list = List::new(Kind::Findings, "Findings of the review", items(state));
    let place = list.items.iter().position(|item| Some(&item.pick) == selected.map(Pick::Finding).as_ref());
    list.selected = place.unwrap_or(0);
    state.layers.push(Layer::List(list.hint("details enter   apply ctrl+a   dismiss ctrl+d")));
}

fn items(state: &State) -> Vec<Item> {
    let Some(findings) = &state.findings else { return Vec::new() };
    let item = |(at, finding): (usize, &Finding)| {
        let note = match (findings.applied.contains(&key_of(finding)), &finding.patch) {
            (true, _) => "applied",
            (false, Some(_)) => "has a change",
            (false, None) => "",
        };
        Item::new(&finding.title, Pick::Finding(at))
            .group(finding.severity.name())
            .detail(format!("{}:{}", finding.file, finding.line))
            .note(note)
    };
    findings.open(&state.dismissed).map(item).collect()
}

/// Opens the details of a finding over the list.
pub(super) fn pick(state: &mut State, at: usize) {
    open(state, Some(at));
    state.layers.push(Layer::Page(Page::new(Topic::Finding(at))));
}

/// Handles a key of the list.
pub(super) fn key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    if !key.modifiers.contains(KeyModifiers::CONTROL) {
        return None;
    }
    let Some(Layer::List(list)) = state.layers.last() else { return None };
    let Pick::Finding(at) = list.selected_item()?.pick else { return None };
    match key.code {
        KeyCode::Char('a') => Some(apply(state, at)),
        KeyCode::Char('d') => Some(dismiss(state, at)),
        _ => None,
    }
}

/// Handles a key of the details.
pub(super) fn page_key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    let Some(Layer::Page(Page { topic: Topic::Finding(at), .. })) = state.layers.last() else { return None };
    let at = *at;
    match key.code {
        KeyCode::Char('a') => {
            state.layers.pop();
            Some(apply(state, at))
        }
        KeyCode::Char('d') => {
            state.layers.pop();
            Some(dismiss(state, at))
        }
        _ => None,
    }
}

/// Applies the suggested change. A suggestion in words becomes a prompt, which the user sends.
fn apply(state: &mut State, at: usize) -> Vec<Cmd> {
    let Some(findings) = &state.findings else { return Vec::new() };
    let Some(finding) = findings.review.findings.get(at) else { return Vec::new() };
    if findings.applied.contains(&key_of(finding)) {
        state.warn("this finding is applied already");
        return Vec::new();
    }
    if finding.patch.is_some() {
        return vec![Cmd::ApplyFinding { session: findings.session.clone(), key: key_of(finding) }];
    }
    let suggestion = finding.suggestion.as_deref().map(|text| format!("\n\nSuggestion: {}", text.trim()));
    let text = format!(
        "Fix this finding of a review in {}:{}: {}\n\n{}{}",
        finding.file,
        finding.line,
        finding.title.trim(),
        finding.description.trim(),
        suggestion.unwrap_or_default()
    );
    // The session of the review may not change files.
    state.layers.clear();
    state.route = Route::Home;
    state.prompt.clear();
    state.prompt.editor.set(crate::clean::clean(&text));
    state.notify("this finding has no change to apply: enter gives it to the agent", ToastVariant::Info);
    Vec::new()
}

fn dismiss(state: &mut State, at: usize) -> Vec<Cmd> {
    let Some(findings) = &state.findings else { return Vec::new() };
    let Some(key) = findings.review.findings.get(at).map(key_of) else { return Vec::new() };
    let session = findings.session.clone();
    state.dismissed.entry(session.as_str().to_owned()).or_default().insert(key.clone());
    refill(state);
    vec![Cmd::KeepDismissed { session, key }]
}

/// Notes the result of a change.
pub(crate) fn applied(state: &mut State, key: String, result: Result<(), String>) {
    match result {
        Ok(()) => {
            state.notify("the change is applied: /diff shows it", ToastVariant::Success);
            if let Some(findings) = &mut state.findings {
                findings.applied.insert(key);
            }
            refill(state);
        }
        Err(error) => state.fail(format!(
            "the change does not apply, because the file has changed since the review, or cannot be written: {error}"
        )),
    }
}

/// Updates the open list, and closes it if it is empty.
fn refill(state: &mut State) {
    let items = items(state);
    let is_empty = items.is_empty();
    if let Some(Layer::List(list)) = state.layers.last_mut()
        && list.kind == Kind::Findings
    {
        let selected = list.selected;
        list.fill(items);
        list.selected = selected.min(list.found.len().saturating_sub(1));
        if is_empty {
            state.layers.pop();
        }
    }
}
