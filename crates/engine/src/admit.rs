//! Admits a message to a session: a prompt with its agent, model and file contents, or a request for a summary.
//!
//! A prompt is stored as a whole or not at all. Text files and directories are read at once with the tool that a model
//! would use, so that the model gets the content that the user saw.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codewright_llm::media_type;
use codewright_permission::{marked, principal_of};
use codewright_proto::{
    Action, CreatedTime, Message, MessageId, ModelRef, Part, PartBody, PartId, PartInput, Principal,
    PromptInput, PromptModel, Rule, Session, SessionId, TextPart, TokenUsage, UserMessage,
};
use codewright_tools::tags::neutralize;
use codewright_workspace::{Held, Likeness, Node, existing, hold, hold_at};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::address::{Address, FileAddress};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::mcp;
use crate::nodes::admission::{Reserved, reserve, secure};
use crate::run::compact::trigger::{Cause, request_summary};
use crate::run::message;
use crate::run::table::Turn;
use crate::run::wake::wake;
use crate::session::locks::Shared;
use crate::toolbox::cx;
use crate::users::quota;
use crate::{Error, acp, extension, plugins, session};

/// The number of parts of one prompt, without file contents.
const MAX_PARTS: usize = 1000;
/// The number of times a prompt tries to find its session without a revert.
const MAX_LOCK_ATTEMPTS: usize = 8;
/// The largest file that is sent to a model without conversion.
const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;
/// The first bytes of a file that show whether it is a picture or a document.
const HEAD_BYTES: u64 = 4096;
/// The media type of a directory.
const DIRECTORY: &str = "application/x-directory";

/// A message that starts or continues a turn.
pub(crate) enum Admission {
    /// A prompt.
    Prompt(Box<PromptInput>),
    /// A request for a summary by a model.
    Summary { model: PromptModel, cause: Cause },
}

/// Admits a message to a session and wakes the run that answers it, unless no answer is wanted.
pub(crate) async fn admit(
    inner: &Arc<Inner>,
    id: &SessionId,
    admission: Admission,
) -> Result<(MessageId, Option<Turn>), Error> {
    let _lock = lock(inner, id).await?;
    let session = session::in_use(inner, id).await?;
    let is_work = !matches!(&admission, Admission::Prompt(input) if input.no_reply == Some(true));
    // Held until the run is registered.
    let _starting = if is_work { Box::pin(quota::admit(inner, &session)).await? } else { None };
    let (message, wants_answer) = match admission {
        Admission::Prompt(input) => {
            let wants_answer = input.no_reply != Some(true);
            let reserved = if wants_answer { reserve(inner, &session).await? } else { None };
            inner.hosts.begin_turn(id);
            let stored = store(inner, &session, *input).await;
            (settle(inner, reserved, stored)?, wants_answer)
        }
        Admission::Summary { model, cause } => {
            let reserved = reserve(inner, &session).await?;
            let stored = store_summary_request(inner, &session, model, cause).await;
            (settle(inner, reserved, stored)?, true)
        }
    };
    let secured = if wants_answer { secure(inner, id).await } else { Ok(()) };
    let turn = wants_answer.then(|| wake(inner, id));
    secured?;
    Ok((message, turn))
}

/// Leaves a reserved session to the run that follows.
///
/// If the database could not be reached, the message may be stored although its caller gets an error. A run finds out.
fn settle(
    inner: &Arc<Inner>,
    reserved: Option<Reserved<'_>>,
    stored: Result<MessageId, Error>,
) -> Result<MessageId, Error> {
    let is_unknown = matches!(&stored, Err(Error::Store(error)) if error.is_passing());
    if let Some(reserved) = reserved.filter(|_| stored.is_ok() || is_unknown) {
        let session = reserved.session().clone();
        reserved.keep();
        if is_unknown {
            drop(wake(inner, &session));
        }
    }
    stored
}

/// Stores a request for a summary of a session by its agent.
async fn store_summary_request(
    inner: &Inner,
    session: &Session,
    model: PromptModel,
    cause: Cause,
) -> Result<MessageId, Error> {
    let instance = inner.instance(Path::new(&session.directory)).await?;
    instance.models.find(&model.provider_id, &model.model_id)?;
    check_choice(&instance, session, &model, None)?;
    let agent = instance.agent_name(session.agent.as_deref())?;
    request_summary(inner, &session.id, &agent, &model, cause).await
}

/// Takes the shared lock of a session after its reverted messages are removed.
pub(crate) async fn lock(inner: &Inner, id: &SessionId) -> Result<Shared, Error> {
    for _ in 0..MAX_LOCK_ATTEMPTS {
        session::revert::clean_up(inner, id).await?;
        let lock = inner.session_locks.shared(id).await?;
        // Another client may have reverted it again in between.
        if inner.session(id).await?.revert.is_none() {
            return Ok(lock);
        }
    }
    Err(Error::busy(id))
}

/// Stores a prompt with the agent, model and rules that it sets, or nothing if it is refused.
async fn store(inner: &Arc<Inner>, session: &Session, input: PromptInput) -> Result<MessageId, Error> {
    let instance = plugins::current::current(inner, Path::new(&session.directory)).await?;
    if input.parts.is_empty() {
        return Err(Error::invalid("a prompt needs at least one part"));
    }
    if input.by.is_limited() {
        check_place(&session.directory).await?;
    }
    if input.parts.len() > MAX_PARTS {
        return Err(Error::invalid(format!(
            "a prompt has at most {MAX_PARTS} parts, this one {}",
            input.parts.len()
        )));
    }
    if let Some(chosen) = &input.message_id
        && is_stored(inner, session, chosen).await?
    {
        return Ok(chosen.clone());
    }
    let agent = instance.agent_name(input.agent.as_deref().or(session.agent.as_deref()))?;
    let model = choose_model(&instance, session, &input, &agent)?;
    check_choice(&instance, session, &model, input.chosen)?;
    // If the clock was set back, the prompt must still come after the earlier messages.
    inner.continue_after(inner.store.messages(&session.id, Some(1)).await?.last());
    let chosen = input.message_id;
    let id = chosen.clone().unwrap_or_else(|| inner.ids.message());
    let now = inner.clock.now_ms();
    let rules = tool_rules(input.tools.as_ref());
    let by = input.by;
    let used = (session.tokens, session.cost);
    let message = UserMessage {
        id: id.clone(),
        session_id: session.id.clone(),
        time: CreatedTime { created: now },
        format: input.format,
        summary: None,
        agent: agent.clone(),
        model: model.clone(),
        system: input.system,
        tools: input.tools,
    };
    let mut parts = Vec::new();
    for part in input.parts {
        expand(inner, &instance, part, by, &mut parts).await?;
    }
    let change = |session: &mut Session| {
        if session.agent.is_none() && session.tokens == TokenUsage::default() {
            (session.tokens, session.cost) = used;
        }
        session.agent = Some(agent.clone());
        session.model = Some(ModelRef {
            id: model.model_id.clone(),
            provider_id: model.provider_id.clone(),
            variant: Some(model.variant.clone().unwrap_or_else(|| "default".to_owned())),
        });
        if !rules.is_empty() {
            let access = session.access.clone();
            // A child's rules come from its caller, so a prompt cannot change them. It cannot remove those of a
            // principal with more authority either.
            let stays = |rule: &Rule| session.parent_id.is_some() || principal_of(rule, access.as_ref()) < by;
            let own: Vec<Rule> = session.permission.take().into_iter().flatten().filter(stays).collect();
            let rules = rules.iter().map(|rule| marked(rule.clone(), by, access.as_ref()));
            session.permission = Some(own.into_iter().chain(rules).collect());
        }
        session.time.updated = now;
    };
    let (message, parts) = extended(inner, &instance, chosen.as_ref(), message, parts).await?;
    // One append, so that a rejected prompt changes nothing.
    let events = message::prompted(inner, message, parts);
    let stored = inner.update_session_before(&session.id, events, chosen.as_ref(), change).await;
    let is_new = stored.map_err(|error| match error {
        // Ids that clients choose may be in use already.
        Error::Store(taken @ codewright_store::Error::IdInUse { .. }) => Error::invalid(taken.to_string()),
        other => other,
    })?;
    if !is_new {
        is_stored(inner, session, &id).await?;
    }
    Ok(id)
}

/// Fails if the directory of a session has become a link, which could lead to files that its user may not use.
async fn check_place(directory: &str) -> Result<(), Error> {
    let real = tokio::fs::canonicalize(directory).await;
    let real = real.map_err(|error| Error::invalid(format!("`{directory}` cannot be used: {error}")))?;
    if real == Path::new(directory) {
        return Ok(());
    }
    Err(Error::invalid(format!("`{directory}` was replaced since the session was created")))
}

/// Whether a session has a prompt with an id already. A client that did not receive the answer to its prompt sends it
/// again.
///
/// # Errors
///
/// Fails if another message has the id.
async fn is_stored(inner: &Inner, session: &Session, id: &MessageId) -> Result<bool, Error> {
    match inner.store.message(&session.id, id).await? {
        None => Ok(false),
        Some(found) if matches!(found.info, Message::User(_)) => Ok(true),
        Some(_) => Err(Error::invalid(format!("the id `{id}` is used by another message"))),
    }
}

/// Returns a prompt as the extensions of its directory change it.
async fn extended(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    chosen: Option<&MessageId>,
    message: UserMessage,
    parts: Parts,
) -> Result<(UserMessage, Parts), Error> {
    let extensions = extension::open::ready(inner, instance).await;
    if extensions.is_empty() {
        return Ok((message, parts));
    }
    let part = |(id, body): (Option<PartId>, PartBody)| Part {
        id: id.unwrap_or_else(|| inner.ids.part()),
        session_id: message.session_id.clone(),
        message_id: message.id.clone(),
        body,
    };
    let parts = parts.into_iter().map(part).collect();
    extensions.chat_message(chosen, message, parts).await.map_err(Error::invalid)
}

/// Returns the permission rules for a prompt's tool switches. They replace the rules of the session, also for later
/// prompts.
fn tool_rules(tools: Option<&BTreeMap<String, bool>>) -> Vec<Rule> {
    let rule = |(tool, on): (&String, &bool)| {
        let action = if *on { Action::Allow } else { Action::Deny };
        Rule::new(tool, "*", action)
    };
    tools.into_iter().flatten().map(rule).collect()
}

/// Returns the model of the prompt, or else of the agent, the session or the configuration.
pub(crate) fn choose_model(
    instance: &Instance,
    session: &Session,
    input: &PromptInput,
    agent: &str,
) -> Result<PromptModel, Error> {
    if instance.agent(agent)?.acp.is_some() {
        return Ok(acp::model::model(agent));
    }
    // A client may repeat the model of an answer of another agent, which no provider has.
    let of_session = session.model.as_ref().filter(|model| model.provider_id != acp::model::PROVIDER);
    let of_session = of_session.map(|model| (model.provider_id.clone(), model.id.clone()));
    let own = |model: &PromptModel| (model.provider_id.clone(), model.model_id.clone());
    let chosen = input.model.as_ref().filter(|model| model.provider_id != acp::model::PROVIDER);
    let (provider_id, model_id) = match chosen {
        Some(model) => (model.provider_id.clone(), model.model_id.clone()),
        None => match instance.agent(agent)?.model.as_ref().map(own).or(of_session) {
            Some(model) => model,
            None => instance.models.default_model()?,
        },
    };
    instance.models.find(&provider_id, &model_id)?;
    let variant = input.variant.clone().or_else(|| chosen.and_then(|model| model.variant.clone()));
    // The agent's variant belongs to the agent's model.
    let of_agent = || {
        let agent = instance.agent(agent).ok()?;
        let own = agent.model.as_ref()?;
        let same = own.provider_id == provider_id && own.model_id == model_id;
        agent.variant.clone().filter(|_| same)
    };
    let variant = variant.or_else(of_agent);
    Ok(PromptModel { provider_id, model_id, variant })
}

/// Refuses a model of a provider that takes prompts without a key and that the user has not chosen.
///
/// Clients fill in the first model of a list, so a name alone proves no choice. The configuration, a client that says
/// so, and an earlier answer in the session do.
pub(crate) fn check_choice(
    instance: &Instance,
    session: &Session,
    model: &PromptModel,
    chosen: Option<bool>,
) -> Result<(), Error> {
    let PromptModel { provider_id, model_id, .. } = model;
    let of_session = session.model.as_ref().is_some_and(|model| model.provider_id == *provider_id);
    let has_answers = session.tokens != TokenUsage::default();
    if chosen == Some(true) || (of_session && has_answers) || instance.is_chosen(provider_id) {
        return Ok(());
    }
    Err(Error::NotChosen { provider: provider_id.clone(), model: model_id.clone() })
}

type Parts = Vec<(Option<PartId>, PartBody)>;

/// Adds a part of a prompt as it is stored, with the content that it names.
async fn expand(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    input: PartInput,
    by: Principal,
    parts: &mut Parts,
) -> Result<(), Error> {
    match input {
        PartInput::Text { id, text, synthetic, ignored, metadata } => {
            let text = TextPart { text: text.into(), synthetic, ignored, time: None, metadata };
            parts.push((id, PartBody::Text(text)));
        }
        PartInput::File { filename, url, source, .. } if is_resource(source.as_ref()) => {
            let named = |key: &str| source.as_ref().and_then(|source| source.get(key)?.as_str());
            let (server, uri) = (named("clientName").unwrap_or_default(), named("uri").unwrap_or(&url));
            let name = filename.as_deref().unwrap_or(uri);
            let servers = mcp::host::servers(inner, instance);
            if let Some(servers) = &servers {
                servers.settled().await;
            }
            let attached = mcp::resources::attach(servers.as_ref(), server, uri, name).await;
            parts.extend(attached.texts.into_iter().map(synthetic));
            let files = attached.files.into_iter();
            let file = |(mime, url)| PartBody::File { mime, filename: filename.clone(), url, source: None };
            parts.extend(files.map(|found| (None, file(found))));
        }
        PartInput::File { id, mime, filename, url, source, checked } => {
            let attached = Attached { mime, filename: filename.as_deref(), url, checked, by };
            let (mime, url) = expand_file(inner, instance, attached, parts).await?;
            let (mime, url) = with_type_of_content(mime, url);
            parts.push((id, PartBody::File { mime, filename, url, source }));
        }
        PartInput::Agent { id, name, source } => {
            instance.agent(&name)?;
            let text = format!(
                "The user names the agent `{name}`: call the task tool with it, and put into its prompt what it \
                 needs of what is said here."
            );
            parts.push((id, PartBody::Agent { name, source }));
            parts.push(synthetic(text));
        }
        PartInput::Subtask { id, prompt, description, agent, model, command } => {
            instance.agent(&agent)?;
            parts.push((id, PartBody::Subtask { prompt, description, agent, model, command }));
        }
    }
    Ok(())
}

/// Gives a picture the type of its content, because programs rename pictures and providers compare both.
fn with_type_of_content(mime: String, url: String) -> (String, String) {
    /// The characters that contain every mark of a picture.
    const MARK_CHARS: usize = 64;
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((_, data)) = inline else { return (mime, url) };
    let start = data.get(..MARK_CHARS.min(data.len() / 4 * 4)).unwrap_or_default();
    let bytes = STANDARD.decode(start).unwrap_or_default();
    match media_type(&bytes) {
        Some(found) if found.starts_with("image/") && found != mime => {
            (found.to_owned(), format!("data:{found};base64,{data}"))
        }
        Some(_) | None => (mime, url),
    }
}

/// Reports whether a file of a prompt is a resource of an MCP server.
fn is_resource(source: Option<&Value>) -> bool {
    source.and_then(|source| source.get("type")) == Some(&Value::from("resource"))
}

/// A file of a prompt.
struct Attached<'a> {
    mime: String,
    filename: Option<&'a str>,
    url: String,
    /// The only place that is read, if the user did not choose the file.
    checked: Option<PathBuf>,
    /// The sender of the prompt.
    by: Principal,
}

/// Adds the content of a file as parts before it. Returns the media type and the URL that the file is stored with.
///
/// Clients derive the type from the name. A picture or a document without a known extension arrives as text, so the
/// content decides.
async fn expand_file(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    file: Attached<'_>,
    parts: &mut Parts,
) -> Result<(String, String), Error> {
    let Attached { mut mime, filename, url, checked, by } = file;
    let is_directory = mime == DIRECTORY;
    let mut is_text = mime.starts_with("text/") || is_directory;
    let address = match Address::parse(&url).map_err(Error::invalid)? {
        Address::Elsewhere => return Ok((mime, url)),
        Address::File(address) => address,
        Address::Data(data) => {
            if is_text {
                let bytes = data_bytes(&data)
                    .ok_or_else(|| Error::invalid("a `data:` address of a text file is not readable"))?;
                if let Some(found) = type_of_file(&bytes) {
                    let url = format!("data:{found};base64,{}", STANDARD.encode(bytes));
                    return Ok((found.to_owned(), url));
                }
                parts.push(synthetic(announce(&json!({ "filePath": filename.unwrap_or("attachment") }))));
                parts.push(synthetic(neutralize(&String::from_utf8_lossy(&bytes)).into_owned()));
            }
            return Ok((mime, url));
        }
    };
    if by.is_limited() && checked.is_none() {
        return Err(Error::invalid(format!("`{}` was not checked for its sender", address.path().display())));
    }
    if is_text && !is_directory {
        let (path, checked) = (address.path().to_owned(), checked.clone());
        let found = tokio::task::spawn_blocking(move || sniff(&path, checked.as_deref())).await;
        if let Some(found) = found.unwrap_or_default() {
            (mime, is_text) = (found.to_owned(), false);
        }
    }
    if is_text {
        let input = read_input(&address);
        parts.push(synthetic(announce(&input)));
        let file = cx::UserFile { input, checked };
        let output = match cx::read(inner, instance, file, &CancellationToken::new()).await {
            Ok(output) => output,
            Err(reason) => format!("The file could not be read: {reason}"),
        };
        parts.push(synthetic(output));
        return Ok((mime, url));
    }
    let path = address.path().to_owned();
    // The model gets the current bytes, because the file may change or be removed.
    let bytes = tokio::task::spawn_blocking(move || read_bytes(&path, checked.as_deref())).await;
    let bytes =
        bytes.map_err(|error| Error::invalid(format!("reading an attached file failed: {error}")))??;
    let url = format!("data:{mime};base64,{}", STANDARD.encode(bytes));
    Ok((mime, url))
}

/// Opens an attached file without reading it.
fn hold_attached(path: &Path, checked: Option<&Path>) -> Result<Held, codewright_workspace::Error> {
    match checked {
        Some(checked) => hold_at(path, checked),
        None => hold(&existing(path, Likeness::Compatible).unwrap_or_else(|| path.to_owned())),
    }
}

/// Returns the media type of an attached picture or document by its first bytes. `None` if it is neither, or cannot be
/// read.
fn sniff(path: &Path, checked: Option<&Path>) -> Option<&'static str> {
    let held = hold_attached(path, checked).ok()?;
    // Opening a device may have an effect.
    if held.status().ok()??.node != Node::File {
        return None;
    }
    let mut head = Vec::new();
    held.file().ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    type_of_file(&head)
}

/// Returns the media type of a picture or a document that was attached as text. A text may mention the mark of a PDF
/// document, so the mark counts only at the start.
fn type_of_file(bytes: &[u8]) -> Option<&'static str> {
    media_type(bytes).filter(|found| *found != "application/pdf" || bytes.starts_with(b"%PDF-"))
}

fn read_bytes(path: &Path, checked: Option<&Path>) -> Result<Vec<u8>, Error> {
    let read = hold_attached(path, checked).and_then(|held| match held.status()?.map(|status| status.node) {
        // Opening a device may have an effect.
        Some(Node::Directory | Node::Special) => Ok(None),
        Some(Node::File) | None => held.read(MAX_FILE_BYTES).map(Some),
    });
    match read {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) | Err(codewright_workspace::Error::TooLarge { .. }) => {
            let limit = MAX_FILE_BYTES / (1024 * 1024);
            let path = path.display();
            Err(Error::invalid(format!("cannot attach `{path}`: it is no file of at most {limit} MiB")))
        }
        Err(error) => Err(Error::invalid(format!("cannot attach `{}`: {error}", path.display()))),
    }
}

fn synthetic(text: String) -> (Option<PartId>, PartBody) {
    let text = TextPart { text: text.into(), synthetic: Some(true), ..TextPart::default() };
    (None, PartBody::Text(text))
}

fn announce(input: &Value) -> String {
    let input = input.to_string();
    format!("The user attached this; the read tool was run on it with {}", neutralize(&input))
}

fn read_input(address: &FileAddress) -> Value {
    let mut input = json!({ "filePath": address.path().to_string_lossy() });
    if let Some((start, count)) = address.lines() {
        input["offset"] = start.into();
        if let Some(count) = count {
            input["limit"] = count.into();
        }
    }
    input
}

fn data_bytes(data: &str) -> Option<Vec<u8>> {
    let (header, body) = data.split_once(',')?;
    if header.ends_with(";base64") {
        return STANDARD.decode(body).ok();
    }
    Some(percent_decode_str(body).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_address_may_be_escaped_and_name_lines() {
        let Ok(Address::File(address)) = Address::parse("file:///a%20b/c%C3%A4.txt?start=2&end=4") else {
            panic!("the address names a file")
        };
        assert_eq!(read_input(&address), json!({ "filePath": "/a b/c\u{e4}.txt", "offset": 2, "limit": 3 }));
        for (escaped, expected) in [("%zz%4", "%zz%4"), ("%+1", "%+1"), ("%", "%"), ("%ff", "\u{fffd}")] {
            let bytes = data_bytes(&format!("text/plain,{escaped}")).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes), expected);
        }
    }

    #[test]
    fn the_content_of_a_text_file_decides_whether_it_is_a_picture() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n\0\0"[..], Some("image/png")),
            (b"%PDF-1.7\n", Some("application/pdf")),
            (b"A document starts with %PDF-1.7.", None),
            (b"BMW and Audi are makers of cars.", None),
            (b"<svg></svg>", None),
            (b"", None),
        ] {
            assert_eq!(type_of_file(bytes), expected);
        }
    }

    #[test]
    fn text_in_an_address_is_read() {
        assert_eq!(data_bytes("text/plain;base64,aGk=").as_deref(), Some(&b"hi"[..]));
        assert_eq!(data_bytes("text/plain,a%20b").as_deref(), Some(&b"a b"[..]));
        assert_eq!(data_bytes("nothing"), None);
    }
}
