//! The permission check before every tool call: it decides, and requests a user's reply if the rules require it.
//!
//! A request is an event, and so is its reply; the first client that replies decides. A rule that denies wins over
//! every approval: a reply of "always" saves further requests, and never permits more than the rules do.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codewright_proto::{
    Action, Clock, Event, Ids, PermissionAnswer, PermissionId, PermissionReply, PermissionRequest, ProjectId,
    Rule, SessionId, ToolRef,
};
use codewright_store::{Approvals as Filter, Published, SavedPermission, Store};
use codewright_tools::{Ask, Certainty, Implied, UNKNOWN};
use codewright_workspace::relative;
use tokio_util::sync::CancellationToken;

use super::approval::{Approvals, AskingRules, Control, Name, Scope, saved};
use super::control::Roots;
use super::evaluate::{Subject, strictest};
use super::held::Held;
use super::rules::PermissionRules;
use crate::Error;
use crate::error::Resource;
use crate::instance::Instance;

/// A request without a reply is rejected after this time.
const ASK_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// The permission key of directories outside the worktree.
pub(super) const OUTSIDE: &str = "external_directory";
/// The permission key of writes.
const EDIT: &str = "edit";
/// The permission for connections of a command, whose rejection does not end the turn.
pub(crate) const NETWORK: &str = "network";
/// The metadata key that tells clients why a write to a control file needs permission.
pub(super) const CONTROL_REASON: &str = "controlFile";

/// The result of a permission check.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// The call may run.
    Granted(By),
    /// A rule denies the call. These are the rules about its permission.
    Denied(Vec<Rule>),
    /// A user rejected the request, with an optional message to the model.
    Rejected(Option<String>),
    /// The turn was aborted while the request waited.
    Cancelled,
}

/// The source of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The rules and the saved approvals: no time passed.
    Rules,
    /// The rules, without built-in ones that ask about effects which the kernel prevents. It must not be made possible.
    Kernel,
    /// A user's reply, which may have come hours after the request.
    User,
}

/// The session and call that need a permission.
pub(crate) struct Asker<'a> {
    pub(crate) session_id: &'a SessionId,
    /// The directory of the session.
    pub(crate) instance: &'a Instance,
    /// The permission rules that apply.
    pub(crate) rules: &'a PermissionRules,
    /// What the kernel prevents. `None` if no sandbox is enforced.
    pub(crate) held: Option<&'a Held>,
    pub(crate) tool: Option<ToolRef>,
    /// The id under which extensions know the call if it is not that of `tool`: a call of a batch.
    pub(crate) hook_id: Option<&'a str>,
    pub(crate) cancel: &'a CancellationToken,
}

impl Asker<'_> {
    /// Whether the kernel holds what a call does in a directory outside.
    fn is_held(&self, permission: &str, pattern: &str) -> bool {
        let directory = Path::new(pattern.strip_suffix("/*").unwrap_or(pattern));
        permission == OUTSIDE && self.held.is_some_and(|held| held.covers(directory))
    }

    /// Decides about an implied effect. The kernel holds writes that are not stated. It does not hold reads, because a
    /// command can read the worktree and most of the machine.
    fn judge(&self, roots: &Roots, implied: &Implied) -> Action {
        if self.held.is_some() && implied.permission == EDIT && implied.certainty != Certainty::Stated {
            return self.rules.held_by_kernel(implied.certainty).judge(implied);
        }
        let subject = Subject::new(&implied.permission, &implied.pattern);
        roots.decide(self.rules.judge(implied), subject, self.rules.user_layers())
    }
}

/// A request that waits, and the scope and rules that a reply of "always" is bound to.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) request: PermissionRequest,
    pub(crate) scope: Scope,
    pub(crate) asking: AskingRules,
}

pub(crate) struct Gate {
    store: Store,
    ids: Ids,
    clock: Clock,
    /// The directories of this program.
    own: Arc<[PathBuf]>,
    waiting: Mutex<HashMap<PermissionId, Pending>>,
    /// Admits the requests of clients one by one, so that their ids and their number are checked.
    pub(super) client_turn: tokio::sync::Mutex<()>,
}

impl Gate {
    /// Creates a gate that keeps approvals in `store`. `own` are the directories of this program.
    pub(crate) fn new(store: Store, ids: Ids, clock: Clock, own: Vec<PathBuf>) -> Self {
        let resolved = own.iter().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
        let own = own.into_iter().chain(resolved).collect();
        Self { store, ids, clock, own, waiting: Mutex::default(), client_turn: tokio::sync::Mutex::default() }
    }

    /// Decides about one permission of a call. Waits for a user's reply if the rules require it.
    pub(crate) async fn check(&self, ask: &Ask, asker: &Asker<'_>) -> Result<Verdict, Error> {
        let (roots, name) = (self.roots(asker.instance), needs_name(&ask.permission, &ask.metadata));
        let relaxed = asker.held.map(|_| asker.rules.held_by_kernel(Certainty::Unknown));
        let rules_for = |pattern: &str| match &relaxed {
            Some(relaxed) if asker.is_held(&ask.permission, pattern) => relaxed,
            _ => asker.rules,
        };
        let decide = |pattern: &String| {
            decide(rules_for(pattern), &roots, Subject::new(&ask.permission, pattern), name)
        };
        let action = strictest(ask.patterns.iter().map(decide));
        let mut implied = Vec::new();
        for one in &ask.implied {
            match asker.judge(&roots, one) {
                Action::Deny if action != Action::Deny => {
                    return Ok(Verdict::Denied(asker.rules.about(&one.permission)));
                }
                Action::Ask => implied.push(one),
                Action::Allow | Action::Deny => {}
            }
        }
        if action == Action::Deny {
            return Ok(Verdict::Denied(asker.rules.about(&ask.permission)));
        }
        if action == Action::Allow && implied.is_empty() {
            let is_held = ask.patterns.iter().any(|pattern| asker.is_held(&ask.permission, pattern));
            return Ok(Verdict::Granted(if is_held { By::Kernel } else { By::Rules }));
        }
        let approvals = self.approvals(&Scope::of(asker.instance)).await?;
        let is_open = |pattern: &String| {
            decide(pattern) == Action::Ask && !self.is_approved(&approvals, asker, ask, pattern)
        };
        implied.retain(|one| !self.is_remembered(&approvals, asker, one));
        if ask.patterns.iter().any(is_open) {
            // The request shows the whole command, so its reply also covers the implied commands.
            self.ask(&with_implied(ask, &implied), asker).await
        } else {
            self.ask_implied(ask, &implied, asker).await
        }
    }

    /// Decides about a permission that a hook of the user grants in the user's place.
    ///
    /// Rules that deny still deny. Requests about control files, about the sandbox, about effects that the call implies,
    /// and those that only a rule by name allows still need the user's reply.
    pub(crate) async fn check_granted(&self, ask: &Ask, asker: &Asker<'_>) -> Result<Verdict, Error> {
        let roots = self.roots(asker.instance);
        let subjects = || ask.patterns.iter().map(|pattern| Subject::new(&ask.permission, pattern));
        let is_simple = needs_name(&ask.permission, &ask.metadata) == Name::Optional
            && subjects().all(|subject| roots.reason(subject).is_none())
            && ask.implied.iter().all(|implied| asker.judge(&roots, implied) == Action::Allow);
        let decide = |subject| decide(asker.rules, &roots, subject, Name::Optional);
        match strictest(subjects().map(decide)) {
            Action::Ask if is_simple => Ok(Verdict::Granted(By::User)),
            Action::Ask | Action::Allow | Action::Deny => self.check(ask, asker).await,
        }
    }

    /// Requests the implied permissions of a call that is allowed itself, one request for each kind of permission.
    async fn ask_implied(&self, ask: &Ask, open: &[&Implied], asker: &Asker<'_>) -> Result<Verdict, Error> {
        let mut kinds: Vec<&str> = open.iter().map(|implied| implied.permission.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut by = By::Rules;
        for kind in kinds {
            let mut question = Ask { metadata: ask.metadata.clone(), ..Ask::new(kind, Vec::new()) };
            question.always.clear();
            for implied in open.iter().filter(|implied| implied.permission == kind) {
                add_to(&mut question, implied);
            }
            match self.ask(&question, asker).await? {
                Verdict::Granted(_) => by = By::User,
                other => return Ok(other),
            }
        }
        Ok(Verdict::Granted(by))
    }

    /// Reports whether an approval covers an implied permission.
    fn is_remembered(&self, approvals: &Approvals, asker: &Asker<'_>, implied: &Implied) -> bool {
        let allows = |pattern: &str| {
            let subject = Subject::new(&implied.permission, pattern);
            let asking = asking_rules(asker.rules, &self.roots(asker.instance), subject);
            approvals.allow(subject, &asking, Name::Optional)
        };
        allows(&implied.pattern) || implied.spelled.as_deref().is_some_and(allows)
    }

    /// Reports whether an approval covers a pattern of a request.
    fn is_approved(&self, approvals: &Approvals, asker: &Asker<'_>, ask: &Ask, pattern: &str) -> bool {
        let subject = Subject::new(&ask.permission, pattern);
        let asking = asking_rules(asker.rules, &self.roots(asker.instance), subject);
        approvals.allow(subject, &marked(asking, &ask.metadata), needs_name(&ask.permission, &ask.metadata))
    }

    /// Returns the roots of a session's patterns.
    fn roots(&self, instance: &Instance) -> Roots {
        let (worktree, project) = (instance.worktree.root.clone(), Scope::of(instance).directory);
        Roots { worktree, project, own: Arc::clone(&self.own) }
    }

    /// Whether a file of a session's directory is one that other programs execute, so that a write needs a reply.
    pub(crate) fn is_control(&self, instance: &Instance, path: &Path) -> bool {
        let (root, roots) = (&instance.worktree.root, self.roots(instance));
        // Git reads paths relative to the root, or to the directory.
        [root, &instance.directory].into_iter().any(|base| {
            let pattern = relative(root, &base.join(path));
            roots.reason(Subject::new(EDIT, &pattern)).is_some()
        })
    }

    /// Returns the current approvals of a scope. They are read from the store, because another process may have changed
    /// them.
    pub(crate) async fn approvals(&self, scope: &Scope) -> Result<Approvals, Error> {
        let filter = Filter { project: Some(scope.project.clone()), directory: Some(scope.directory()) };
        Ok(Approvals::new(&self.store.saved_permissions(filter).await?))
    }

    /// Returns the saved approvals of one project or of all projects, oldest first.
    pub(crate) async fn saved(&self, project: Option<ProjectId>) -> Result<Vec<SavedPermission>, Error> {
        Ok(self.store.saved_permissions(Filter { project, directory: None }).await?)
    }

    /// Removes a saved approval. Returns whether it existed.
    pub(crate) async fn revoke(&self, id: &str) -> Result<bool, Error> {
        Ok(self.store.remove_permission(id).await?)
    }

    /// Returns the requests that a client can reply to, oldest first: they are in the log, and their calls wait in this
    /// or another live process.
    pub(crate) async fn listed(&self) -> Result<Vec<PermissionRequest>, Error> {
        let mut listed = Vec::new();
        for request in self.store.pending_permissions().await? {
            if self.is_waiting(&request.id) || self.is_elsewhere(&request.session_id).await? {
                listed.push(request);
            }
        }
        Ok(listed)
    }

    fn is_waiting(&self, id: &PermissionId) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    /// Reports whether another live process runs a session.
    async fn is_elsewhere(&self, session: &SessionId) -> Result<bool, Error> {
        Ok(self.store.holder(session).await?.is_some_and(|holder| !holder.is_ours))
    }

    fn waiting(&self) -> Vec<Pending> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pending: Vec<_> = waiting.values().cloned().collect();
        pending.sort_by(|a, b| a.request.id.cmp(&b.request.id));
        pending
    }

    /// Records a user's reply. The waiting call reads it from the log.
    pub(crate) async fn answer(&self, id: &PermissionId, answer: PermissionAnswer) -> Result<(), Error> {
        let pending = {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            // A client that knows the id read it from the log.
            waiting.get(id).cloned()
        };
        let Some(pending) = pending else { return self.answer_elsewhere(id, answer).await };
        // The reply is recorded first, because a late reply must not save an approval.
        let reply = answer.reply;
        self.reply(id, vec![replied(pending.request.clone(), reply, answer.message)]).await?;
        self.follow(&pending, reply).await
    }

    /// Records the reply to a request of another process. That process saves the approvals.
    async fn answer_elsewhere(&self, id: &PermissionId, answer: PermissionAnswer) -> Result<(), Error> {
        let pending = self.store.pending_permissions().await?;
        match pending.into_iter().find(|request| request.id == *id) {
            Some(request) if self.is_elsewhere(&request.session_id).await? => {
                self.reply(id, vec![replied(request, answer.reply, answer.message)]).await
            }
            _ => Err(Error::not_found(Resource::Permission, id)),
        }
    }

    /// Returns the other waiting requests that a reply also decides.
    async fn also_answered(
        &self,
        pending: &Pending,
        reply: PermissionReply,
    ) -> Result<Vec<PermissionRequest>, Error> {
        let mut others = self.waiting();
        others.retain(|other| other.request.id != pending.request.id);
        match reply {
            PermissionReply::Once => others.clear(),
            PermissionReply::Always => {
                others.retain(|other| other.scope == pending.scope);
                if !others.is_empty() {
                    let approvals = self.approvals(&pending.scope).await?;
                    others.retain(|other| approves(&approvals, other));
                }
            }
            // The command continues without the host, so only requests for the same host are obsolete.
            PermissionReply::Reject if pending.request.permission == NETWORK => {
                let key =
                    |request: &PermissionRequest| (request.session_id.clone(), request.patterns.clone());
                others.retain(|other| {
                    other.request.permission == NETWORK && key(&other.request) == key(&pending.request)
                });
            }
            // A rejection ends the turn, so the other requests of the turn are obsolete.
            PermissionReply::Reject => {
                others.retain(|other| other.request.session_id == pending.request.session_id);
            }
        }
        Ok(others.into_iter().map(|other| other.request).collect())
    }

    /// Saves the approvals of a reply and replies to the other requests that it decides. The reply may come from
    /// another process.
    async fn follow(&self, pending: &Pending, reply: PermissionReply) -> Result<(), Error> {
        if reply == PermissionReply::Always {
            let stamp = || (self.ids.permission().to_string(), self.clock.now_ms());
            let approvals = saved(&pending.request, &pending.scope, &pending.asking, stamp);
            self.store.save_permissions(approvals).await?;
        }
        for other in self.also_answered(pending, reply).await? {
            match self.store.append(vec![replied(other, reply, None)]).await {
                // In most cases the same transaction already recorded it.
                Ok(_) | Err(codewright_store::Error::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn reply(&self, id: &PermissionId, events: Vec<Event>) -> Result<(), Error> {
        match self.store.append(events).await {
            // Another client replied first, or the turn was aborted.
            Err(codewright_store::Error::Unknown { .. }) => Err(Error::not_found(Resource::Permission, id)),
            other => other.map(|_| ()).map_err(Error::from),
        }
    }

    /// Requests a user's reply.
    pub(crate) async fn ask(&self, ask: &Ask, asker: &Asker<'_>) -> Result<Verdict, Error> {
        let roots = self.roots(asker.instance);
        let reason =
            ask.patterns.iter().find_map(|pattern| roots.reason(Subject::new(&ask.permission, pattern)));
        let mut request = PermissionRequest {
            id: self.ids.permission(),
            session_id: asker.session_id.clone(),
            permission: ask.permission.clone(),
            patterns: ask.patterns.clone(),
            metadata: ask.metadata.clone(),
            always: ask.always.clone(),
            tool: asker.tool.clone(),
        };
        if let Some(reason) = reason {
            // An approval of a control file covers exactly this file.
            let is_exact = |pattern: &&String| !pattern.contains(UNKNOWN) && !pattern.contains('\u{2026}');
            request.always = ask.patterns.iter().filter(is_exact).cloned().collect();
            request.metadata.insert(CONTROL_REASON.to_owned(), reason.into());
        }
        let pending = self.pending(request, asker.rules, asker.instance);
        self.put(pending, asker.cancel, || {}).await
    }

    /// Returns a request with the scope and rules that a reply of "always" is bound to.
    pub(super) fn pending(
        &self,
        request: PermissionRequest,
        rules: &PermissionRules,
        instance: &Instance,
    ) -> Pending {
        let roots = self.roots(instance);
        let mut asking = AskingRules::default();
        for pattern in &request.patterns {
            asking.extend(asking_rules(rules, &roots, Subject::new(&request.permission, pattern)));
        }
        let asking = marked(asking, &request.metadata);
        Pending { request, scope: Scope::of(instance), asking }
    }

    /// Publishes a request and waits for the reply. `stored` is called as soon as clients can see the request.
    pub(super) async fn put(
        &self,
        pending: Pending,
        cancel: &CancellationToken,
        stored: impl FnOnce(),
    ) -> Result<Verdict, Error> {
        let request = &pending.request;
        let (id, session_id) = (request.id.clone(), request.session_id.clone());
        let instance = Waiting::enter(self, pending.clone());
        // The subscription starts before the request is published, so that no reply is missed.
        let mut feed = self.store.subscribe();
        self.store.append(vec![Event::PermissionAsked(request.clone())]).await?;
        stored();
        let answer = async {
            while let Ok(published) = feed.next().await {
                let Published::Event(envelope) = &published else { continue };
                match &envelope.event {
                    Event::PermissionReplied { request_id, reply, message, .. } if *request_id == id => {
                        return Some((*reply, message.clone()));
                    }
                    Event::SessionDeleted { session_id: gone, .. } if *gone == session_id => return None,
                    Event::PermissionReplied { .. }
                    | Event::SessionDeleted { .. }
                    | Event::SessionCreated { .. }
                    | Event::SessionUpdated { .. }
                    | Event::MessageUpdated { .. }
                    | Event::MessageRemoved { .. }
                    | Event::PartUpdated { .. }
                    | Event::PartRemoved { .. }
                    | Event::TodoUpdated { .. }
                    | Event::PermissionAsked(_) => {}
                }
            }
            None
        };
        let answer = cancel.run_until_cancelled(tokio::time::timeout(ASK_DEADLINE, answer)).await;
        drop(instance);
        if let Some(Ok(Some((reply, _)))) = &answer {
            self.follow(&pending, *reply).await?;
        }
        match answer {
            Some(Ok(Some((PermissionReply::Reject, message)))) => Ok(Verdict::Rejected(message)),
            Some(Ok(Some((PermissionReply::Once | PermissionReply::Always, _)))) => {
                Ok(Verdict::Granted(By::User))
            }
            Some(Ok(None)) | Some(Err(_)) | None => {
                let reply = PermissionReply::Reject;
                let withdrawn = Event::PermissionReplied { session_id, request_id: id, reply, message: None };
                match self.store.append(vec![withdrawn]).await {
                    // A reply came at the same time, or the session was deleted.
                    Ok(_) | Err(codewright_store::Error::Unknown { .. }) => Ok(Verdict::Cancelled),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Returns the waiting request with an id, and the number of waiting requests.
    pub(super) fn at(&self, id: &PermissionId) -> (Option<PermissionRequest>, usize) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        (waiting.get(id).map(|pending| pending.request.clone()), waiting.len())
    }

    /// Decides by the rules and approvals, without a question.
    pub(crate) async fn judge(
        &self,
        rules: &PermissionRules,
        instance: &Instance,
        permission: &str,
        patterns: &[String],
    ) -> Result<Action, Error> {
        let roots = self.roots(instance);
        let decide =
            |pattern: &String| decide(rules, &roots, Subject::new(permission, pattern), Name::Optional);
        let action = strictest(patterns.iter().map(decide));
        if action != Action::Ask {
            return Ok(action);
        }
        let approvals = self.approvals(&Scope::of(instance)).await?;
        let is_open = |pattern: &String| {
            let subject = Subject::new(permission, pattern);
            decide(pattern) == Action::Ask
                && !approvals.allow(subject, &asking_rules(rules, &roots, subject), Name::Optional)
        };
        Ok(if patterns.iter().any(is_open) { Action::Ask } else { Action::Allow })
    }

    /// Saves an approval of one pattern for the sessions of all users, bound to the rules that ask about it now.
    pub(super) async fn approve(
        &self,
        rules: &PermissionRules,
        instance: &Instance,
        permission: &str,
        pattern: &str,
    ) -> Result<(), Error> {
        let asking =
            asking_rules(rules, &self.roots(instance), Subject::new(permission, pattern)).of_everyone();
        let approval = SavedPermission {
            id: self.ids.permission().to_string(),
            project_id: instance.project.id.clone(),
            directory: Scope::of(instance).directory(),
            action: permission.to_owned(),
            resource: pattern.to_owned(),
            rules: asking.to_json(),
            created_ms: self.clock.now_ms(),
        };
        Ok(self.store.save_permissions(vec![approval]).await?)
    }
}

/// Returns the decision of the rules, including the built-in rule about control files.
fn decide(rules: &PermissionRules, roots: &Roots, subject: Subject<'_>, name: Name) -> Action {
    let decided = match name {
        Name::Optional => rules.decide(subject.permission, subject.pattern),
        Name::Required => rules.decide_by_name(subject.permission, subject.pattern),
        Name::RequiredOfUser => rules.decide_by_name_of_user(subject.permission, subject.pattern),
        Name::Exact => rules.decide_exactly(subject.permission, subject.pattern),
        Name::Never => {
            strictest([rules.decide(subject.permission, subject.pattern), Action::Ask].into_iter())
        }
    };
    roots.decide(decided, subject, rules.user_layers())
}

/// Returns the rules that ask about a subject, including the built-in rule about control files.
fn asking_rules(rules: &PermissionRules, roots: &Roots, subject: Subject<'_>) -> AskingRules {
    let is_control = roots.reason(subject).is_some();
    AskingRules::of(rules, subject, if is_control { Control::Yes } else { Control::No })
}

/// Returns the asking rules of a request, with the reason that its metadata names.
fn marked(asking: AskingRules, metadata: &codewright_proto::Map) -> AskingRules {
    if metadata.contains_key(Ask::UNENFORCED) { asking.without_sandbox() } else { asking }
}

/// Reports whether approvals cover all patterns of a waiting request.
fn approves(approvals: &Approvals, pending: &Pending) -> bool {
    let request = &pending.request;
    let name = needs_name(&request.permission, &request.metadata);
    // These are the rules of all patterns together, which are at least as strict as the rules of each pattern.
    request
        .patterns
        .iter()
        .all(|pattern| approvals.allow(Subject::new(&request.permission, pattern), &pending.asking, name))
}

/// Returns the request for a call together with its implied commands.
fn with_implied(ask: &Ask, open: &[&Implied]) -> Ask {
    let mut question = ask.clone();
    for implied in open.iter().filter(|implied| implied.permission == ask.permission) {
        add_to(&mut question, implied);
    }
    question
}

fn add_to(question: &mut Ask, implied: &Implied) {
    let shown = implied.display();
    if !question.patterns.contains(&shown) {
        question.patterns.push(shown);
    }
    if let Some(always) = implied.always.as_ref().filter(|always| !question.always.contains(always)) {
        question.always.push(always.clone());
    }
}

fn replied(request: PermissionRequest, reply: PermissionReply, message: Option<String>) -> Event {
    Event::PermissionReplied { session_id: request.session_id, request_id: request.id, reply, message }
}

/// Returns which rules and approvals can allow a request.
fn needs_name(permission: &str, metadata: &codewright_proto::Map) -> Name {
    let is_set = |key: &str| metadata.get(key).is_some_and(|value| *value == true);
    if permission == Ask::SANDBOX {
        Name::Never
    } else if is_set(Ask::EXACT) {
        Name::Exact
    } else if metadata.contains_key(Ask::UNENFORCED) {
        Name::RequiredOfUser
    } else if is_set(Ask::NAMED) {
        Name::Required
    } else {
        Name::Optional
    }
}

/// Keeps a request in the list of waiting requests until it is dropped.
struct Waiting<'a> {
    gate: &'a Gate,
    id: PermissionId,
}

impl<'a> Waiting<'a> {
    fn enter(gate: &'a Gate, pending: Pending) -> Self {
        let id = pending.request.id.clone();
        gate.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), pending);
        Self { gate, id }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.gate.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
