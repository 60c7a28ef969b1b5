//! What waits for the user: leave for a call, or an answer to a question.

use codewright_proto::{
    PermissionAnswer, PermissionId, PermissionReply, PermissionRequest, QuestionId, QuestionRequest,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::editor::Editor;
use crate::msg::Cmd;
use crate::state::State;

/// How long the user has to pause before keys are heeded in a question that came up while writing, in
/// milliseconds.
const STARTLED_MILLIS: u64 = 700;

/// How far the user is with what is asked.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) leave: Option<Leave>,
    pub(crate) question: Option<Answering>,
}

/// How far the user is with a question for leave.
#[derive(Debug)]
pub(crate) struct Leave {
    pub(crate) id: PermissionId,
    pub(crate) stage: Stage,
    pub(crate) selected: usize,
    /// Whether all of it is shown.
    pub(crate) full: bool,
    pub(crate) scroll: usize,
    startled: Startled,
}

/// Until when keys may have been meant for the prompt.
#[derive(Debug, Clone, Copy)]
struct Startled(u64);

impl Startled {
    fn new(state: &State) -> Self {
        // Whoever was writing may be about to press enter, and must not answer by it what was not read.
        Self(if state.prompt.is_empty() { 0 } else { state.now + STARTLED_MILLIS })
    }

    /// Whether a key was meant for the prompt. Whoever writes on has not seen the question yet.
    fn swallows(&mut self, key: KeyEvent, now: u64) -> bool {
        let writes = key.code == KeyCode::Enter || crate::update::is_text(key).is_some();
        // A clock that was set back must not keep the user out.
        let left = self.0.saturating_sub(now);
        let swallows = writes && (1..=STARTLED_MILLIS).contains(&left);
        if swallows {
            self.0 = now + STARTLED_MILLIS;
        }
        swallows
    }
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// Once, always or not.
    Choose,
    /// Always: what that will mean is shown.
    Always,
    /// Not, and what the model is told.
    Reject(Editor),
}

/// How far the user is with questions.
#[derive(Debug)]
pub(crate) struct Answering {
    pub(crate) id: QuestionId,
    /// The question, or behind the last the review of all answers.
    pub(crate) tab: usize,
    pub(crate) selected: usize,
    pub(crate) answers: Vec<Vec<String>>,
    /// What is being written as an own answer.
    pub(crate) own: Option<Editor>,
    startled: Startled,
}

/// What is asked first in the session on the screen, or in those that it began.
pub(crate) fn permission(state: &State) -> Option<&PermissionRequest> {
    let root = state.session_id()?;
    state.mirror.permissions.iter().find(|request| state.mirror.is_below(&request.session_id, root))
}

/// The same for questions.
pub(crate) fn question(state: &State) -> Option<&QuestionRequest> {
    let root = state.session_id()?;
    let mut questions = state.mirror.questions.iter();
    questions.find(|request| {
        state.mirror.is_below(&request.session_id, root) && !crate::trust::replaces(state, request)
    })
}

/// Begins anew when something else is asked.
pub(crate) fn refresh(state: &mut State) {
    crate::layer::review::refresh(state);
    let wanted = permission(state).map(|request| request.id.clone());
    let known = state.asked.leave.as_ref().map(|leave| leave.id.clone());
    if wanted != known {
        let startled = Startled::new(state);
        let new = |id| Leave { id, stage: Stage::Choose, selected: 0, full: false, scroll: 0, startled };
        state.asked.leave = wanted.map(new);
    }
    let wanted = question(state).map(|request| (request.id.clone(), request.questions.len()));
    let known = state.asked.question.as_ref().map(|question| question.id.clone());
    if wanted.as_ref().map(|(id, _)| id) != known.as_ref() {
        let startled = Startled::new(state);
        state.asked.question = wanted.map(|(id, count)| Answering {
            id,
            tab: 0,
            selected: 0,
            answers: vec![Vec::new(); count],
            own: None,
            startled,
        });
    }
}

/// A key while leave is asked for; false if it means something else.
pub(crate) fn leave_key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    let now = state.now;
    let request = permission(state)?;
    let has_always = !request.always.is_empty();
    let has_diff =
        request.metadata.get("diff").and_then(serde_json::Value::as_str).is_some_and(|diff| !diff.is_empty());
    let leave = state.asked.leave.as_mut()?;
    if leave.startled.swallows(key, now) {
        return Some(Vec::new());
    }
    let id = leave.id.clone();
    let answer = |reply, message: Option<String>| {
        Some(vec![Cmd::Permission { id: id.clone(), answer: PermissionAnswer { reply, message } }])
    };
    if let Stage::Reject(editor) = &mut leave.stage {
        match key.code {
            KeyCode::Enter => {
                let text = editor.text().trim().to_owned();
                return answer(PermissionReply::Reject, Some(text).filter(|text| !text.is_empty()));
            }
            KeyCode::Esc => leave.stage = Stage::Choose,
            _ => type_into(editor, key),
        }
        return Some(Vec::new());
    }
    let count = if matches!(leave.stage, Stage::Always) { 2 } else { 3 };
    match key.code {
        KeyCode::Left | KeyCode::BackTab | KeyCode::Char('h') => {
            leave.selected = (leave.selected + count - 1) % count;
        }
        KeyCode::Right | KeyCode::Tab | KeyCode::Char('l') => leave.selected = (leave.selected + 1) % count,
        KeyCode::Char('f') if key.modifiers.contains(KeyModifiers::CONTROL) && has_diff => {
            crate::layer::review::open_asked(state);
        }
        KeyCode::Char('f') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            leave.full = !leave.full;
            leave.scroll = 0;
        }
        KeyCode::PageDown if leave.full => leave.scroll += 10,
        KeyCode::PageUp if leave.full => leave.scroll = leave.scroll.saturating_sub(10),
        KeyCode::Down if leave.full => leave.scroll += 1,
        KeyCode::Up if leave.full => leave.scroll = leave.scroll.saturating_sub(1),
        KeyCode::Esc if matches!(leave.stage, Stage::Always) => {
            (leave.stage, leave.selected) = (Stage::Choose, 0);
        }
        KeyCode::Esc => return answer(PermissionReply::Reject, None),
        KeyCode::Enter => match (&leave.stage, leave.selected) {
            (Stage::Always, 0) => return answer(PermissionReply::Always, None),
            (Stage::Always, _) => (leave.stage, leave.selected) = (Stage::Choose, 0),
            (Stage::Choose | Stage::Reject(_), 0) => return answer(PermissionReply::Once, None),
            (Stage::Choose | Stage::Reject(_), 1) if has_always => {
                (leave.stage, leave.selected) = (Stage::Always, 0);
            }
            (Stage::Choose | Stage::Reject(_), 1) => return answer(PermissionReply::Always, None),
            (Stage::Choose | Stage::Reject(_), _) => leave.stage = Stage::Reject(Editor::default()),
        },
        _ => return None,
    }
    Some(Vec::new())
}

/// A key while questions are asked; none if it means something else.
pub(crate) fn question_key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    let request = question(state)?.clone();
    let answering = state.asked.question.as_mut()?;
    if answering.startled.swallows(key, state.now) {
        return Some(Vec::new());
    }
    let id = answering.id.clone();
    let Some(asked) = request.questions.get(answering.tab) else {
        match key.code {
            KeyCode::Enter => return Some(vec![Cmd::Question { id, answers: answering.answers.clone() }]),
            KeyCode::Esc => return Some(vec![Cmd::RejectQuestion(id)]),
            KeyCode::Left | KeyCode::BackTab => answering.tab = answering.tab.saturating_sub(1),
            KeyCode::Right | KeyCode::Tab => answering.tab = 0,
            _ => return None,
        }
        return Some(Vec::new());
    };
    let multiple = asked.multiple.unwrap_or(false);
    let single = request.questions.len() == 1 && !multiple;
    if let Some(editor) = &mut answering.own {
        match key.code {
            KeyCode::Enter => {
                let text = editor.text().trim().to_owned();
                answering.own = None;
                if !text.is_empty() {
                    let known: Vec<&str> = asked.options.iter().map(|option| option.label.as_str()).collect();
                    let answers = &mut answering.answers[answering.tab];
                    if multiple {
                        answers.retain(|answer| known.contains(&answer.as_str()));
                    } else {
                        answers.clear();
                    }
                    answers.push(text);
                    return Some(forward(answering, single, multiple, id));
                }
            }
            KeyCode::Esc => answering.own = None,
            _ => type_into(editor, key),
        }
        return Some(Vec::new());
    }
    let custom = asked.custom.unwrap_or(true);
    let count = asked.options.len() + usize::from(custom);
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => {
            answering.selected = (answering.selected + count.max(1) - 1) % count.max(1);
        }
        KeyCode::Down | KeyCode::Char('j') => answering.selected = (answering.selected + 1) % count.max(1),
        KeyCode::Left | KeyCode::BackTab => turn(answering, answering.tab.saturating_sub(1)),
        KeyCode::Right | KeyCode::Tab if !single => {
            let next = (answering.tab + 1) % (request.questions.len() + 1);
            turn(answering, next);
        }
        KeyCode::Char(digit @ '1'..='9') => {
            let at = digit as usize - '1' as usize;
            if at < count {
                answering.selected = at;
                return Some(choose(answering, asked, single, id));
            }
        }
        KeyCode::Enter | KeyCode::Char(' ') => return Some(choose(answering, asked, single, id)),
        KeyCode::Esc => return Some(vec![Cmd::RejectQuestion(id)]),
        _ => return None,
    }
    Some(Vec::new())
}

fn turn(answering: &mut Answering, tab: usize) {
    (answering.tab, answering.selected) = (tab, 0);
}

/// Takes the selected answer, or opens a line for an own one.
fn choose(
    answering: &mut Answering,
    asked: &codewright_proto::Question,
    single: bool,
    id: QuestionId,
) -> Vec<Cmd> {
    let multiple = asked.multiple.unwrap_or(false);
    let Some(option) = asked.options.get(answering.selected) else {
        answering.own = Some(Editor::default());
        return Vec::new();
    };
    let answers = &mut answering.answers[answering.tab];
    if multiple {
        match answers.iter().position(|answer| *answer == option.label) {
            Some(at) => drop(answers.remove(at)),
            None => answers.push(option.label.clone()),
        }
        return Vec::new();
    }
    *answers = vec![option.label.clone()];
    forward(answering, single, multiple, id)
}

/// To the next question; a single one needs no review.
fn forward(answering: &mut Answering, single: bool, multiple: bool, id: QuestionId) -> Vec<Cmd> {
    if single {
        return vec![Cmd::Question { id, answers: answering.answers.clone() }];
    }
    if !multiple {
        let next = answering.tab + 1;
        turn(answering, next);
    }
    Vec::new()
}

/// The few keys of a line being written.
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
        KeyCode::Delete => editor.delete_behind(),
        KeyCode::Left => editor.left(),
        KeyCode::Right => editor.right(),
        KeyCode::Home => editor.line_home(),
        KeyCode::End => editor.line_tail(),
        _ => {}
    }
}
