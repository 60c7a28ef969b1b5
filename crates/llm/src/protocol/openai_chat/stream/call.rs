//! Assembles tool calls from pieces, which some servers label incorrectly.

use super::chunk::CallDelta;
use crate::protocol::limits::{
    CALLS_LIMIT, arguments_or_empty, check_arguments, random_call_id, too_many_calls,
};
use crate::{Error, ModelEvent};

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    json: Json,
    /// `ToolStart` was emitted.
    started: bool,
    /// `ToolCall` was emitted.
    ended: bool,
    /// A second value follows the arguments.
    has_second: bool,
    /// Text after the arguments was dropped.
    has_excess: bool,
}

impl Calls {
    /// Returns the number of calls so far.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds one piece. Emits the call when its arguments are complete.
    pub(super) fn push(&mut self, delta: CallDelta, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let function = delta.function.unwrap_or_default();
        let (id, name) = (delta.id.text(), function.name.text());
        let at = match self.position(delta.index, id, name) {
            Some(at) => at,
            None if self.0.len() == CALLS_LIMIT => {
                return Err(too_many_calls());
            }
            None => {
                let id = id.map_or_else(|| random_call_id(self.0.len()), str::to_owned);
                self.0.push(Call { index: delta.index, id, ..Call::default() });
                self.0.len() - 1
            }
        };
        let call = &mut self.0[at];
        if call.name.is_empty()
            && let Some(name) = name
        {
            name.clone_into(&mut call.name);
        }
        if let Some(text) = function.arguments.source() {
            call.extend(&text, out)?;
        }
        call.start(out);
        if call.json.is_whole() && !call.json.is_empty_object() && !call.has_second {
            call.end(out);
        }
        Ok(())
    }

    /// Emits a call that was printed as text.
    pub(super) fn push_printed(&mut self, name: String, arguments: String, out: &mut Vec<ModelEvent>) {
        if self.0.len() == CALLS_LIMIT {
            return;
        }
        let mut call = Call { id: random_call_id(self.0.len()), name, arguments, ..Call::default() };
        call.start(out);
        call.end(out);
        self.0.push(call);
    }

    /// Emits the remaining calls at the end of the answer.
    pub(super) fn close(&mut self, out: &mut Vec<ModelEvent>) {
        for call in &mut self.0 {
            call.end(out);
        }
    }

    /// Returns the call of a piece, or `None` if the piece starts a call.
    fn position(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        match (index, id) {
            // Servers that number all calls 0 still send an id and a name for each.
            (Some(_), Some(id)) => {
                self.0.iter().rposition(|call| call.index == index && (call.id == id || name.is_none()))
            }
            (Some(_), None) => {
                let is_next = |call: &Call| name.is_some() && call.json.is_whole();
                self.0.iter().rposition(|call| call.index == index).filter(|at| !is_next(&self.0[*at]))
            }
            (None, Some(id)) => self.0.iter().rposition(|call| call.id == id),
            (None, None) if name.is_some() => None,
            (None, None) => self.0.len().checked_sub(1),
        }
    }
}

impl Call {
    fn extend(&mut self, text: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        if self.ended {
            self.excess(text, out);
            return Ok(());
        }
        if self.json.is_empty_object() && !self.has_second && text.trim_start().starts_with('{') {
            // `{}` was a placeholder for arguments that follow.
            self.json = Json::default();
            self.arguments.clear();
        }
        let (text, rest) = text.split_at(self.json.read(text));
        // A second value may be the one that fits, which the schema decides. Anything else is dropped.
        self.has_second |= rest.trim_start().starts_with(['{', '[']);
        let second = if self.has_second { rest } else { "" };
        let text = [text, second].concat();
        check_arguments(self.arguments.len() + text.len())?;
        self.arguments.push_str(&text);
        if self.started && !text.is_empty() {
            out.push(ModelEvent::ToolDelta { id: self.id.clone(), text });
        }
        if second.is_empty() {
            self.excess(rest, out);
        }
        Ok(())
    }

    /// Emits that text after the arguments is dropped, once.
    fn excess(&mut self, text: &str, out: &mut Vec<ModelEvent>) {
        if text.trim().is_empty() || self.has_excess {
            return;
        }
        self.has_excess = true;
        if self.started {
            out.push(ModelEvent::ToolExcess { id: self.id.clone() });
        }
    }

    /// Emits the start of a call when its name is known, with its arguments so far.
    fn start(&mut self, out: &mut Vec<ModelEvent>) {
        if self.started || self.name.is_empty() {
            return;
        }
        self.started = true;
        out.push(ModelEvent::ToolStart { id: self.id.clone(), name: self.name.clone() });
        if !self.arguments.is_empty() {
            out.push(ModelEvent::ToolDelta { id: self.id.clone(), text: self.arguments.clone() });
        }
        if self.has_excess {
            out.push(ModelEvent::ToolExcess { id: self.id.clone() });
        }
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        if self.ended {
            return;
        }
        if !self.started {
            self.started = true;
            out.push(ModelEvent::ToolStart { id: self.id.clone(), name: self.name.clone() });
        }
        self.ended = true;
        let arguments = arguments_or_empty(std::mem::take(&mut self.arguments));
        out.push(ModelEvent::ToolCall { id: self.id.clone(), name: self.name.clone(), arguments });
    }
}

/// Finds the end of a JSON object in pieces of text without parsing it repeatedly.
#[derive(Debug, Default)]
struct Json {
    depth: u32,
    in_string: bool,
    escaped: bool,
    whole: bool,
    /// There is something other than white space between the braces.
    filled: bool,
}

impl Json {
    fn is_whole(&self) -> bool {
        self.whole
    }

    fn is_empty_object(&self) -> bool {
        self.whole && !self.filled
    }

    /// Scans text. Returns the number of bytes that belong to the object.
    fn read(&mut self, text: &str) -> usize {
        if self.whole {
            return 0;
        }
        for (at, byte) in text.bytes().enumerate() {
            let inside = self.depth > 0;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if inside && self.depth == 0 {
                self.whole = true;
                return at + 1;
            }
            self.filled |= inside && !byte.is_ascii_whitespace();
        }
        text.len()
    }
}
