//! Starts the servers of a directory and does what they need.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use codewright_config::{NetworkAccess, SandboxMode, needs_network};
use codewright_mcp::auth::Web;
use codewright_mcp::{
    Boxed, ElicitReply, Elicitation, Field, FieldKind, Host, Local, Sampled, Sampling, Servers,
};
use codewright_proto::Signal;
use codewright_tools::tags::neutralize;
use codewright_tools::{Choice, UserQuestion};
use codewright_workspace::{Author, Command};
use serde_json::{Map, Value, json};
use url::Url;

use super::tokens::{Token, Tokens};
use super::{sample, shown};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::journal::Level;
use crate::sandbox::prepared::{Origin, Prepared, Wanted, prepare};

/// The choices of a question about consent.
const CONSENT: [(&str, &str); 2] =
    [("Accept", "Send this to the server"), ("Decline", "Send nothing to the server")];

/// The characters of a server's message that the user sees.
const MAX_MESSAGE_CHARS: usize = 2000;

/// The host of the servers of one directory.
pub(crate) struct EngineHost {
    inner: Weak<Inner>,
    instance: Arc<Instance>,
    tokens: Tokens,
}

/// Returns the servers of a directory, started, or `None` if there are none.
pub(crate) fn servers(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Option<Servers> {
    if instance.mcp.is_empty() && inner.mcp.find(&instance.directory).is_none() {
        return None;
    }
    let servers = opened(inner, instance);
    servers.start();
    Some(servers)
}

/// Returns the servers of a directory, also if there are none yet.
pub(crate) fn opened(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Servers {
    let create = || {
        let host = EngineHost {
            inner: Arc::downgrade(inner),
            instance: instance.clone(),
            tokens: inner.mcp.tokens.clone(),
        };
        Servers::new(Arc::new(host), instance.mcp.as_ref().clone())
    };
    let (servers, closed) = inner.mcp.open(&instance.directory, &instance.mcp, inner.clock.now_ms(), create);
    if let Some(closed) = closed {
        inner.tasks.spawn(async move { closed.close().await });
    }
    servers
}

/// Starts the servers of a directory and waits until each is connected or has failed.
pub(crate) async fn ready(inner: &Arc<Inner>, instance: &Arc<Instance>) {
    if let Some(servers) = servers(inner, instance) {
        servers.settled().await;
    }
}

impl EngineHost {
    /// Whose rights a server has.
    fn origin(&self, local: &Local, of_repository: bool) -> Origin {
        let words: Vec<&str> =
            std::iter::once(local.program.as_str()).chain(local.args.iter().map(String::as_str)).collect();
        let has_network = || local.network.unwrap_or_else(|| needs_network(&words));
        match (of_repository, local.is_confined) {
            (false, false) => Origin::User,
            (false, true) => Origin::Confined,
            (true, false) if self.instance.trust.grants_network && has_network() => {
                Origin::RepositoryWithNetwork
            }
            (true, _) => Origin::Repository,
        }
    }
}

impl Host for EngineHost {
    fn command(&self, server: &str, local: &Local, of_repository: bool) -> Result<Command, String> {
        let Some(inner) = self.inner.upgrade() else { return Err("The program is ending.".to_owned()) };
        let own = &self.instance.directory;
        let cwd = local.cwd.as_ref().map(|cwd| own.join(cwd));
        if let Some(missing) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(format!("`cwd` names `{}`, which is not a directory.", missing.display()));
        }
        let wanted = Wanted {
            program: &local.program,
            args: &local.args,
            cwd: cwd.as_deref(),
            directory: own,
            origin: self.origin(local, of_repository),
            write: &[],
            required: SandboxMode::Off,
        };
        let Prepared { program, args, directory, mut env, mut env_remove, sandbox } =
            prepare(&inner, &self.instance, wanted)?;
        if !of_repository {
            // The user has given the server these variables, under whatever name.
            let key = format!("mcp.{server}.");
            env_remove.retain(|name| !self.instance.secrets.uses(name, &key));
        }
        env.extend(local.environment.iter().map(|(name, value)| (name.clone(), value.clone())));
        // The log names what runs, and never its variables, which contain keys.
        self.log(server, &format!("starting `{}` in `{}`", local.program, directory.display()));
        Ok(Command {
            program,
            args: args.into_iter().map(Into::into).collect(),
            directory,
            env,
            env_remove,
            confinement: inner.confinement.clone(),
            sandbox,
            author: Author::Model,
        })
    }

    fn limits(&self, local: &Local, of_repository: bool) -> Option<String> {
        let origin = self.origin(local, of_repository);
        let has_network = matches!(origin, Origin::User | Origin::RepositoryWithNetwork);
        if has_network || self.instance.sandbox.network == NetworkAccess::Open {
            return None;
        }
        Some(if of_repository && !self.instance.trust.grants_network {
            "It has no network. If it needs one, write `\"network\": true` into its entry, and trust the repository again: \
             `codewright trust add`."
                .to_owned()
        } else if of_repository {
            "It has no network. If it needs one, write `\"network\": true` into its entry.".to_owned()
        } else {
            "It is confined and has no network. Without `\"confine\": true` it would have one.".to_owned()
        })
    }

    fn http(&self, url: &Url) -> Result<reqwest::Client, String> {
        let Some(inner) = self.inner.upgrade() else { return Err("The program is ending.".to_owned()) };
        inner.llm.http(url).map_err(|error| error.to_string())
    }

    fn token<'a>(
        &'a self,
        server: &'a str,
        url: &'a Url,
        rejected: Option<&'a str>,
    ) -> Boxed<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            match self.tokens.token(server, url, rejected).await? {
                Token::Valid(token) => Ok(Some(token)),
                Token::Missing => Ok(None),
                Token::Refused(why) => {
                    self.log(server, &format!("the user must sign in again: {why}"));
                    Ok(None)
                }
            }
        })
    }

    fn web(&self) -> Arc<dyn Web> {
        self.tokens.web()
    }

    fn roots(&self) -> Vec<PathBuf> {
        vec![self.instance.directory.clone()]
    }

    fn client(&self) -> (String, String) {
        let version = self.inner.upgrade().map_or("", |inner| inner.version);
        ("codewright".to_owned(), version.to_owned())
    }

    fn tools_changed(&self, server: &str) {
        if let Some(inner) = self.inner.upgrade() {
            let directory = self.instance.directory_text();
            inner.store.signal(Signal::McpToolsChanged { directory, server: server.to_owned() });
        }
    }

    fn neutral(&self, text: &str) -> String {
        neutralize(text).into_owned()
    }

    fn log(&self, server: &str, text: &str) {
        let Some(inner) = self.inner.upgrade() else { return };
        let (journal, text) = (inner.journal.clone(), text.to_owned());
        let about = json!({ "server": server, "directory": self.instance.directory_text() });
        inner.tasks.spawn(async move { journal.note(Level::Info, "mcp", &text, Some(about)).await });
    }

    fn elicit<'a>(&'a self, server: &'a str, asked: Elicitation) -> Boxed<'a, ElicitReply> {
        Box::pin(async move {
            let host =
                self.inner.upgrade().and_then(|inner| inner.mcp.asking.of(&self.instance.directory, server));
            let Some(host) = host else { return ElicitReply::Cancelled };
            let asked = match safe(asked) {
                Ok(asked) => asked,
                Err(reason) => {
                    self.log(server, &format!("a question with an address was declined: {reason}"));
                    return ElicitReply::Declined;
                }
            };
            match host.ask_user(questions(server, &asked)).await {
                Ok(Some(answers)) => reply(&asked, &answers),
                Ok(None) => ElicitReply::Declined,
                Err(_) => ElicitReply::Cancelled,
            }
        })
    }

    fn sample<'a>(&'a self, server: &'a str, wanted: Sampling) -> Boxed<'a, Result<Sampled, String>> {
        Box::pin(async move {
            let host =
                self.inner.upgrade().and_then(|inner| inner.mcp.asking.of(&self.instance.directory, server));
            let host = host.ok_or("the server runs no call of the model")?;
            sample::sample(&*host, server, wanted).await
        })
    }
}

/// Returns a question whose texts are safe to show.
///
/// # Errors
///
/// Fails with a reason if its address must not be opened.
fn safe(asked: Elicitation) -> Result<Elicitation, String> {
    let url = asked.url.as_deref().map(shown::address).transpose()?;
    Ok(Elicitation { message: shown::text(&asked.message, MAX_MESSAGE_CHARS), url, ..asked })
}

/// The questions to the user: one for each value, or one about consent.
fn questions(server: &str, asked: &Elicitation) -> Vec<UserQuestion> {
    let choice = |label: &str, description: &str| Choice {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    let server = shown::line(server);
    let header: String = server.chars().take(30).collect();
    let source = format!("The MCP server `{server}` asks: {}", asked.message);
    if asked.fields.is_empty() {
        let address = asked.url.as_ref().map(|url| format!("\n{url}")).unwrap_or_default();
        return vec![UserQuestion {
            question: format!("{source}{address}"),
            header,
            options: CONSENT.map(|(label, description)| choice(label, description)).into(),
            multiple: None,
            custom: Some(false),
        }];
    }
    let question = |(at, field): (usize, &Field)| {
        let optional = if field.is_required { "" } else { " (optional)" };
        let own = format!("{}{optional} {}", field.title, field.description);
        let text = if at == 0 { format!("{source}\n{own}") } else { own };
        let options = match &field.kind {
            FieldKind::Text | FieldKind::Number => Vec::new(),
            FieldKind::Switch => vec![choice("Yes", ""), choice("No", "")],
            FieldKind::Choice(choices) => choices.iter().map(|(_, title)| choice(title, "")).collect(),
        };
        let custom = Some(options.is_empty());
        UserQuestion {
            question: text.trim().to_owned(),
            header: header.clone(),
            options,
            multiple: None,
            custom,
        }
    };
    asked.fields.iter().enumerate().map(question).collect()
}

/// The values in the user's answers. An answer that is missing or of another kind declines, unless it is optional.
fn reply(asked: &Elicitation, answers: &[Vec<String>]) -> ElicitReply {
    let answer = |at: usize| answers.get(at).and_then(|answer| answer.first()).map(|answer| answer.trim());
    if asked.fields.is_empty() {
        let is_accepted = answer(0) == Some(CONSENT[0].0);
        return if is_accepted { ElicitReply::Accepted(Map::new()) } else { ElicitReply::Declined };
    }
    let mut values = Map::new();
    for (at, field) in asked.fields.iter().enumerate() {
        let value =
            answer(at).filter(|answer| !answer.is_empty()).and_then(|answer| value(&field.kind, answer));
        match value {
            Some(value) => drop(values.insert(field.name.clone(), value)),
            None if field.is_required => return ElicitReply::Declined,
            None => {}
        }
    }
    ElicitReply::Accepted(values)
}

fn value(kind: &FieldKind, answer: &str) -> Option<Value> {
    match kind {
        FieldKind::Text => Some(answer.into()),
        FieldKind::Number => {
            let whole = answer.parse::<i64>().ok().map(Value::from);
            whole.or_else(|| answer.parse::<f64>().ok().map(Value::from)).filter(|value| !value.is_null())
        }
        FieldKind::Switch => match answer {
            "Yes" => Some(true.into()),
            "No" => Some(false.into()),
            _ => None,
        },
        FieldKind::Choice(choices) => {
            choices.iter().find(|(_, title)| title == answer).map(|(value, _)| value.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, kind: FieldKind, is_required: bool) -> Field {
        Field { name: name.to_owned(), title: name.to_owned(), description: String::new(), is_required, kind }
    }

    #[test]
    fn answers_become_values_of_their_kind() {
        let asked = Elicitation {
            message: "Who?".to_owned(),
            url: None,
            fields: vec![
                field("name", FieldKind::Text, true),
                field("age", FieldKind::Number, false),
                field("ok", FieldKind::Switch, true),
                field("size", FieldKind::Choice(vec![(json!("s"), "Small".to_owned())]), false),
            ],
        };
        let questions = questions("srv", &asked);
        assert!(questions[0].question.contains("Who?") && questions[0].question.contains("`srv`"));
        let answers = |texts: [&str; 4]| texts.map(|text| vec![text.to_owned()]).to_vec();
        let accepted = reply(&asked, &answers(["Ann", "7", "Yes", "Small"]));
        let ElicitReply::Accepted(values) = accepted else { panic!("{accepted:?}") };
        assert_eq!(Value::Object(values), json!({"name": "Ann", "age": 7, "ok": true, "size": "s"}));
        assert_eq!(reply(&asked, &answers(["", "7", "Yes", "Small"])), ElicitReply::Declined);
        assert_eq!(reply(&asked, &answers(["Ann", "x", "maybe", ""])), ElicitReply::Declined);
    }
}
