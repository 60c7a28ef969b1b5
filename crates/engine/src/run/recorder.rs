//! Turns what a model says and what its calls become into events of one assistant message.
//!
//! The recorder is the only writer of assistant parts. It decides, it does not do:
//! what it wants stored and shown is collected in order and taken by the step with
//! [`Recorder::take`]. Text that grows is announced by deltas only and written when
//! it is complete, so the log holds each text twice at most; between, [`Recorder::draft`]
//! gives what is worth keeping should the process die. What calls show of their progress
//! is recorded the more seldom the longer they work. Whatever happens to a step,
//! [`Recorder::close`] ends every part that is still open.

use std::sync::Arc;
use std::time::Duration;

use codewright_llm::{ModelEvent, Usage};
use codewright_proto::{
    AssistantMessage, CacheUsage, Clock, Event, Ids, Map, Message, MessageError, Part, PartBody, PartId,
    Signal, Span, StepFinish, TextPart, TokenUsage, ToolPart, ToolSpan, ToolState,
};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::files::Done;
use super::structured;
use crate::toolbox::changes_nothing;

/// The key under which a call's metadata says how it was cut off.
pub(crate) const INTERRUPTED: &str = "interrupted";
/// It may have taken effect.
pub(crate) const UNCERTAIN: &str = "uncertain";
/// What a call is told when the turn ends before it does.
pub(crate) const CALL_ABORTED: &str = "Tool execution aborted";

/// The shortest time between two drafts of a text, and between two records of a call's progress.
const SHORTEST: Duration = Duration::from_millis(100);
/// Bytes of drafts a second: a long text is drafted whole each time, so it is drafted more seldom.
const DRAFT_BYTES_A_SECOND: u64 = 1024 * 1024;
/// Progress is recorded this often in the time that a call has worked.
const PROGRESS_IN_ALL: u32 = 50;
/// The longest time between two records of a call's progress.
const LONGEST: Duration = Duration::from_secs(5);

/// Something to store or to show, in the order it happened.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few at a time, and moved at most twice")]
pub(crate) enum Record {
    Event(Event),
    Signal(Signal),
}

/// A call that the model has finished writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments as the model wrote them; perhaps not JSON.
    pub(crate) arguments: String,
}

/// How far a call is, said by the toolbox.
#[derive(Debug)]
pub(crate) struct CallUpdate {
    pub(crate) call_id: String,
    /// The tool to show; differs from the one named by the model for `invalid`.
    pub(crate) tool: String,
    pub(crate) state: ToolState,
    /// Told once the state is stored.
    pub(crate) stored: Option<oneshot::Sender<()>>,
}

pub(crate) struct Recorder {
    ids: Ids,
    clock: Clock,
    message: AssistantMessage,
    step_open: bool,
    /// The part that began the step, and whether it names the tree.
    step_start: Option<(PartId, bool)>,
    /// The tree of the directory when the step began.
    tree: Option<String>,
    /// The value that the prompt asked for; told with the end of the message.
    value: Option<Value>,
    block: Option<Block>,
    /// Texts of this attempt that are closed: they are emptied if it is given up.
    closed: Vec<(PartId, bool, Span)>,
    calls: Vec<OpenCall>,
    records: Vec<Record>,
}

/// A text or a reasoning that grows.
struct Block {
    id: PartId,
    reasoning: bool,
    text: String,
    /// What the provider needs back with it.
    metadata: Option<Value>,
    start: u64,
    /// How much of the text the last draft had, and when it was made.
    drafted: (usize, Instant),
}

impl Block {
    /// When the text may be drafted, if it has grown.
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
    /// What the provider needs back with it.
    metadata: Option<Value>,
    /// When it began to run, with what, and what it last showed.
    running: Option<(u64, Value, Option<Map>)>,
    /// Progress that has not been recorded.
    progress: Option<ToolState>,
    /// When the call began to run here, and when something was last recorded of it.
    recorded: Option<(Instant, Instant)>,
    closed: bool,
}

impl OpenCall {
    /// When more progress may be recorded.
    fn due(&self) -> Option<Instant> {
        let (begun, last) = self.recorded?;
        Some(last + ((last - begun) / PROGRESS_IN_ALL).clamp(SHORTEST, LONGEST))
    }
}

impl Recorder {
    /// Begins a message, which is recorded at once.
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

    /// The same for a message that no model speaks: it has no steps.
    #[must_use]
    pub(crate) fn without_steps(mut self) -> Self {
        self.step_open = true;
        self
    }

    /// What was recorded since the last time, in order.
    pub(crate) fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Whether something waits that must be stored.
    pub(crate) fn has_events(&self) -> bool {
        self.records.iter().any(|record| matches!(record, Record::Event(_)))
    }

    /// Whether something waits that is only shown.
    pub(crate) fn has_deltas(&self) -> bool {
        self.records.iter().any(|record| matches!(record, Record::Signal(_)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The message as it stands.
    pub(crate) fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// Whether this attempt at an answer has said anything.
    pub(crate) fn has_begun(&self) -> bool {
        self.step_open
    }

    /// Whether the model called anything in this message.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Records what the model says; a call that is complete is given back to be run.
    pub(crate) fn push(&mut self, event: ModelEvent) -> Option<Call> {
        match event {
            ModelEvent::TextDelta(text) => self.grow(false, &text),
            ModelEvent::ReasoningDelta(text) => self.grow(true, &text),
            ModelEvent::TextStart => self.open(false),
            ModelEvent::ReasoningStart => self.open(true),
            ModelEvent::TextEnd => self.end_block(None),
            ModelEvent::ReasoningEnd { metadata } => {
                // A provider may give only an opaque item to send back, and no text at all.
                if metadata.is_some() && self.block.as_ref().is_none_or(|block| !block.reasoning) {
                    self.open(true);
                }
                self.end_block(metadata);
            }
            ModelEvent::Metadata { call: None, metadata } => self.belongs(metadata),
            // Written with the call's next state, which follows at once.
            ModelEvent::Metadata { call: Some(id), metadata } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.call_id == id) {
                    call.metadata = Some(metadata);
                }
            }
            ModelEvent::ToolStart { id, name } => self.call_started(id, name),
            ModelEvent::ToolDelta { .. } => {}
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

    /// The text that grows, if it is time to keep what there is of it.
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

    /// When there is something to record or to draft that has been held back.
    pub(crate) fn due(&self) -> Option<Instant> {
        let waiting = self.calls.iter().filter(|call| call.progress.is_some());
        waiting.filter_map(OpenCall::due).chain(self.block.as_ref().and_then(Block::due)).min()
    }

    /// Records progress that was held back long enough.
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

    /// Records how far a call is.
    pub(crate) fn call_updated(&mut self, update: CallUpdate) {
        let Some(at) = self.calls.iter().position(|call| call.call_id == update.call_id && !call.closed)
        else {
            return;
        };
        let call = &mut self.calls[at];
        call.tool = update.tool;
        call.closed = !update.state.is_open();
        // What was held back is older than this.
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
            // What a call showed while it worked stays when it fails.
            ToolState::Error { metadata, .. } if metadata.is_none() => {
                *metadata = call.running.take().and_then(|(_, _, shown)| shown);
            }
            ToolState::Pending { .. } | ToolState::Completed { .. } | ToolState::Error { .. } => {}
        }
        self.record_call(at, state);
    }

    /// Gives up an attempt: what it said is emptied, so that the next one does not repeat it.
    ///
    /// Only attempts without calls are given up; calls have effects that cannot be taken back.
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

    /// Takes back that the answer ended: a step that was stopped has no end, whatever its model said last.
    pub(crate) fn unfinish(&mut self) {
        self.message.finish = None;
        self.message.tokens = TokenUsage::default();
    }

    /// Records the end of the step: its usage, its cost and why it ended.
    ///
    /// An answer that is good as far as it goes may still be the last one that is tried.
    pub(crate) fn finish(&mut self, cost: f64, error: Option<MessageError>, done: Done) {
        self.begin_step();
        self.end_block(None);
        self.message.cost += cost;
        let body = PartBody::StepFinish(StepFinish {
            reason: self.message.finish.clone().unwrap_or_else(|| "unknown".to_owned()),
            snapshot: done.tree,
            cost,
            tokens: self.message.tokens,
        });
        let id = self.ids.part();
        self.record_part(id, body);
        // Clients hear what the step cost before it is known what it did to files.
        self.message_updated();
        self.changed(done.patch);
        self.close(error);
    }

    /// Records which files the step changed.
    pub(crate) fn changed(&mut self, patch: Option<PartBody>) {
        if let Some(patch) = patch {
            let id = self.ids.part();
            self.record_part(id, patch);
        }
    }

    /// Learns the tree of the directory when the step began, which may be found after the answer has.
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

    /// Whether the model handed in a value that was refused.
    pub(crate) fn has_refused_value(&self) -> bool {
        self.value.is_none() && self.calls.iter().any(|call| call.tool == structured::TOOL)
    }

    /// Ends every open part and the message itself.
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
                // It was told to end and has not said how it did.
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
            // A message with a value is told of twice, as clients know it.
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

    /// Keeps what belongs to the open text; what is known when it begins is told with its beginning.
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
        // Deltas that nobody has seen yet become one: clients draw frames, not tokens.
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
            progress: None,
            recorded: None,
            closed: false,
        });
        self.record_call(self.calls.len() - 1, ToolState::pending());
    }

    fn record_call(&mut self, at: usize, state: ToolState) {
        let call = &self.calls[at];
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

fn text_body(reasoning: bool, text: String, time: Span, metadata: Option<Value>) -> PartBody {
    let text = Arc::from(text);
    if reasoning {
        PartBody::Reasoning { text, metadata, time }
    } else {
        PartBody::Text(TextPart { text, time: Some(time), metadata, ..TextPart::default() })
    }
}

/// The provider's counts in the form that clients read.
pub(crate) fn tokens(usage: &Usage) -> TokenUsage {
    TokenUsage {
        total: usage.total,
        input: usage.input,
        output: usage.output,
        reasoning: usage.reasoning,
        cache: CacheUsage { read: usage.cache_read, write: usage.cache_write },
    }
}
