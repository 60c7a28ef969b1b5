//! Where a route is answered, if several servers share a database. `route/table/` states it for each route.

/// The servers that can answer a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Every server: the answer is in the store, or about the server itself.
    Here,
    /// The owner of the session in the path, or a server that can work in its directory.
    Session,
    /// The same, but the receiving server if there is none.
    SessionOrHere,
    /// A server that can work in the directory that the request names; the receiving one if it can.
    Directory,
    /// All servers. The answers are joined.
    Everywhere,
    /// The server that has it.
    Holder(Holder),
}

/// What only one server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The terminal in the path.
    Terminal,
    /// The question in the path.
    Question,
    /// The question in the body.
    QuestionInBody,
}

/// The server that has the terminal in the path.
pub(crate) const OF_TERMINAL: Reach = Reach::Holder(Holder::Terminal);
/// The server that has the question in the path.
pub(crate) const OF_QUESTION: Reach = Reach::Holder(Holder::Question);
/// The server that has the question in the body.
pub(crate) const OF_QUESTION_IN_BODY: Reach = Reach::Holder(Holder::QuestionInBody);
