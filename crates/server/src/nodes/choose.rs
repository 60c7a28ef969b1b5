//! Chooses the servers that come into question for a request. The decision is a value, so that it can be tested as a table.

use std::cmp::Reverse;
use std::path::Path;

use codewright_engine::{Member, NodeView};

/// The number of steps in which the load of servers is compared. Small differences do not count.
const LOAD_STEPS: u64 = 8;

/// What is known about a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// The directory of the work.
    pub(crate) directory: &'a str,
    /// The id of the server that owns the session.
    pub(crate) owner: Option<&'a str>,
    /// The name of the server that owned it last.
    pub(crate) last: Option<&'a str>,
    /// Whether this server can work in the directory.
    pub(crate) is_here: bool,
    /// Whether this server can pass requests on.
    pub(crate) is_connected: bool,
}

/// A server that comes into question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// This server.
    Here,
    /// Another one.
    There(Box<Member>),
}

/// Returns the servers to try, the best one first: the owner, then the last owner, those that have the directory open, and
/// the least busy one. This server is preferred to equal ones.
pub(crate) fn choose(view: &NodeView, question: &Question<'_>) -> Vec<Choice> {
    let own = view.members.own.as_str();
    if question.owner == Some(own) {
        return vec![Choice::Here];
    }
    let can_work = |member: &&Member| {
        if member.id == own {
            question.is_here
        } else {
            question.is_connected && may_work(member, question.directory)
        }
    };
    let mut able: Vec<&Member> = view.members.all.iter().filter(can_work).collect();
    able.sort_by_key(|member| {
        let is_open = member.open.iter().any(|open| open == question.directory);
        let is_last = question.last == Some(member.name.as_str());
        let is_full = member.running >= member.limit;
        let load = member.running.saturating_mul(LOAD_STEPS) / member.limit.max(1);
        let is_owner = question.owner == Some(member.id.as_str());
        let is_own = member.id == own;
        (
            Reverse(is_owner),
            is_full,
            Reverse(is_last),
            Reverse(is_open),
            load,
            Reverse(is_own),
            member.running,
        )
    });
    let mut choices: Vec<Choice> = able
        .into_iter()
        .map(|member| if member.id == own { Choice::Here } else { Choice::There(Box::new(member.clone())) })
        .collect();
    // This server is not listed before its first heartbeat.
    if question.is_here && !choices.contains(&Choice::Here) {
        choices.push(Choice::Here);
    }
    choices
}

/// Whether another server may be able to work in a directory. It decides itself when the request arrives.
fn may_work(member: &Member, directory: &str) -> bool {
    let is_inside = |root: &String| Path::new(directory).starts_with(root);
    member.address.is_some()
        && !member.is_draining
        && (member.roots.is_empty() || member.roots.iter().any(is_inside))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use codewright_engine::Members;

    use super::*;

    fn member(id: &str) -> Member {
        let address = Some(format!("http://{id}:1"));
        Member { id: id.to_owned(), name: format!("{id}-name"), address, limit: 8, ..Member::default() }
    }

    #[track_caller]
    fn check(all: Vec<Member>, question: Question<'_>, expected: &str) {
        let members = Members { all, own: "a".to_owned(), now_ms: 0 };
        let view = NodeView { members: Arc::new(members), now_ms: 0 };
        let name = |choice: &Choice| match choice {
            Choice::Here => "here".to_owned(),
            Choice::There(member) => member.id.clone(),
        };
        let chosen: Vec<_> = choose(&view, &question).iter().map(name).collect();
        assert_eq!(chosen.join(" "), expected);
    }

    const WORK: Question<'_> =
        Question { directory: "/p/x", owner: None, last: None, is_here: true, is_connected: true };

    fn three() -> Vec<Member> {
        vec![member("a"), member("b"), member("c")]
    }

    #[test]
    fn the_owner_is_first_and_this_server_is_preferred_to_equal_ones() {
        check(three(), WORK, "here b c");
        check(three(), Question { owner: Some("a"), ..WORK }, "here");
        check(three(), Question { owner: Some("c"), ..WORK }, "c here b");
        check(three(), Question { owner: Some("another process"), ..WORK }, "here b c");
        check(three(), Question { last: Some("b-name"), ..WORK }, "b here c");
        check(three(), Question { is_here: false, ..WORK }, "b c");
        check(three(), Question { is_connected: false, owner: Some("c"), ..WORK }, "here");
        check(Vec::new(), WORK, "here");
        check(Vec::new(), Question { is_here: false, ..WORK }, "");
    }

    #[test]
    fn open_directories_and_load_decide_among_others() {
        let with = |change: &dyn Fn(&mut Vec<Member>)| {
            let mut all = three();
            change(&mut all);
            all
        };
        check(with(&|all| all[2].open = vec!["/p/x".into()]), WORK, "c here b");
        check(with(&|all| all[0].running = 4), WORK, "b c here");
        check(with(&|all| (all[0].running, all[1].running) = (8, 7)), WORK, "c b here");
        check(with(&|all| (all[2].running, all[2].open) = (8, vec!["/p/x".into()])), WORK, "here b c");
    }

    #[test]
    fn servers_that_cannot_work_there_are_left_out() {
        let mut all = three();
        all[1].roots = vec!["/q".to_owned(), "/p/xx".to_owned()];
        all[2].roots = vec!["/p".to_owned()];
        check(all.clone(), WORK, "here c");
        all[2].is_draining = true;
        check(all.clone(), WORK, "here");
        all[2].is_draining = false;
        all[2].address = None;
        check(all, Question { owner: Some("c"), ..WORK }, "here");
    }
}
