//! Tool calls, put together from pieces that servers label badly.

use super::chunk::CallDelta;
use crate::protocol::{ARGUMENTS_LIMIT_BYTES, CALLS_LIMIT, made_up_id, too_much};
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
    /// `ToolStart` has been given out.
    started: bool,
    /// `ToolCall` has been given out.
    ended: bool,
}

impl Calls {
    pub(super) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Reads one piece, and gives a call out as soon as its arguments are whole.
    pub(super) fn push(&mut self, delta: CallDelta, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let function = delta.function.unwrap_or_default();
        let (id, name) = (delta.id.text(), function.name.text());
        let at = match self.position(delta.index, id, name) {
            Some(at) => at,
            None if self.0.len() == CALLS_LIMIT => {
                return Err(too_much(&format!("more than {CALLS_LIMIT} tool calls")));
            }
            None => {
                let id = id.map_or_else(|| made_up_id(self.0.len()), str::to_owned);
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
        if call.json.is_whole() && !call.json.is_empty_object() {
            call.end(out);
        }
        Ok(())
    }

    /// Gives out a call that came as text.
    pub(super) fn printed(&mut self, name: String, arguments: String, out: &mut Vec<ModelEvent>) {
        if self.0.len() == CALLS_LIMIT {
            return;
        }
        let mut call = Call { id: made_up_id(self.0.len()), name, arguments, ..Call::default() };
        call.start(out);
        call.end(out);
        self.0.push(call);
    }

    /// Gives out what has not been yet; nothing more will come.
    pub(super) fn close(&mut self, out: &mut Vec<ModelEvent>) {
        for call in &mut self.0 {
            call.end(out);
        }
    }

    /// Which call a piece belongs to; `None` if it begins one.
    fn position(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        match (index, id) {
            // Servers that number every call 0 still give each its id and name.
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
            return Ok(());
        }
        if self.json.is_empty_object() && text.trim_start().starts_with('{') {
            // `{}` was a stand-in for arguments that only come now.
            self.json = Json::default();
            self.arguments.clear();
        }
        let text = &text[..self.json.read(text)];
        if self.arguments.len() + text.len() > ARGUMENTS_LIMIT_BYTES {
            return Err(too_much(&format!(
                "more than {ARGUMENTS_LIMIT_BYTES} bytes of arguments in one call"
            )));
        }
        self.arguments.push_str(text);
        if self.started && !text.is_empty() {
            out.push(ModelEvent::ToolDelta { id: self.id.clone(), text: text.to_owned() });
        }
        Ok(())
    }

    /// A call is known once it has a name; what came before is given out then.
    fn start(&mut self, out: &mut Vec<ModelEvent>) {
        if self.started || self.name.is_empty() {
            return;
        }
        self.started = true;
        out.push(ModelEvent::ToolStart { id: self.id.clone(), name: self.name.clone() });
        if !self.arguments.is_empty() {
            out.push(ModelEvent::ToolDelta { id: self.id.clone(), text: self.arguments.clone() });
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
        let arguments = match self.arguments.trim() {
            "" => "{}".to_owned(),
            _ => std::mem::take(&mut self.arguments),
        };
        out.push(ModelEvent::ToolCall { id: self.id.clone(), name: self.name.clone(), arguments });
    }
}

/// Where in an object the text read so far ends, found without parsing it again for every piece.
#[derive(Debug, Default)]
struct Json {
    depth: u32,
    in_string: bool,
    escaped: bool,
    whole: bool,
    /// Something but white space stands between the braces.
    filled: bool,
}

impl Json {
    fn is_whole(&self) -> bool {
        self.whole
    }

    fn is_empty_object(&self) -> bool {
        self.whole && !self.filled
    }

    /// Reads on; returns how many bytes belong to the object, all unless it ends within.
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
