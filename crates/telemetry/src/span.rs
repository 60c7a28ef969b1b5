//! One piece of work, and which piece it belongs to.

use std::sync::Arc;
use std::time::Instant;

use crate::tracer::Shared;

/// The most facts of one span.
const MAX_FACTS: usize = 24;
/// The longest text among them.
const MAX_TEXT_BYTES: usize = 200;

tokio::task_local! {
    static CURRENT: Option<Context>;
}

/// A span as those know it that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    pub(crate) trace: u128,
    pub(crate) span: u64,
    /// Whether the trace is told.
    pub(crate) is_told: bool,
}

impl Context {
    /// What a client says in the header `traceparent`, if it says it well.
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
        Some(Self { trace, span, is_told: flags & 1 == 1 })
    }
}

/// Which side of a conversation a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Work of our own.
    Internal,
    /// A request that we answer.
    Server,
    /// A request that we send.
    Client,
}

/// A fact about a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fact {
    Text(String),
    Number(u64),
}

impl From<u64> for Fact {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u16> for Fact {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Self {
        Self::Text(cut(text).to_owned())
    }
}

/// A span that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) context: Context,
    pub(crate) parent: Option<u64>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    pub(crate) facts: Vec<(&'static str, Fact)>,
    pub(crate) has_failed: bool,
}

/// A piece of work at work; told when it is dropped.
#[derive(Default)]
pub struct Span(Option<Box<Open>>);

struct Open {
    shared: Arc<Shared>,
    ended: Ended,
}

impl Span {
    pub(crate) fn open(shared: &Arc<Shared>, name: &str, kind: Kind, parent: Option<Context>) -> Self {
        let context = shared.below(parent);
        let began = Instant::now();
        let ended = Ended {
            context,
            parent: parent.map(|parent| parent.span),
            name: cut(name).to_owned(),
            kind,
            began,
            ended: began,
            facts: Vec::new(),
            has_failed: false,
        };
        Self(Some(Box::new(Open { shared: Arc::clone(shared), ended })))
    }

    /// Adds a fact: a name or a number of our own, never a text of somebody's.
    pub fn set(&mut self, name: &'static str, value: impl Into<FactValue>) {
        if let Some(open) = &mut self.0
            && open.ended.facts.len() < MAX_FACTS
        {
            open.ended.facts.push((name, value.into().0));
        }
    }

    /// Says that the work failed, and in which of our own classes.
    pub fn fail(&mut self, class: &'static str) {
        self.set("error.type", class);
        if let Some(open) = &mut self.0 {
            open.ended.has_failed = true;
        }
    }

    /// The span as its parts know it; nothing when nothing is told.
    #[must_use]
    pub fn context(&self) -> Option<Context> {
        self.0.as_ref().map(|open| open.ended.context)
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let Open { shared, mut ended } = *open;
            ended.ended = Instant::now();
            shared.tell(ended);
        }
    }
}

/// What a fact may be.
pub struct FactValue(Fact);

impl<T: Into<Fact>> From<T> for FactValue {
    fn from(value: T) -> Self {
        Self(value.into())
    }
}

/// The span that the calling task works for.
#[must_use]
pub fn current() -> Option<Context> {
    CURRENT.try_with(|current| *current).ok().flatten()
}

/// Works for a span; without one for none.
pub async fn within<T>(context: Option<Context>, work: impl Future<Output = T>) -> T {
    CURRENT.scope(context, work).await
}

/// Work that another task will do for the span that this one works for.
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
    fn only_well_made_parents_are_taken() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let told = Context::parse(&format!("00-{trace}-{span}-01")).unwrap();
        assert_eq!(
            (told.trace, told.span),
            (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0xb7ad_6b71_6920_3331)
        );
        assert!(told.is_told);
        assert!(!Context::parse(&format!("00-{trace}-{span}-00")).unwrap().is_told);
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
