//! Computes the point to which a session is reverted, and the steps after it. The functions are pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use codewright_proto::{Message, MessageId, MessageWithParts, Part, PartBody, PartId, Revert};
use codewright_snapshot::{StepChange, TreeId};

/// The first message, or the first part of a message, that is reverted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) message: MessageId,
    pub(super) part: Option<PartId>,
}

impl Point {
    /// Returns the point to which a session is reverted.
    pub(super) fn of(revert: &Revert) -> Self {
        Self { message: revert.message_id.clone(), part: revert.part_id.clone() }
    }
}

/// Returns the point of a message or part; `None` if it is missing.
///
/// A prompt is reverted with all its answers. Unless a part leaves visible content in an answer, the whole turn is
/// reverted from its prompt on.
pub(super) fn point(
    transcript: &[MessageWithParts],
    message: &MessageId,
    part: Option<&PartId>,
) -> Option<Point> {
    let mut prompt = None;
    for found in transcript {
        if matches!(found.info, Message::User(_)) {
            prompt = Some(found.info.id());
        }
        let id = found.info.id();
        let whole = || Point { message: prompt.unwrap_or(id).clone(), part: None };
        match part {
            None if id == message => return Some(whole()),
            None => {}
            Some(part) => {
                let Some(at) = found.parts.iter().position(|known| known.id == *part) else { continue };
                let shows = |part: &Part| matches!(part.body, PartBody::Text(_) | PartBody::Tool(_));
                if found.parts[..at].iter().any(shows) {
                    return Some(Point { message: id.clone(), part: Some(part.clone()) });
                }
                return Some(whole());
            }
        }
    }
    None
}

/// Returns the number of messages before a point, and the number of remaining parts if the point is inside a message.
pub(super) fn counting(transcript: &[MessageWithParts], point: &Point) -> (usize, Option<usize>) {
    let found = transcript.iter().position(|message| *message.info.id() == point.message);
    // The message may have been removed in the meantime; the later messages are reverted too.
    let Some(at) = found else {
        let behind = transcript.iter().position(|message| *message.info.id() >= point.message);
        return (behind.unwrap_or(transcript.len()), None);
    };
    let cut = point.part.as_ref().and_then(|id| transcript[at].parts.iter().position(|part| part.id == *id));
    (at, cut)
}

/// Returns the number of steps with file changes before a point.
pub(super) fn steps_before(transcript: &[MessageWithParts], point: &Point) -> usize {
    let (whole, cut) = counting(transcript, point);
    let patches =
        |parts: &[Part]| parts.iter().filter(|part| matches!(part.body, PartBody::Patch { .. })).count();
    let mut steps: usize = transcript[..whole].iter().map(|message| patches(&message.parts)).sum();
    if let Some(cut) = cut {
        steps += patches(&transcript[whole].parts[..cut]);
    }
    steps
}

/// A recorded step that changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recorded {
    /// The trees before and after the step, if both are known.
    pub(super) trees: Option<(TreeId, TreeId)>,
    /// The changed files, relative to the worktree.
    pub(super) files: BTreeSet<PathBuf>,
    /// Changed files outside the worktree. They are never reverted.
    pub(super) foreign: BTreeSet<PathBuf>,
}

/// Returns the steps that changed files, oldest first.
pub(super) fn recorded(transcript: &[MessageWithParts], root: &Path) -> Vec<Recorded> {
    let mut steps = Vec::new();
    for message in transcript {
        // Other programs may have recorded the whole tree only after the step.
        let mut whole = None;
        for part in &message.parts {
            match &part.body {
                PartBody::StepFinish(finish) => whole = finish.snapshot.as_deref(),
                PartBody::Patch { hash, files, after } => {
                    let after = after.as_deref().or(whole).and_then(TreeId::parse);
                    let (files, foreign) =
                        files.iter().partition::<Vec<_>, _>(|file| inner(root, file).is_some());
                    steps.push(Recorded {
                        trees: TreeId::parse(hash).zip(after),
                        files: files.into_iter().filter_map(|file| inner(root, file)).collect(),
                        foreign: foreign.into_iter().map(PathBuf::from).collect(),
                    });
                }
                _ => {}
            }
        }
    }
    steps
}

/// Returns the path relative to the root if it has only plain components.
fn inner(root: &Path, file: &str) -> Option<PathBuf> {
    let path = Path::new(file);
    let inner = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    let is_plain = inner.components().all(|name| matches!(name, Component::Normal(_)));
    (is_plain && !inner.as_os_str().is_empty()).then(|| inner.to_owned())
}

/// Splits steps into changes that can be reverted and files that cannot. Steps without such changes stay empty.
///
/// `is_kept` reports whether the contents of a step are stored. If one step's contents of a file are missing, the file
/// is not reverted in any step, because the other contents do not match its history.
pub(super) fn travelled(
    steps: &[Recorded],
    range: std::ops::Range<usize>,
    is_kept: impl Fn(usize) -> bool,
) -> (Vec<StepChange>, BTreeMap<PathBuf, Why>) {
    let mut left = BTreeMap::new();
    for at in range {
        let step = &steps[at];
        left.extend(step.foreign.iter().map(|file| (file.clone(), Why::Outside)));
        if !is_kept(at) {
            left.extend(step.files.iter().map(|file| (file.clone(), Why::Unknown)));
        }
    }
    let changes = steps.iter().map(|step| {
        // A step without trees has no files in the list, so its trees are never read.
        let nothing = TreeId::parse(&"0".repeat(40)).expect("forty digits name a tree");
        let (before, after) = step.trees.unwrap_or((nothing, nothing));
        let files = match step.trees {
            Some(_) => step.files.iter().filter(|file| !left.contains_key(*file)).cloned().collect(),
            None => Vec::new(),
        };
        StepChange { before, after, files, left_out: Vec::new() }
    });
    (changes.collect(), left)
}

/// The reason why a file is not reverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Outside,
    Unknown,
}

impl Why {
    /// Returns the reason as text for users.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Outside => "it lies outside of the session's directory",
            Self::Unknown => "what it held before is not known here",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const TREE: &str = "9e68d8dd4c0d1a685135a6284c52f6e1fa8f806b";

    /// A message in short form: `u` or `a`, then a letter for each part: `t`ext, `c`all, `s`tep-start, `f`inish,
    /// `p`atch.
    fn talk(written: &[&str]) -> Vec<MessageWithParts> {
        let message = |(n, text): (usize, &&str)| {
            let id = format!("msg_{n}");
            let parts: Vec<_> = text[1..]
                .chars()
                .enumerate()
                .map(|(m, kind)| part(&id, &format!("prt_{n}{m}"), kind))
                .collect();
            let role = if text.starts_with('u') { "user" } else { "assistant" };
            let info = json!({
                "role": role, "id": id, "sessionID": "ses_1", "time": {"created": 1}, "agent": "build",
                "model": {"providerID": "p", "modelID": "m"}, "parentID": "msg_0", "modelID": "m",
                "providerID": "p", "mode": "build", "path": {"cwd": "/", "root": "/"}, "cost": 0.0,
                "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            });
            serde_json::from_value(json!({"info": info, "parts": parts})).unwrap()
        };
        written.iter().enumerate().map(message).collect()
    }

    fn part(message: &str, id: &str, kind: char) -> Value {
        let body = match kind {
            't' => json!({"type": "text", "text": "x"}),
            'c' => {
                json!({"type": "tool", "callID": "c", "tool": "t", "state": {"status": "pending", "input": {}, "raw": ""}})
            }
            's' => json!({"type": "step-start"}),
            'f' => json!({"type": "step-finish", "reason": "stop", "cost": 0.0, "snapshot": TREE,
                "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}}),
            'p' => {
                json!({"type": "patch", "hash": TREE, "files": ["/w/a", "/w/d/b", "/etc/x", "/w/../y", "c"]})
            }
            other => panic!("{other}"),
        };
        let mut part = json!({"id": id, "sessionID": "ses_1", "messageID": message});
        part.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        part
    }

    #[track_caller]
    fn check(
        written: &[&str],
        (message, part): (&str, Option<&str>),
        expected: Option<(&str, Option<&str>, usize)>,
    ) {
        let talk = talk(written);
        let part = part.map(|part| PartId::parse(part).unwrap());
        let found = point(&talk, &MessageId::parse(message).unwrap(), part.as_ref());
        let found = found.map(|point| (point.clone(), steps_before(&talk, &point)));
        let found = found
            .as_ref()
            .map(|(point, steps)| (point.message.as_str(), point.part.as_ref().map(PartId::as_str), *steps));
        assert_eq!(found, expected);
    }

    const TALK: [&str; 6] = ["ut", "ascfp", "astf", "ut", "asccfp", "astf"];

    #[test]
    fn a_turn_is_reverted_from_its_prompt_on() {
        check(&TALK, ("msg_0", None), Some(("msg_0", None, 0)));
        check(&TALK, ("msg_3", None), Some(("msg_3", None, 1)));
        check(&TALK, ("msg_4", None), Some(("msg_3", None, 1)));
        check(&TALK, ("msg_9", None), None);
    }

    #[test]
    fn a_part_splits_a_message_if_some_of_it_remains() {
        check(&TALK, ("msg_4", Some("prt_42")), Some(("msg_4", Some("prt_42"), 1)));
        check(&TALK, ("msg_4", Some("prt_41")), Some(("msg_3", None, 1)));
        check(&TALK, ("msg_5", Some("prt_51")), Some(("msg_3", None, 1)));
        check(&TALK, ("msg_3", Some("prt_99")), None);
        check(&["uttt"], ("msg_0", Some("prt_01")), Some(("msg_0", Some("prt_01"), 0)));
    }

    #[test]
    fn messages_after_a_missing_message_are_reverted_with_it() {
        let talk = talk(&TALK);
        let gone = Point { message: MessageId::parse("msg_2x").unwrap(), part: None };
        assert_eq!(counting(&talk, &gone), (3, None));
    }

    #[test]
    fn only_plain_paths_under_the_root_are_reverted() {
        let steps = recorded(&talk(&["ap"]), Path::new("/w"));
        let names = |files: &BTreeSet<PathBuf>| {
            files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(&steps[0].files), ["a", "c", "d/b"]);
        assert_eq!(names(&steps[0].foreign), ["/etc/x", "/w/../y"]);
        assert_eq!(steps[0].trees, None, "nothing says what the step left");
        assert!(recorded(&talk(&["afp"]), Path::new("/w"))[0].trees.is_some());
    }

    #[test]
    fn a_file_with_a_missing_content_is_not_reverted_in_any_step() {
        let tree = TreeId::parse(TREE).unwrap();
        let step = |files: &[&str]| Recorded {
            trees: Some((tree, tree)),
            files: files.iter().map(PathBuf::from).collect(),
            foreign: BTreeSet::new(),
        };
        let steps = [step(&["a", "b"]), step(&["b", "c"]), step(&["d"])];
        let (changes, left) = travelled(&steps, 0..2, |at| at != 1);
        let files: Vec<_> = changes.iter().map(|change| change.files.clone()).collect();
        assert_eq!(files, [vec![PathBuf::from("a")], vec![], vec![PathBuf::from("d")]]);
        assert_eq!(left.keys().collect::<Vec<_>>(), [&PathBuf::from("b"), &PathBuf::from("c")]);
    }
}
