//! Requests that wait for the user: permission requests and questions.

use codewright_proto::{
    PermissionAnswer, PermissionId, PermissionReply, PermissionRequest, QuestionId, QuestionRequest,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::editor::Editor;
use crate::msg::Cmd;
use crate::state::State;

/// How long the user must pause before a dialog that appeared during typing accepts keys, in milliseconds.
const GUARD_MILLIS: u64 = 700;

/// The dialogs of the pending requests.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) permission: Option<PermissionDialog>,
    pub(crate) question: Option<QuestionDialog>,
}

/// The state of the dialog for a permission request.
#[derive(Debug)]
pub(crate) struct PermissionDialog {
    pub(crate) id: PermissionId,
    pub(crate) stage: Stage,
    pub(crate) selected: usize,
    /// Whether the dialog uses the full height.
    pub(crate) full: bool,
    pub(crate) scroll: usize,
    guard: KeyGuard,
}

/// The time until which keys may be meant for the prompt.
#[derive(Debug, Clone, Copy)]
struct KeyGuard(u64);

impl KeyGuard {
    fn new(state: &State) -> Self {
        // A user who is typing may be about to press enter or a letter, which must not answer an unread request.
        let typed = state.typed_at.is_some_and(|at| state.now.saturating_sub(at) < GUARD_MILLIS);
        Self(if state.prompt.is_empty() && !typed { 0 } else { state.now + GUARD_MILLIS })
    }

    /// Whether a key was meant for the prompt. Each such key prolongs the time.
    fn swallows(&mut self, key: KeyEvent, now: u64) -> bool {
        let writes = key.code == KeyCode::Enter || crate::update::is_text(key).is_some();
        // If the clock was set back, the dialog must still accept keys.
        let left = self.0.saturating_sub(now);
        let swallows = writes && (1..=GUARD_MILLIS).contains(&left);
        if swallows {
            self.0 = now + GUARD_MILLIS;
        }
        swallows
    }
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// The user chooses between once, always and reject.
    Choose,
    /// The user confirms "always" after reading its effect, with the number of the chosen wider pattern: 0 allows only the
    /// patterns of the request.
    Always(usize),
    /// The user writes a message for the model.
    Reject(Editor),
}

/// The state of the dialog for questions.
#[derive(Debug)]
pub(crate) struct QuestionDialog {
    pub(crate) id: QuestionId,
    /// The index of the question, or the number of questions for the review of all answers.
    pub(crate) tab: usize,
    pub(crate) selected: usize,
    pub(crate) answers: Vec<Vec<String>>,
    /// The editor for a custom answer.
    pub(crate) custom: Option<Editor>,
    guard: KeyGuard,
}

/// Returns the first permission request of the session on the screen or of its subagents.
pub(crate) fn permission(state: &State) -> Option<&PermissionRequest> {
    let root = state.session_id()?;
    state.mirror.permissions.iter().find(|request| state.mirror.is_below(&request.session_id, root))
}

/// Returns the first question of the session on the screen or of its subagents.
pub(crate) fn question(state: &State) -> Option<&QuestionRequest> {
    let root = state.session_id()?;
    let mut questions = state.mirror.questions.iter();
    questions.find(|request| {
        state.mirror.is_below(&request.session_id, root) && !crate::trust::replaces(state, request)
    })
}

/// Opens or closes the dialogs when the pending requests change.
pub(crate) fn refresh(state: &mut State) {
    crate::layer::review::refresh(state);
    let pending = permission(state).map(|request| request.id.clone());
    let known = state.requests.permission.as_ref().map(|dialog| dialog.id.clone());
    if pending != known {
        let guard = KeyGuard::new(state);
        let new =
            |id| PermissionDialog { id, stage: Stage::Choose, selected: 0, full: false, scroll: 0, guard };
        state.requests.permission = pending.map(new);
    }
    let pending = question(state).map(|request| (request.id.clone(), request.questions.len()));
    let known = state.requests.question.as_ref().map(|question| question.id.clone());
    if pending.as_ref().map(|(id, _)| id) != known.as_ref() {
        let guard = KeyGuard::new(state);
        state.requests.question = pending.map(|(id, count)| QuestionDialog {
            id,
            tab: 0,
            selected: 0,
            answers: vec![Vec::new(); count],
            custom: None,
            guard,
        });
    }
}

/// The answer that a letter or a digit gives.
#[derive(Debug, Clone, Copy)]
enum Letter {
    Yes,
    Always,
    No,
}

impl Letter {
    fn of(key: KeyEvent) -> Option<Self> {
        match key.code {
            _ if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => None,
            KeyCode::Char('y' | 'Y' | '1') => Some(Self::Yes),
            KeyCode::Char('a' | 'A' | '2') => Some(Self::Always),
            KeyCode::Char('n' | 'N' | '3') => Some(Self::No),
            _ => None,
        }
    }
}

/// Returns the reply of a letter. `None` if the dialog shows something else first.
fn letter_reply(
    dialog: &mut PermissionDialog,
    letter: Letter,
    patterns: &[String],
) -> Option<PermissionReply> {
    match (&dialog.stage, letter) {
        (Stage::Always(_), Letter::Yes | Letter::Always) => Some(PermissionReply::Always),
        (Stage::Always(_), Letter::No) => {
            (dialog.stage, dialog.selected) = (Stage::Choose, 0);
            None
        }
        (Stage::Choose | Stage::Reject(_), Letter::Yes) => Some(PermissionReply::Once),
        (Stage::Choose | Stage::Reject(_), Letter::Always) if !patterns.is_empty() => {
            (dialog.stage, dialog.selected) = (Stage::Always(0), 0);
            None
        }
        (Stage::Choose | Stage::Reject(_), Letter::Always) => Some(PermissionReply::Always),
        (Stage::Choose | Stage::Reject(_), Letter::No) => Some(PermissionReply::Reject),
    }
}

/// Returns the wider patterns that a reply of "always" can choose, the narrowest first.
pub(crate) fn wider(request: &PermissionRequest) -> Vec<String> {
    let wider = request.metadata.get("asked").and_then(|asked| asked["wider"].as_array());
    wider.into_iter().flatten().filter_map(|pattern| pattern.as_str()).map(str::to_owned).collect()
}

/// Handles a key in the permission dialog. Returns `None` if the dialog does not use the key.
pub(crate) fn permission_key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    let now = state.now;
    let request = permission(state)?;
    let always = request.always.clone();
    let has_always = !always.is_empty();
    let wider = wider(request);
    let has_diff =
        request.metadata.get("diff").and_then(serde_json::Value::as_str).is_some_and(|diff| !diff.is_empty());
    let dialog = state.requests.permission.as_mut()?;
    if dialog.guard.swallows(key, now) {
        return Some(Vec::new());
    }
    let id = dialog.id.clone();
    let chosen = match dialog.stage {
        Stage::Always(number @ 1..) => wider.get(number - 1).cloned(),
        Stage::Always(0) | Stage::Choose | Stage::Reject(_) => None,
    };
    let answer = |reply: PermissionReply, message: Option<String>| {
        let wider = chosen.clone().filter(|_| reply == PermissionReply::Always).into_iter().collect();
        let answer = PermissionAnswer { message, wider, ..reply.into() };
        Some(vec![Cmd::Permission { id: id.clone(), answer }])
    };
    if let Stage::Reject(editor) = &mut dialog.stage {
        match key.code {
            KeyCode::Enter => {
                let text = editor.text().trim().to_owned();
                return answer(PermissionReply::Reject, Some(text).filter(|text| !text.is_empty()));
            }
            KeyCode::Esc => dialog.stage = Stage::Choose,
            _ => type_into(editor, key),
        }
        return Some(Vec::new());
    }
    let count = if matches!(dialog.stage, Stage::Always(_)) { 2 } else { 3 };
    if let Some(letter) = Letter::of(key) {
        return match letter_reply(dialog, letter, &always) {
            Some(reply) => answer(reply, None),
            None => Some(Vec::new()),
        };
    }
    match key.code {
        KeyCode::Left | KeyCode::BackTab | KeyCode::Char('h') => {
            dialog.selected = (dialog.selected + count - 1) % count;
        }
        KeyCode::Right | KeyCode::Tab | KeyCode::Char('l') => dialog.selected = (dialog.selected + 1) % count,
        KeyCode::Char('f') if key.modifiers.contains(KeyModifiers::CONTROL) && has_diff => {
            crate::layer::review::open_request(state);
        }
        KeyCode::Char('f') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            dialog.full = !dialog.full;
            dialog.scroll = 0;
        }
        KeyCode::PageDown if dialog.full => dialog.scroll += 10,
        KeyCode::PageUp if dialog.full => dialog.scroll = dialog.scroll.saturating_sub(10),
        KeyCode::Down | KeyCode::Up if !wider.is_empty() && matches!(dialog.stage, Stage::Always(_)) => {
            if let Stage::Always(number) = &mut dialog.stage {
                let step = if key.code == KeyCode::Down { 1 } else { wider.len() };
                *number = (*number + step) % (wider.len() + 1);
            }
        }
        KeyCode::Down if dialog.full => dialog.scroll += 1,
        KeyCode::Up if dialog.full => dialog.scroll = dialog.scroll.saturating_sub(1),
        KeyCode::Esc if matches!(dialog.stage, Stage::Always(_)) => {
            (dialog.stage, dialog.selected) = (Stage::Choose, 0);
        }
        KeyCode::Esc => return answer(PermissionReply::Reject, None),
        KeyCode::Enter => match (&dialog.stage, dialog.selected) {
            (Stage::Always(_), 0) => return answer(PermissionReply::Always, None),
            (Stage::Always(_), _) => (dialog.stage, dialog.selected) = (Stage::Choose, 0),
            (Stage::Choose | Stage::Reject(_), 0) => return answer(PermissionReply::Once, None),
            (Stage::Choose | Stage::Reject(_), 1) if has_always => {
                (dialog.stage, dialog.selected) = (Stage::Always(0), 0);
            }
            (Stage::Choose | Stage::Reject(_), 1) => return answer(PermissionReply::Always, None),
            (Stage::Choose | Stage::Reject(_), _) => dialog.stage = Stage::Reject(Editor::default()),
        },
        _ => return None,
    }
    Some(Vec::new())
}

/// Handles a key in the question dialog. Returns `None` if the dialog does not use the key.
pub(crate) fn question_key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    let request = question(state)?.clone();
    let dialog = state.requests.question.as_mut()?;
    if dialog.guard.swallows(key, state.now) {
        return Some(Vec::new());
    }
    let id = dialog.id.clone();
    let Some(question) = request.questions.get(dialog.tab) else {
        match key.code {
            KeyCode::Enter => return Some(vec![Cmd::Question { id, answers: dialog.answers.clone() }]),
            KeyCode::Esc => return Some(vec![Cmd::RejectQuestion(id)]),
            KeyCode::Left | KeyCode::BackTab => dialog.tab = dialog.tab.saturating_sub(1),
            KeyCode::Right | KeyCode::Tab => dialog.tab = 0,
            _ => return None,
        }
        return Some(Vec::new());
    };
    let multiple = question.multiple.unwrap_or(false);
    let single = request.questions.len() == 1 && !multiple;
    if let Some(editor) = &mut dialog.custom {
        match key.code {
            KeyCode::Enter => {
                let text = editor.text().trim().to_owned();
                dialog.custom = None;
                if !text.is_empty() {
                    let known: Vec<&str> =
                        question.options.iter().map(|option| option.label.as_str()).collect();
                    let answers = &mut dialog.answers[dialog.tab];
                    if multiple {
                        answers.retain(|answer| known.contains(&answer.as_str()));
                    } else {
                        answers.clear();
                    }
                    answers.push(text);
                    return Some(forward(dialog, single, multiple, id));
                }
            }
            KeyCode::Esc => dialog.custom = None,
            _ => type_into(editor, key),
        }
        return Some(Vec::new());
    }
    let custom = question.custom.unwrap_or(true);
    let count = question.options.len() + usize::from(custom);
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => {
            dialog.selected = (dialog.selected + count.max(1) - 1) % count.max(1);
        }
        KeyCode::Down | KeyCode::Char('j') => dialog.selected = (dialog.selected + 1) % count.max(1),
        KeyCode::Left | KeyCode::BackTab => turn(dialog, dialog.tab.saturating_sub(1)),
        KeyCode::Right | KeyCode::Tab if !single => {
            let next = (dialog.tab + 1) % (request.questions.len() + 1);
            turn(dialog, next);
        }
        KeyCode::Char(digit @ '1'..='9') => {
            let at = digit as usize - '1' as usize;
            if at < count {
                dialog.selected = at;
                return Some(choose(dialog, question, single, id));
            }
        }
        KeyCode::Enter | KeyCode::Char(' ') => return Some(choose(dialog, question, single, id)),
        KeyCode::Esc => return Some(vec![Cmd::RejectQuestion(id)]),
        _ => return None,
    }
    Some(Vec::new())
}

fn turn(dialog: &mut QuestionDialog, tab: usize) {
    (dialog.tab, dialog.selected) = (tab, 0);
}

/// Chooses the selected answer, or opens the editor for a custom answer.
fn choose(
    dialog: &mut QuestionDialog,
    question: &codewright_proto::Question,
    single: bool,
    id: QuestionId,
) -> Vec<Cmd> {
    let multiple = question.multiple.unwrap_or(false);
    let Some(option) = question.options.get(dialog.selected) else {
        dialog.custom = Some(Editor::default());
        return Vec::new();
    };
    let answers = &mut dialog.answers[dialog.tab];
    if multiple {
        match answers.iter().position(|answer| *answer == option.label) {
            Some(at) => drop(answers.remove(at)),
            None => answers.push(option.label.clone()),
        }
        return Vec::new();
    }
    *answers = vec![option.label.clone()];
    forward(dialog, single, multiple, id)
}

/// Selects the next question. A single question is answered without a review.
fn forward(dialog: &mut QuestionDialog, single: bool, multiple: bool, id: QuestionId) -> Vec<Cmd> {
    if single {
        return vec![Cmd::Question { id, answers: dialog.answers.clone() }];
    }
    if !multiple {
        let next = dialog.tab + 1;
        turn(dialog, next);
    }
    Vec::new()
}

/// Handles a key in a one-line editor.
pub(crate) fn type_into(editor: &mut Editor, key: KeyEvent) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('u') if control => editor.delete_to_start(),
        KeyCode::Char('w') if control => editor.delete_word_before(),
        KeyCode::Char('a') if control => editor.line_home(),
        KeyCode::Char('e') if control => editor.line_tail(),
        KeyCode::Char('k') if control => editor.delete_to_end(),
        KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
            editor.insert(c.encode_utf8(&mut [0; 4]));
        }
        KeyCode::Backspace => editor.delete_before(),
        KeyCode::Delete => editor.delete_after(),
        KeyCode::Left => editor.left(),
        KeyCode::Right => editor.right(),
        KeyCode::Home => editor.line_home(),
        KeyCode::End => editor.line_tail(),
        _ => {}
    }
}
