//! Spans and their contexts: one piece of work, and the span that is its parent.

use std::sync::Arc;
use std::time::Instant;

use crate::tracer::Shared;

/// The maximum number of attributes of a span.
const MAX_ATTRIBUTES: usize = 24;
/// The maximum length of names and of text values.
const MAX_TEXT_BYTES: usize = 200;

tokio::task_local! {
    static CURRENT: Option<Context>;
}

/// The identity of a span, for spans that are its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    pub(crate) trace: u128,
    pub(crate) span: u64,
    /// Whether the trace is exported.
    pub(crate) is_sampled: bool,
}

impl Context {
    /// Parses a `traceparent` header. Returns `None` if it is malformed.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.split('-');
        let [version, trace, span, flags] = [(); 4].map(|()| parts.next().unwrap_or_default());
        let is_hex = |text: &str, length| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_known = is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        if !is_known || !is_hex(trace, 32) || !is_hex(span, 16) || !is_hex(flags, 2) {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }
}

/// The role of a span in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Work inside the program.
    Internal,
    /// A request that the program answers.
    Server,
    /// A request that the program sends.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttributeValue {
    Text(String),
    Number(u64),
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u16> for AttributeValue {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(cut(text).to_owned())
    }
}

/// A span that has ended.
#[derive(Debug)]
pub(crate) struct FinishedSpan {
    pub(crate) context: Context,
    pub(crate) parent: Option<u64>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    pub(crate) attributes: Vec<(&'static str, AttributeValue)>,
    pub(crate) has_failed: bool,
}

/// A running piece of work; it is exported after it is dropped. The default span does nothing.
#[derive(Default)]
pub struct Span(Option<Box<ActiveSpan>>);

struct ActiveSpan {
    shared: Arc<Shared>,
    ended: FinishedSpan,
}

impl Span {
    pub(crate) fn open(shared: &Arc<Shared>, name: &str, kind: Kind, parent: Option<Context>) -> Self {
        let context = shared.child_context(parent);
        let began = Instant::now();
        let ended = FinishedSpan {
            context,
            parent: parent.map(|parent| parent.span),
            name: cut(name).to_owned(),
            kind,
            began,
            ended: began,
            attributes: Vec::new(),
            has_failed: false,
        };
        Self(Some(Box::new(ActiveSpan { shared: Arc::clone(shared), ended })))
    }

    /// Adds an attribute. The value must never be text of a user, a model, a file or a command.
    pub fn set(&mut self, name: &'static str, value: impl Into<SpanValue>) {
        if let Some(open) = &mut self.0
            && open.ended.attributes.len() < MAX_ATTRIBUTES
        {
            open.ended.attributes.push((name, value.into().0));
        }
    }

    /// Marks the work as failed, with one of the program's own error classes.
    pub fn fail(&mut self, class: &'static str) {
        self.set("error.type", class);
        if let Some(open) = &mut self.0 {
            open.ended.has_failed = true;
        }
    }

    /// Returns the context for children of this span, or `None` if tracing is off.
    #[must_use]
    pub fn context(&self) -> Option<Context> {
        self.0.as_ref().map(|open| open.ended.context)
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let ActiveSpan { shared, mut ended } = *open;
            ended.ended = Instant::now();
            shared.enqueue(ended);
        }
    }
}

/// A value that an attribute can have.
pub struct SpanValue(AttributeValue);

impl<T: Into<AttributeValue>> From<T> for SpanValue {
    fn from(value: T) -> Self {
        Self(value.into())
    }
}

/// Returns the context of the span that the calling task works for.
#[must_use]
pub fn current() -> Option<Context> {
    CURRENT.try_with(|current| *current).ok().flatten()
}

/// Runs `work` as part of a span, or of no span.
pub async fn within<T>(context: Option<Context>, work: impl Future<Output = T>) -> T {
    CURRENT.scope(context, work).await
}

/// Makes `work`, which another task will run, part of the calling task's span.
pub fn carry<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    CURRENT.scope(current(), work)
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_parents_are_rejected() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let parent = Context::parse(&format!("00-{trace}-{span}-01")).unwrap();
        assert_eq!(
            (parent.trace, parent.span),
            (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0xb7ad_6b71_6920_3331)
        );
        assert!(parent.is_sampled);
        assert!(!Context::parse(&format!("00-{trace}-{span}-00")).unwrap().is_sampled);
        assert!(Context::parse(&format!("01-{trace}-{span}-01-more")).is_some(), "later versions add parts");
        for header in [
            "",
            "00",
            &format!("00-{trace}-{span}"),
            &format!("00-{trace}-{span}-01-more"),
            &format!("ff-{trace}-{span}-01"),
            &format!("00-{}-{span}-01", "0".repeat(32)),
            &format!("00-{trace}-{}-01", "0".repeat(16)),
            &format!("00-{}-{span}-01", trace.to_uppercase()),
            &format!("00-+{}-{span}-01", &trace[1..]),
        ] {
            assert_eq!(Context::parse(header), None, "{header}");
        }
    }
}
