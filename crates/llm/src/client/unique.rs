//! The ids of an answer's calls, each used once.
//!
//! Some servers and gateways give several calls of one answer the same id. Calls and results are matched by their ids,
//! so the second and later ones get ids of their own.

use crate::ModelEvent;

/// The calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct UniqueCalls(Vec<Call>);

#[derive(Debug)]
struct Call {
    /// The id of the server.
    id: String,
    unique: String,
    name: String,
    is_complete: bool,
}

impl UniqueCalls {
    /// Gives an event the unique id of its call.
    pub(super) fn rename(&mut self, event: ModelEvent) -> ModelEvent {
        match event {
            ModelEvent::ToolStart { id, name } => {
                let unique = self.start(id, &name);
                ModelEvent::ToolStart { id: unique, name }
            }
            ModelEvent::ToolExcess { id } => ModelEvent::ToolExcess { id: self.current(id) },
            ModelEvent::ToolDelta { id, text } => ModelEvent::ToolDelta { id: self.current(id), text },
            ModelEvent::Metadata { call: Some(id), metadata } => {
                ModelEvent::Metadata { call: Some(self.current(id)), metadata }
            }
            ModelEvent::ToolCall { id, name, arguments } => {
                let is_open = |call: &&mut Call| call.id == id && !call.is_complete;
                let open = match self.0.iter_mut().find(|call| is_open(call) && call.name == name) {
                    Some(open) => Some(open),
                    None => self.0.iter_mut().find(is_open),
                };
                let id = match open {
                    Some(open) => {
                        open.is_complete = true;
                        open.unique.clone()
                    }
                    None => {
                        let unique = self.start(id, &name);
                        if let Some(last) = self.0.last_mut() {
                            last.is_complete = true;
                        }
                        unique
                    }
                };
                ModelEvent::ToolCall { id, name, arguments }
            }
            event @ (ModelEvent::TextStart
            | ModelEvent::TextDelta(_)
            | ModelEvent::TextEnd
            | ModelEvent::TextWasReasoning
            | ModelEvent::ReasoningStart
            | ModelEvent::ReasoningDelta(_)
            | ModelEvent::ReasoningEnd { .. }
            | ModelEvent::Metadata { call: None, .. }
            | ModelEvent::Finish { .. }) => event,
        }
    }

    fn start(&mut self, id: String, name: &str) -> String {
        let mut unique = id.clone();
        let mut again = 2;
        while self.0.iter().any(|call| call.unique == unique) {
            unique = format!("{id}_{again}");
            again += 1;
        }
        let call = Call { id, unique: unique.clone(), name: name.to_owned(), is_complete: false };
        self.0.push(call);
        unique
    }

    /// Returns the id of the latest call with a server's id.
    fn current(&self, id: String) -> String {
        let open = self.0.iter().rfind(|call| call.id == id && !call.is_complete);
        let latest = open.or_else(|| self.0.iter().rfind(|call| call.id == id));
        latest.map_or(id, |call| call.unique.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_with_one_id_get_different_ones() {
        let start = |id: &str| ModelEvent::ToolStart { id: id.into(), name: "read".into() };
        let delta = |id: &str| ModelEvent::ToolDelta { id: id.into(), text: "x".into() };
        let call = |id: &str, arguments: &str| ModelEvent::ToolCall {
            id: id.into(),
            name: "read".into(),
            arguments: arguments.into(),
        };
        for (given, expected) in [
            (
                vec![start("a"), call("a", "1"), start("a"), delta("a"), call("a", "2")],
                vec![start("a"), call("a", "1"), start("a_2"), delta("a_2"), call("a_2", "2")],
            ),
            (
                vec![start("a"), start("a"), call("a", "1"), call("a", "2")],
                vec![start("a"), start("a_2"), call("a", "1"), call("a_2", "2")],
            ),
            (vec![call("a", "1"), call("a", "2")], vec![call("a", "1"), call("a_2", "2")]),
            (
                vec![start("a_2"), call("a_2", "1"), start("a"), call("a", "2"), start("a"), call("a", "3")],
                vec![
                    start("a_2"),
                    call("a_2", "1"),
                    start("a"),
                    call("a", "2"),
                    start("a_3"),
                    call("a_3", "3"),
                ],
            ),
        ] {
            let mut unique = UniqueCalls::default();
            let found: Vec<ModelEvent> = given.into_iter().map(|event| unique.rename(event)).collect();
            assert_eq!(found, expected);
        }
    }
}
