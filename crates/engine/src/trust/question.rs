//! The trust question at a session's first prompt, for clients without a trust dialog.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codewright_proto::{
    Action, Question, QuestionOption, Rule, Session, TrustChoice, TrustInput, TrustStatus,
};
use tokio_util::sync::CancellationToken;

use super::Standing;
use super::operations::decide;
use crate::Error;
use crate::inner::Inner;
use crate::permission::evaluate::evaluate;
use crate::question::Reply;

/// How long a question waits. After that the session continues without trust.
const ASK_DEADLINE: Duration = Duration::from_secs(10 * 60);
/// The number of requests that a question lists. A question with more does not offer trust, because a user accepts only
/// listed requests.
const MAX_LISTED: usize = 200;
const TRUST: &str = "Trust this repository";
const RESTRICT: &str = "Do not trust it";
const LATER: &str = "Not now";

/// Sends the user a question about the directory of a session, if there is no decision yet and a client can show a question.
///
/// # Errors
///
/// Fails if the directory cannot be opened. A failure to store the decision is only a warning of the directory.
pub(crate) async fn ask(
    inner: &Arc<Inner>,
    session: &Session,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let directory = Path::new(&session.directory);
    // The decision holds for everybody, so a user who is not an administrator cannot make it and need not wait for it.
    if session.access.as_ref().is_some_and(|access| !access.admin) {
        return Ok(());
    }
    if session.parent_id.is_some() || !inner.instance(directory).await?.trust.is_open(inner) {
        return Ok(());
    }
    // A client that answers no questions has a session rule against them.
    let rules = session.permission.as_deref().unwrap_or_default();
    let is_denied =
        evaluate(rules.iter(), "question", "*").is_some_and(|rule: &Rule| rule.action == Action::Deny);
    if is_denied || !inner.instances.heads.has_followers() {
        return Ok(());
    }
    let root = inner.instance(directory).await?.trust.root.clone();
    let asking = inner.trust.asking(&root);
    let Some(_turn) = cancel.run_until_cancelled(asking.turn.lock()).await else { return Ok(()) };
    // Registered before the directory is checked, so that a decision in the meantime is noticed.
    let settled = asking.settled.notified();
    // Another session may have sent the question in the meantime.
    let instance = inner.instance(directory).await?;
    if !instance.trust.is_open(inner) {
        return Ok(());
    }
    let asked = inner.questions.ask_administrator(&session.id, question(&instance.trust), cancel);
    let reply = tokio::select! {
        reply = tokio::time::timeout(ASK_DEADLINE, asked) => reply,
        // A client with a dialog answered first.
        () = settled => return Ok(()),
    };
    let choice = match reply {
        Ok(Reply::Answered(answers)) => choice(&answers),
        Ok(Reply::Dismissed | Reply::Crowded) | Err(_) => None,
        Ok(Reply::Cancelled) => return Ok(()),
    };
    let is_offered = |decision: &TrustChoice| {
        *decision == TrustChoice::Restrict || instance.trust.requests.len() <= MAX_LISTED
    };
    let Some(decision) = choice.filter(is_offered) else {
        inner.trust.dismiss(&instance.trust);
        return Ok(());
    };
    let input = TrustInput { decision, fingerprint: instance.trust.fingerprint.clone() };
    if let Err(error) = decide(inner, &instance, input).await {
        inner.trust.dismiss(&instance.trust);
        inner.instance(directory).await?.warn(&format!("the trust decision is not stored: {error}"));
    }
    Ok(())
}

impl Standing {
    /// Reports whether the user has to decide.
    fn is_open(&self, inner: &Inner) -> bool {
        self.status == TrustStatus::Undecided && !inner.trust.is_dismissed(self)
    }
}

fn question(standing: &Standing) -> Question {
    let mut text =
        format!("Do you trust the repository `{}`? Its configuration wants to:\n", standing.root.display());
    for request in standing.requests.iter().take(MAX_LISTED) {
        text.push_str(&format!("- {} ({})\n", request.text, request.source));
    }
    let more = standing.requests.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        text.push_str(&format!("- and {more} more actions; decide with `codewright trust add`\n"));
    }
    if !standing.changes.is_empty() {
        let paths: Vec<_> =
            standing.changes.iter().take(MAX_LISTED).map(|change| change.path.as_str()).collect();
        text.push_str(&format!("Changed since you decided: {}\n", paths.join(", ")));
    }
    let option = |label: &str, description: &str| QuestionOption {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    let trust = option(TRUST, "The configuration takes effect until one of its files changes");
    let others = [
        option(LATER, "Continue without it, and ask again the next time the program starts"),
        option(RESTRICT, "Only the parts that cannot hurt take effect"),
    ];
    Question {
        question: text,
        header: "Trust".to_owned(),
        // Clients select the first option, and a hasty key must not trust.
        options: others.into_iter().chain((more == 0).then_some(trust)).collect(),
        multiple: None,
        custom: Some(false),
    }
}

/// Returns the decision in an answer. Only the exact text of the option trusts.
fn choice(answers: &[Vec<String>]) -> Option<TrustChoice> {
    match answers.first().map(Vec::as_slice) {
        Some([only]) if only == TRUST => Some(TrustChoice::Trust),
        Some([only]) if only == RESTRICT => Some(TrustChoice::Restrict),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_answer_trusts() {
        let answer = |words: &[&str]| choice(&[words.iter().map(|word| (*word).to_owned()).collect()]);
        assert_eq!(answer(&[TRUST]), Some(TrustChoice::Trust));
        assert_eq!(answer(&[RESTRICT]), Some(TrustChoice::Restrict));
        for other in [&[][..], &["yes"], &[LATER], &[TRUST, RESTRICT], &["trust this repository"]] {
            assert_eq!(answer(other), None, "{other:?}");
        }
        assert_eq!(choice(&[]), None);
    }
}
