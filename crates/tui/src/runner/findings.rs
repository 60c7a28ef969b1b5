//! Reviews of changes, reports of bugs, and the files that they write.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use codewright_client::Client;
use codewright_proto::{PromptInput, PromptModel, SessionId};
use tokio::sync::mpsc;

use super::{describe, failure};
use crate::layer::findings::key_of;
use crate::msg::{Msg, Reply};

/// A model of a provider, and its variant.
type Chosen = ((String, String), Option<String>);

/// Starts a review in a new session.
pub(super) async fn begin(
    client: &Client,
    range: Option<String>,
    ((provider_id, model_id), variant): Chosen,
    sender: &mpsc::Sender<Msg>,
) -> Option<Reply> {
    let begun = async {
        let request = client.review_request(range.as_deref()).await?;
        let session = client.create_session(&request.session).await?;
        let id = session.id.clone();
        // The client must know the session before its first event. Sending fails only if the client has ended.
        drop(sender.send(Msg::Reply(Reply::ReviewBegun(Box::new(session)))).await);
        let model = Some(PromptModel { provider_id, model_id, variant: None });
        let input = PromptInput { model, chosen: Some(true), variant, ..request.prompt };
        client.prompt_async(&id, &input).await
    };
    let error = begun.await.err()?;
    failure("cannot review", &error)
}

pub(super) async fn load(client: &Client, session: SessionId) -> Option<Reply> {
    let review = client.review(&session).await.map_err(|error| describe(&error));
    Some(Reply::Findings { session, review })
}

/// Applies the change of a finding. Its patch is fetched again, because other changes of the file may have moved the lines.
pub(super) async fn apply(client: &Client, session: &SessionId, key: String) -> Option<Reply> {
    let applied = async {
        let review = client.review(session).await?;
        let finding = review.findings.into_iter().find(|finding| key_of(finding) == key);
        match finding.and_then(|finding| finding.patch) {
            Some(patch) => client.apply_patch(&patch).await.map(|_| true),
            None => Ok(false),
        }
    };
    let result = match applied.await {
        Ok(true) => Ok(()),
        Ok(false) => Err("the original lines are not in the file".to_owned()),
        Err(error) => Err(describe(&error)),
    };
    Some(Reply::FindingApplied { key, result })
}

/// Writes the report of a bug into the directory of the client.
pub(super) async fn report(client: &Client) -> Option<Reply> {
    let report = match client.bug_report().await {
        Ok(report) => report,
        Err(error) => {
            let why = format!("the report cannot be made: {}", describe(&error));
            return Some(Reply::BugReported(Err(why)));
        }
    };
    let written = write_new(&report.name, &report.text);
    Some(Reply::BugReported(written.map(|path| (path, report.advice))))
}

/// Writes a file that does not exist yet, and returns its path.
pub(super) fn write_new(name: &str, text: &str) -> Result<String, String> {
    let mut options = OpenOptions::new();
    let opened = options.create_new(true).write(true).mode(0o600).open(name);
    let mut file = opened.map_err(|error| format!("cannot create `{name}`: {error}"))?;
    file.write_all(text.as_bytes()).map_err(|error| format!("cannot write `{name}`: {error}"))?;
    Ok(std::path::absolute(name).map_or_else(|_| name.to_owned(), |path| path.display().to_string()))
}
