//! Sharing a session, after a confirmation that explains the effect.

use codewright_proto::ToastVariant;

use super::{Confirm, Layer};
use crate::msg::Cmd;
use crate::state::State;

const ABOUT: &str = "Everyone who has the URL will be able to read this session: all prompts, answers, tool calls with \
    their outputs and changed lines, now and in the future. /unshare ends this.";

pub(crate) fn open(state: &mut State) -> Vec<Cmd> {
    let Some(session) = state.session() else { return Vec::new() };
    if let Some(share) = &session.share {
        let url = share.url.clone();
        state.notify(format!("already shared at {url}; /unshare stops sharing"), ToastVariant::Info);
        return vec![Cmd::Copy(url)];
    }
    let cmd = Cmd::Share(session.id.clone());
    let confirm = Confirm { title: "Share session", about: ABOUT, button: "Share", sure: false, cmd };
    state.layers.push(Layer::Confirm(confirm));
    Vec::new()
}
