//! The list of a session's prompts, to jump to or to fork from.

use codewright_proto::Message;

use super::{Item, Kind, Layer, List, Pick};
use crate::state::State;

pub(crate) fn open(state: &mut State) {
    let items = prompts(state)
        .into_iter()
        .map(|(id, text, time)| Item::new(text, Pick::Message(id)).note(state.options.zone.clock(time)));
    let mut list = List::new(Kind::Timeline, "Timeline", items.collect());
    list.selected = list.found.len().saturating_sub(1);
    state.layers.push(Layer::List(list));
}

pub(crate) fn open_fork(state: &mut State) {
    let mut items = vec![Item::new("The whole session", Pick::Fork(None))];
    items.extend(prompts(state).into_iter().rev().map(|(id, text, time)| {
        Item::new(text, Pick::Fork(Some(id))).group("Before a prompt").note(state.options.zone.clock(time))
    }));
    state.layers.push(Layer::List(List::new(Kind::Fork, "Fork session", items)));
}

fn prompts(state: &State) -> Vec<(codewright_proto::MessageId, String, u64)> {
    let Some(transcript) = state.session_id().and_then(|id| state.mirror.transcripts.get(id)) else {
        return Vec::new();
    };
    let entries = transcript.entries.iter().take(transcript.end);
    let prompts = entries.filter(|entry| matches!(entry.info, Message::User(_)));
    let prompts = prompts.map(|entry| (entry.info.id().clone(), entry.prompt_text(), entry.info.created()));
    prompts.filter(|(_, text, _)| !text.trim().is_empty()).collect()
}
