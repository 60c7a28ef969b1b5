//! Code review: builds the prompt for the model, and parses the findings in its answer.
//!
//! A review is a session. It can read files and ask git about changes, and nothing else: the text under review must not
//! make the model write, run or fetch something. The findings are the structured answer of the session, so they are there
//! as long as the session is.

pub(crate) mod finding;

use codewright_proto::{
    Action, Message, MessageWithParts, OutputFormat, PartInput, PromptInput, Review, ReviewRequest, Rule,
    SessionId, SessionInput,
};
use codewright_workspace::Workspace;
use serde_json::Value;

use crate::interface::{Permissions, Sessions};
use crate::plugins::current::current;
use crate::{Error, Instance, prompts};

/// How often the model may correct an answer that does not fit the schema.
const RETRIES: u32 = 3;
/// The newest messages of a session that are searched for the answer.
const SEARCHED_MESSAGES: usize = 50;
/// What the model may do: the last matching rule decides.
const RULES: [(&str, &str, Action); 17] = [
    ("*", "*", Action::Deny),
    ("StructuredOutput", "*", Action::Allow),
    ("read", "*", Action::Allow),
    ("read", "*.env", Action::Deny),
    ("read", "*.env.*", Action::Deny),
    ("read", "*.env.example", Action::Allow),
    ("grep", "*", Action::Allow),
    ("glob", "*", Action::Allow),
    ("list", "*", Action::Allow),
    ("lsp", "*", Action::Allow),
    ("bash", "git diff *", Action::Allow),
    ("bash", "git show *", Action::Allow),
    ("bash", "git log *", Action::Allow),
    ("bash", "git status *", Action::Allow),
    // These options write a file and run a program. Git accepts every unique beginning of an option.
    ("bash", "git *--o*", Action::Deny),
    ("bash", "git *--ext*", Action::Deny),
    // Commands of the session get the mode `read-only`.
    ("sandbox", "workspace", Action::Deny),
];

impl Instance {
    /// Returns the session and the prompt of a review, or `None` if nothing has changed.
    ///
    /// # Errors
    ///
    /// Fails outside of a repository, and for a range whose commits do not exist.
    pub async fn review_request(&self, range: Option<&str>) -> Result<Option<ReviewRequest>, Error> {
        let range = range.map(str::trim).filter(|range| !range.is_empty());
        let Some(scope) = self.review_scope(range).await? else { return Ok(None) };
        let title = format!("Review of {}", range.unwrap_or("uncommitted changes"));
        let rules = RULES.map(|(permission, pattern, action)| Rule::new(permission, pattern, action));
        let format = OutputFormat::JsonSchema { schema: finding::schema(), retry_count: Some(RETRIES) };
        Ok(Some(ReviewRequest {
            session: SessionInput {
                title: Some(title),
                permission: Some(rules.into()),
                ..SessionInput::default()
            },
            prompt: PromptInput {
                format: Some(format),
                parts: vec![PartInput::text(format!("{}\n\n{scope}", prompts::FINDINGS.trim()))],
                ..PromptInput::default()
            },
        }))
    }

    /// Returns the description of the changes to review, or `None` if nothing has changed.
    async fn review_scope(&self, range: Option<&str>) -> Result<Option<String>, Error> {
        if !self.is_repository() {
            return Err(Error::invalid("a review needs a git repository"));
        }
        let Some(range) = range else {
            return Ok((!self.vcs_status().await?.is_empty()).then(|| {
                "Review the uncommitted work: `git diff HEAD`, and the new files of `git status --short`."
                    .to_owned()
            }));
        };
        let (from, to) = range.split_once("...").or_else(|| range.split_once("..")).unwrap_or((range, ""));
        for name in [from, to].into_iter().filter(|name| !name.is_empty()) {
            if !self.has_commit(name).await {
                return Err(Error::invalid(format!(
                    "there is no commit `{name}`; name a range, such as `main...HEAD`"
                )));
            }
        }
        let range = if range.contains("..") { range.to_owned() } else { format!("{range}...HEAD") };
        Ok(Some(format!("Review the changes of `git diff {range}`.")))
    }
}

impl Sessions<'_> {
    /// Returns the findings of a review.
    ///
    /// # Errors
    ///
    /// Fails with the reason if there is no answer: a review without one must not look like a review without findings.
    pub async fn review(self, id: &SessionId) -> Result<Review, Error> {
        let session = self.0.session(id).await?;
        let answer = structured(&self.0.store.messages(id, Some(SEARCHED_MESSAGES)).await?)?;
        let instance = current(self.0, std::path::Path::new(&session.directory)).await?;
        let root = instance.worktree.root.clone();
        let kept = Permissions(self.0).kept_from_users(&instance)?;
        let workspace = Workspace::fixed(&instance.directory, &root);
        let read =
            tokio::task::spawn_blocking(move || finding::read(&answer, &workspace, &root, &kept)).await;
        match read {
            Ok(Ok(review)) => Ok(review),
            Ok(Err(error)) => {
                Err(Error::invalid(format!("the review failed: the findings cannot be read: {error}")))
            }
            Err(error) => Err(Error::machine(format!("the findings cannot be read: {error}"))),
        }
    }
}

/// Returns the newest list of findings. Later prompts of the session may have other answers.
fn structured(messages: &[MessageWithParts]) -> Result<Value, Error> {
    let answers = messages.iter().rev().filter_map(|message| match &message.info {
        Message::Assistant(info) => Some(info),
        Message::User(_) => None,
    });
    let found =
        answers.clone().find_map(|info| info.structured.as_ref().filter(|it| it.get("findings").is_some()));
    if let Some(value) = found {
        return Ok(value.clone());
    }
    let reason = match answers.clone().next().map(|info| &info.error) {
        Some(Some(error)) => error.message(),
        Some(None) => "the model submitted no findings; try another model",
        None => "the model did not answer",
    };
    Err(Error::invalid(format!("the review failed: {reason}")))
}
