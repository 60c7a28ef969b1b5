//! The limits of an answer, its ids, and the errors of invalid answers, for all protocols.

use std::hash::{BuildHasher, RandomState};

use crate::Error;

/// Limits of the arguments of a call, and of the calls in an answer. A server that exceeds them is
/// broken and would exhaust the memory.
pub(crate) const ARGUMENTS_LIMIT_BYTES: usize = 16 * 1024 * 1024;
pub(crate) const CALLS_LIMIT: usize = 1024;

/// Returns an id for a call whose server sends none. It is random, because it must be unique in a
/// conversation that the decoder does not know.
pub(crate) fn random_call_id(number: usize) -> String {
    format!("call_{:016x}", RandomState::new().hash_one(number))
}

/// Counts a tool call of an answer. Fails if there are too many.
pub(crate) fn count_call(calls: &mut usize) -> Result<(), Error> {
    *calls += 1;
    if *calls > CALLS_LIMIT { Err(too_many_calls()) } else { Ok(()) }
}

/// Returns the error for an answer with more than [`CALLS_LIMIT`] tool calls.
pub(crate) fn too_many_calls() -> Error {
    too_much(&format!("more than {CALLS_LIMIT} tool calls"))
}

/// Fails if a block of an answer has too many bytes.
pub(crate) fn check_block(bytes: usize) -> Result<(), Error> {
    if bytes > ARGUMENTS_LIMIT_BYTES {
        return Err(too_much(&format!("more than {ARGUMENTS_LIMIT_BYTES} bytes in one block")));
    }
    Ok(())
}

/// Fails if the arguments of a tool call have too many bytes.
pub(crate) fn check_arguments(bytes: usize) -> Result<(), Error> {
    if bytes > ARGUMENTS_LIMIT_BYTES {
        return Err(too_much(&format!("more than {ARGUMENTS_LIMIT_BYTES} bytes of arguments in one call")));
    }
    Ok(())
}

/// Returns the arguments of a finished call, which are `{}` if the model wrote none.
pub(crate) fn arguments_or_empty(arguments: String) -> String {
    if arguments.trim().is_empty() { "{}".to_owned() } else { arguments }
}

/// Returns the error for a connection that ended before the answer was complete.
pub(crate) fn cut_short() -> Error {
    Error::busy("connection closed before the answer was complete")
}

/// Returns the error for an event that does not match the protocol.
pub(crate) fn malformed(data: &str, why: &serde_json::Error) -> Error {
    Error::rejected(format!(
        "the answer contains an event that cannot be decoded ({why}): {}",
        crate::error::cut(data, 300)
    ))
}

/// Returns the error for an answer that exceeds a limit.
pub(crate) fn too_much(what: &str) -> Error {
    Error::rejected(format!("the answer contains {what}"))
}
