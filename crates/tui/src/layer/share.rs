//! Sharing a session: what that means is said before it is done.

use codewright_proto::ToastVariant;

use super::{Confirm, Layer};
use crate::msg::Cmd;
use crate::state::State;

const ABOUT: &str = "Everyone who has the address will be able to read this session: all prompts, answers, calls with \
    their outputs, and the lines that were changed, also those still to come. It stays so until /unshare.";

pub(crate) fn open(state: &mut State) -> Vec<Cmd> {
    let Some(session) = state.session() else { return Vec::new() };
    if let Some(share) = &session.share {
        let address = share.url.clone();
        state.tell(format!("already shared at {address}; /unshare ends it"), ToastVariant::Info);
        return vec![Cmd::Copy(address)];
    }
    let cmd = Cmd::Share(session.id.clone());
    let confirm = Confirm { title: "Share session", about: ABOUT, button: "Share", sure: false, cmd };
    state.layers.push(Layer::Confirm(confirm));
    Vec::new()
}
