//! Converts the events of a model and the states of its calls into events of one assistant message.
//!
//! The recorder is the only writer of assistant parts. It has no effects: it collects records in order, and the step
//! stores and publishes them after [`Recorder::take`]. Growing text is published as deltas and stored when it is
//! complete, so the log contains each text at most twice; in the meantime [`Recorder::draft`] returns text that is
//! worth storing in case the process dies. The longer a call runs, the less often its progress is recorded.
//! [`Recorder::close`] ends every open part, also after a failure.

use std::sync::Arc;
use std::time::Duration;

use codewright_llm::{ModelEvent, Usage};
use codewright_proto::{
    AssistantMessage, CacheUsage, Clock, Event, Ids, Map, Message, MessageError, Part, PartBody, PartId,
    Signal, Span, StepFinish, TextPart, TokenUsage, ToolPart, ToolSpan, ToolState,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::files::Done;
use super::structured;
use crate::mcp::wrapped;
use crate::toolbox::changes_nothing;

/// The metadata key that states how a call was interrupted.
pub(crate) const INTERRUPTED: &str = "interrupted";
/// The metadata key of a call whose name or arguments were corrected.
const REPAIRED: &str = "repaired";
/// The call may have had an effect.
pub(crate) const UNCERTAIN: &str = "uncertain";
/// The result of a call that was running when the turn ended.
pub(crate) const CALL_ABORTED: &str = "Tool execution aborted";

/// The shortest time between two drafts of a text, and between two progress records of a call.
const SHORTEST: Duration = Duration::from_millis(100);
/// The bytes of drafts per second. Each draft contains the whole text, so a long text is drafted less often.
const DRAFT_BYTES_A_SECOND: u64 = 1024 * 1024;
/// The number of progress records over the running time of a call.
const PROGRESS_IN_ALL: u32 = 50;
/// The longest time between two progress records of a call.
const LONGEST: Duration = Duration::from_secs(5);

/// A record to store or to publish.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few at a time, and moved at most twice")]
pub(crate) enum Record {
    Event(Event),
    Signal(Signal),
}

/// A complete call of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments as the model wrote them, which may not be valid JSON.
    pub(crate) arguments: String,
}

/// A state of a call, reported by the toolbox.
#[derive(Debug)]
pub(crate) struct CallUpdate {
    pub(crate) call_id: String,
    /// The name of the tool for clients. It differs from the model's name for `invalid`.
    pub(crate) tool: String,
    pub(crate) state: ToolState,
    /// Notified when the state is stored.
    pub(crate) stored: Option<oneshot::Sender<()>>,
}

pub(crate) struct Recorder {
    ids: Ids,
    clock: Clock,
    message: AssistantMessage,
    step_open: bool,
    /// The id of the part that starts the step, and whether it names the tree.
    step_start: Option<(PartId, bool)>,
    /// The tree of the directory at the start of the step.
    tree: Option<String>,
    /// The value that the prompt requested. It is recorded with the end of the message.
    value: Option<Value>,
    block: Option<Block>,
    /// Completed texts of this attempt. They are emptied if the attempt is abandoned.
    closed: Vec<(PartId, bool, Span)>,
    calls: Vec<OpenCall>,
    records: Vec<Record>,
}

/// A growing text or reasoning.
struct Block {
    id: PartId,
    reasoning: bool,
    text: String,
    /// Metadata that the provider needs back.
    metadata: Option<Value>,
    start: u64,
    /// The length and time of the last draft.
    drafted: (usize, Instant),
}

impl Block {
    /// Returns when the text can be drafted, if it has grown.
    fn due(&self) -> Option<Instant> {
        let (length, at) = self.drafted;
        let cost = Duration::from_millis(self.text.len() as u64 * 1000 / DRAFT_BYTES_A_SECOND);
        (self.text.len() != length).then(|| at + cost.max(SHORTEST))
    }
}

struct OpenCall {
    id: PartId,
    call_id: String,
    tool: String,
    /// Metadata that the provider needs back.
    metadata: Option<Value>,
    /// The start, the input and the last progress of a running call.
    running: Option<(u64, Value, Option<Map>)>,
    /// Whether the model made it through the search tool.
    is_wrapped: bool,
    /// Whether its name or its arguments were corrected.
    is_repaired: bool,
    /// Progress that is not recorded yet.
    progress: Option<ToolState>,
    /// The start of the call in this process, and the time of the last record.
    recorded: Option<(Instant, Instant)>,
    closed: bool,
    /// The last state of a closed call.
    end: Option<ToolState>,
}

impl OpenCall {
    /// Returns when more progress can be recorded.
    fn due(&self) -> Option<Instant> {
        let (begun, last) = self.recorded?;
        Some(last + ((last - begun) / PROGRESS_IN_ALL).clamp(SHORTEST, LONGEST))
    }
}

impl Recorder {
    /// Starts a message and records it.
    pub(crate) fn new(ids: Ids, clock: Clock, message: AssistantMessage) -> Self {
        let mut recorder = Self {
            ids,
            clock,
            message,
            step_open: false,
            step_start: None,
            tree: None,
            value: None,
            block: None,
            closed: Vec::new(),
            calls: Vec::new(),
            records: Vec::new(),
        };
        recorder.message_updated();
        recorder
    }

    /// Does the same for a message without a model, which has no steps.
    #[must_use]
    pub(crate) fn without_steps(mut self) -> Self {
        self.step_open = true;
        self
    }

    /// Returns the records since the last call, in order.
    pub(crate) fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Reports whether there are records to store.
    pub(crate) fn has_events(&self) -> bool {
        self.records.iter().any(|record| matches!(record, Record::Event(_)))
    }

    /// Reports whether there are records that are only published.
    pub(crate) fn has_deltas(&self) -> bool {
        self.records.iter().any(|record| matches!(record, Record::Signal(_)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the current message.
    pub(crate) fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// Reports whether this attempt has produced output.
    pub(crate) fn has_begun(&self) -> bool {
        self.step_open
    }

    /// Reports whether the message contains calls.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Records an event of the model. Returns a complete call, which has to be run.
    pub(crate) fn push(&mut self, event: ModelEvent) -> Option<Call> {
        match event {
            ModelEvent::TextDelta(text) => self.grow(false, &text),
            ModelEvent::ReasoningDelta(text) => self.grow(true, &text),
            ModelEvent::TextStart => self.open(false),
            ModelEvent::ReasoningStart => self.open(true),
            ModelEvent::TextEnd => self.end_block(None),
            ModelEvent::TextWasReasoning => {
                if let Some(block) = &mut self.block {
                    block.reasoning = true;
                }
                self.end_block(None);
            }
            ModelEvent::ReasoningEnd { metadata } => {
                // A provider may send only an opaque item and no text.
                if metadata.is_some() && self.block.as_ref().is_none_or(|block| !block.reasoning) {
                    self.open(true);
                }
                self.end_block(metadata);
            }
            ModelEvent::Metadata { call: None, metadata } => self.belongs(metadata),
            // It is stored with the next state of the call, which follows at once.
            ModelEvent::Metadata { call: Some(id), metadata } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.call_id == id) {
                    call.metadata = Some(metadata);
                }
            }
            ModelEvent::ToolStart { id, name } => self.call_started(id, name),
            ModelEvent::ToolDelta { .. } => {}
            ModelEvent::ToolExcess { id } => self.call_repaired(&id),
            ModelEvent::ToolCall { id, name, arguments } => {
                if !self.calls.iter().any(|call| call.call_id == id) {
                    self.call_started(id.clone(), name.clone());
                }
                return Some(Call { id, name, arguments });
            }
            ModelEvent::Finish { reason, usage } => {
                self.begin_step();
                self.end_block(None);
                self.message.finish = Some(reason.as_str().to_owned());
                self.message.tokens = tokens(&usage);
            }
        }
        None
    }

    /// Returns the growing text of the answer if an event ends it.
    pub(crate) fn text_ended_by(&self, event: &ModelEvent) -> Option<(PartId, String)> {
        let block = self.block.as_ref().filter(|block| !block.reasoning)?;
        let ends = match event {
            ModelEvent::TextDelta(_) | ModelEvent::Metadata { .. } | ModelEvent::ToolDelta { .. } => false,
            ModelEvent::TextStart
            | ModelEvent::TextEnd
            | ModelEvent::TextWasReasoning
            | ModelEvent::ReasoningStart
            | ModelEvent::ReasoningDelta(_)
            | ModelEvent::ReasoningEnd { .. }
            | ModelEvent::ToolStart { .. }
            | ModelEvent::ToolCall { .. }
            | ModelEvent::ToolExcess { .. }
            | ModelEvent::Finish { .. } => true,
        };
        ends.then(|| (block.id.clone(), block.text.clone()))
    }

    /// Replaces the growing text before it is stored.
    pub(crate) fn replace_text(&mut self, text: String) {
        if let Some(block) = &mut self.block {
            block.text = text;
        }
    }

    /// Returns the growing text if it is time to store a draft.
    pub(crate) fn draft(&mut self, now: Instant) -> Option<Part> {
        let block = self.block.as_mut()?;
        if block.due().is_none_or(|due| now < due) {
            return None;
        }
        block.drafted = (block.text.len(), now);
        let span = Span { start: block.start, end: None };
        let body = text_body(block.reasoning, block.text.clone(), span, block.metadata.clone());
        Some(self.part(self.block.as_ref()?.id.clone(), body))
    }

    /// Returns the next time at which a draft or progress is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        let waiting = self.calls.iter().filter(|call| call.progress.is_some());
        waiting.filter_map(OpenCall::due).chain(self.block.as_ref().and_then(Block::due)).min()
    }

    /// Records progress that is due.
    pub(crate) fn record_due(&mut self, now: Instant) {
        for at in 0..self.calls.len() {
            let call = &mut self.calls[at];
            if call.due().is_some_and(|due| due <= now)
                && let Some(state) = call.progress.take()
            {
                call.recorded = call.recorded.map(|(begun, _)| (begun, now));
                self.record_call(at, state);
            }
        }
    }

    /// Notes that the model made a call through the search tool for the tools of servers.
    pub(crate) fn called_through(&mut self, call_id: &str) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.call_id == call_id) {
            call.is_wrapped = true;
        }
    }

    /// Notes that the name or the arguments of a call were corrected. The call may have ended already.
    pub(crate) fn call_repaired(&mut self, call_id: &str) {
        let Some(at) = self.calls.iter().position(|call| call.call_id == call_id) else { return };
        self.calls[at].is_repaired = true;
        if let Some(end) = self.calls[at].end.clone() {
            self.record_call(at, end);
        }
    }

    /// Records the state of a call.
    pub(crate) fn call_updated(&mut self, update: CallUpdate) {
        let Some(at) = self.calls.iter().position(|call| call.call_id == update.call_id && !call.closed)
        else {
            return;
        };
        let call = &mut self.calls[at];
        call.tool = update.tool;
        call.closed = !update.state.is_open();
        // Delayed progress is older than this state.
        call.progress = None;
        let mut state = update.state;
        if let Some(value) = structured::captured(&call.tool, &state) {
            self.value.get_or_insert(value);
        }
        match &mut state {
            ToolState::Running { input, time, metadata, .. } => {
                let now = Instant::now();
                call.running = Some((time.start, input.clone(), metadata.clone()));
                if metadata.is_some() && call.due().is_some_and(|due| now < due) {
                    call.progress = Some(state);
                    return;
                }
                if metadata.is_some() {
                    call.recorded = Some((call.recorded.map_or(now, |(begun, _)| begun), now));
                }
            }
            // A failed call keeps its last progress.
            ToolState::Error { metadata, .. } if metadata.is_none() => {
                *metadata = call.running.take().and_then(|(_, _, shown)| shown);
            }
            ToolState::Pending { .. } | ToolState::Completed { .. } | ToolState::Error { .. } => {}
        }
        if call.closed {
            call.end = Some(state.clone());
        }
        self.record_call(at, state);
    }

    /// Abandons an attempt: its texts are emptied so that the next attempt does not repeat them.
    ///
    /// Only attempts without calls are abandoned, because the effects of calls cannot be undone.
    pub(crate) fn restart(&mut self) {
        if let Some(block) = self.block.take() {
            self.closed.push((block.id, block.reasoning, Span { start: block.start, end: None }));
        }
        for (id, reasoning, span) in std::mem::take(&mut self.closed) {
            let span = Span { start: span.start, end: Some(self.clock.now_ms()) };
            let body = text_body(reasoning, String::new(), span, None);
            self.record_part(id, body);
        }
        self.message.finish = None;
        self.message.tokens = TokenUsage::default();
        self.step_open = false;
    }

    /// Removes the end of the answer: an aborted step has no end, also if the model finished.
    pub(crate) fn unfinish(&mut self) {
        self.message.finish = None;
        self.message.tokens = TokenUsage::default();
    }

    /// Adds the cost of other answers to that of the step.
    pub(crate) fn charge(&mut self, cost: f64) {
        self.message.cost += cost;
    }

    /// Records the end of the step with its usage, the cost of its answer and its reason.
    ///
    /// A good answer may still be the last attempt.
    pub(crate) fn finish(&mut self, cost: f64, error: Option<MessageError>, done: Done) {
        self.begin_step();
        self.end_block(None);
        self.message.cost += cost;
        let body = PartBody::StepFinish(StepFinish {
            reason: self.message.finish.clone().unwrap_or_else(|| "unknown".to_owned()),
            snapshot: done.tree,
            cost: self.message.cost,
            tokens: self.message.tokens,
        });
        let id = self.ids.part();
        self.record_part(id, body);
        // Clients receive the cost before the file changes are known.
        self.message_updated();
        self.changed(done.patch);
        self.close(error);
    }

    /// Records a text of the program as a part of the answer. Clients hide synthetic texts, so it is marked in its metadata.
    pub(crate) fn note(&mut self, text: &str) {
        let now = self.clock.now_ms();
        let time = Some(Span { start: now, end: Some(now) });
        let metadata = Some(json!({ "codewright": { "note": true } }));
        let body = TextPart { text: text.into(), time, metadata, ..TextPart::default() };
        let id = self.ids.part();
        self.record_part(id, PartBody::Text(body));
    }

    /// Records the files that the step changed.
    pub(crate) fn changed(&mut self, patch: Option<PartBody>) {
        if let Some(patch) = patch {
            let id = self.ids.part();
            self.record_part(id, patch);
        }
    }

    /// Sets the tree at the start of the step, which may be known only after the answer started.
    pub(crate) fn began_with(&mut self, tree: Option<String>) {
        if self.tree.is_some() || tree.is_none() {
            return;
        }
        self.tree = tree;
        if let Some((id, false)) = self.step_start.take() {
            self.record_step_start(id);
        }
    }

    fn record_step_start(&mut self, id: PartId) {
        self.step_start = Some((id.clone(), self.tree.is_some()));
        self.record_part(id, PartBody::StepStart { snapshot: self.tree.clone() });
    }

    /// Reports whether a value of the model was rejected.
    pub(crate) fn has_refused_value(&self) -> bool {
        self.value.is_none() && self.calls.iter().any(|call| call.tool == structured::TOOL)
    }

    /// Ends every open part and the message.
    pub(crate) fn close(&mut self, error: Option<MessageError>) {
        self.end_block(None);
        let now = self.clock.now_ms();
        for at in 0..self.calls.len() {
            let call = &mut self.calls[at];
            if call.closed {
                continue;
            }
            call.closed = true;
            call.progress = None;
            let works = call.running.is_some() && !changes_nothing(&call.tool);
            let (start, input, mut metadata) =
                call.running.take().unwrap_or((now, Value::Object(Map::new()), None));
            if works {
                // The call was told to end and has not reported its result.
                let word = Value::from(UNCERTAIN);
                metadata.get_or_insert_default().insert(INTERRUPTED.to_owned(), word);
            }
            let time = ToolSpan { start, end: now, compacted: None };
            let state = ToolState::Error { input, error: CALL_ABORTED.to_owned(), metadata, time };
            self.record_call(at, state);
        }
        self.message.error = error;
        self.message.structured = self.value.take();
        self.message.time.completed = Some(now);
        self.message_updated();
        if self.message.structured.is_some() {
            // A message with a value is published twice, as clients expect.
            self.message_updated();
        }
    }

    fn open(&mut self, reasoning: bool) {
        self.begin_step();
        self.end_block(None);
        let start = self.clock.now_ms();
        let id = self.ids.part();
        self.record_part(id.clone(), text_body(reasoning, String::new(), Span { start, end: None }, None));
        let drafted = (0, Instant::now());
        self.block = Some(Block { id, reasoning, text: String::new(), metadata: None, start, drafted });
    }

    /// Stores the metadata of the open text. Metadata that is known at the start is published with the start.
    fn belongs(&mut self, metadata: Value) {
        let Some(block) = &mut self.block else { return };
        if let Some(Record::Event(Event::PartUpdated { part, .. })) = self.records.last_mut()
            && part.id == block.id
            && let PartBody::Text(text) = &mut part.body
        {
            text.metadata = Some(metadata.clone());
        }
        block.metadata = Some(metadata);
    }

    fn grow(&mut self, reasoning: bool, delta: &str) {
        if self.block.as_ref().is_none_or(|block| block.reasoning != reasoning) {
            self.open(reasoning);
        }
        let Some(block) = &mut self.block else { return };
        block.text.push_str(delta);
        // Deltas that are not published yet are joined, because clients draw frames, not tokens.
        if let Some(Record::Signal(Signal::PartDelta { delta: waiting, .. })) = self.records.last_mut() {
            waiting.push_str(delta);
            return;
        }
        self.records.push(Record::Signal(Signal::PartDelta {
            session_id: self.message.session_id.clone(),
            message_id: self.message.id.clone(),
            part_id: block.id.clone(),
            field: "text".to_owned(),
            delta: delta.to_owned(),
        }));
    }

    fn end_block(&mut self, metadata: Option<Value>) {
        let Some(block) = self.block.take() else { return };
        let span = Span { start: block.start, end: Some(self.clock.now_ms()) };
        self.closed.push((block.id.clone(), block.reasoning, span));
        let metadata = metadata.or(block.metadata);
        self.record_part(block.id, text_body(block.reasoning, block.text, span, metadata));
    }

    fn begin_step(&mut self) {
        if self.step_open {
            return;
        }
        self.step_open = true;
        let id = self.ids.part();
        self.record_step_start(id);
    }

    fn call_started(&mut self, call_id: String, tool: String) {
        self.begin_step();
        self.end_block(None);
        let id = self.ids.part();
        self.calls.push(OpenCall {
            id,
            call_id,
            tool,
            metadata: None,
            running: None,
            is_wrapped: false,
            is_repaired: false,
            progress: None,
            recorded: None,
            closed: false,
            end: None,
        });
        self.record_call(self.calls.len() - 1, ToolState::pending());
    }

    fn record_call(&mut self, at: usize, mut state: ToolState) {
        let call = &self.calls[at];
        if call.is_wrapped {
            wrapped::mark(&mut state);
        }
        if call.is_repaired {
            mark_repaired(&mut state);
        }
        let part = ToolPart {
            call_id: call.call_id.clone(),
            tool: call.tool.clone(),
            state,
            metadata: call.metadata.clone(),
        };
        self.record_part(call.id.clone(), PartBody::Tool(part));
    }

    fn part(&self, id: PartId, body: PartBody) -> Part {
        Part { id, session_id: self.message.session_id.clone(), message_id: self.message.id.clone(), body }
    }

    fn record_part(&mut self, id: PartId, body: PartBody) {
        let session_id = self.message.session_id.clone();
        let part = self.part(id, body);
        let time = self.clock.now_ms();
        self.records.push(Record::Event(Event::PartUpdated { session_id, part, time }));
    }

    fn message_updated(&mut self) {
        let session_id = self.message.session_id.clone();
        let info = Message::Assistant(self.message.clone());
        self.records.push(Record::Event(Event::MessageUpdated { session_id, info }));
    }
}

/// Records that a call differs from what the model wrote.
fn mark_repaired(state: &mut ToolState) {
    let metadata = match state {
        ToolState::Pending { .. } => return,
        ToolState::Completed { metadata, .. } => metadata,
        ToolState::Running { metadata, .. } | ToolState::Error { metadata, .. } => {
            metadata.get_or_insert_default()
        }
    };
    metadata.insert(REPAIRED.to_owned(), true.into());
}

fn text_body(reasoning: bool, text: String, time: Span, metadata: Option<Value>) -> PartBody {
    let text = Arc::from(text);
    if reasoning {
        PartBody::Reasoning { text, metadata, time }
    } else {
        PartBody::Text(TextPart { text, time: Some(time), metadata, ..TextPart::default() })
    }
}

/// Converts the provider's counts to the form of the API.
pub(crate) fn tokens(usage: &Usage) -> TokenUsage {
    TokenUsage {
        total: usage.total,
        input: usage.input,
        output: usage.output,
        reasoning: usage.reasoning,
        cache: CacheUsage { read: usage.cache_read, write: usage.cache_write },
    }
}
