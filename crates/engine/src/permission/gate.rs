//! The permission check before every tool call: it decides, and requests a user's reply if the rules require it.
//!
//! A request is an event, and so is its reply; the first client that replies decides. A rule that denies wins over
//! every approval: a reply of "always" saves further requests, and never permits more than the rules do.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codewright_permission::{
    AskingRules, By, Containment, Decision, Explanation, Policy, Power, Principal, Rulebook, Target,
    answered_by,
    control::{HomeBase, Roots},
    decide, decide_granted,
    evaluate::Subject,
    exact, is_secret, may, needed,
};
use codewright_proto::{
    Action, Clock, Event, Ids, PermissionAnswer, PermissionId, PermissionReply, PermissionRequest, ProjectId,
    Replier, ReplyMeans, Rule, SessionId, ToolRef,
};
use codewright_store::{Approvals as Filter, Published, SavedPermission, Store};
use codewright_tools::{Ask, Permission, UNKNOWN};
use codewright_workspace::{normalize, relative};
use tokio_util::sync::CancellationToken;

use super::approval::{Approvals, Scope, approvals, saved};
use super::decisive::{ByName, Decisive, Place};
use super::held::Held;
use super::rules::PermissionRules;
use crate::Error;
use crate::error::Resource;
use crate::instance::Instance;

/// A request without a reply is rejected after this time.
const ASK_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// The permission for connections of a command, whose rejection does not end the turn.
pub(crate) const NETWORK: &str = "network";

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
    /// Returns which effects of a request the sandbox of the call makes impossible.
    fn containment(&self, ask: &Ask) -> Containment {
        self.held.map_or(Containment::None, |held| held.containment(ask))
    }
}

/// A request that waits, and the scope and rules that a reply of "always" is bound to.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) request: PermissionRequest,
    /// The effect that the request is about.
    pub(crate) ask: Ask,
    pub(crate) scope: Scope,
    pub(crate) asking: AskingRules,
    /// The power that a reply which grants the request needs.
    pub(crate) needed: Power,
    /// The wider patterns that a reply of "always" can choose.
    pub(crate) wider: Vec<String>,
}

/// A reply as it is stored.
#[derive(Debug, Clone)]
struct Reply {
    reply: PermissionReply,
    message: Option<String>,
    /// The wider patterns that "always" allows, of those that the request offers.
    wider: Vec<String>,
    /// `None` in replies of earlier versions.
    by: Option<Replier>,
}

impl Reply {
    /// Checks a reply to a request that offers `wider` patterns.
    fn new(by: Replier, needed: Power, offered: &[String], answer: PermissionAnswer) -> Result<Self, Error> {
        let PermissionAnswer { reply, message, wider, automatic } = answer;
        check_reply(by.principal.unwrap_or(Principal::Model), needed, reply)?;
        if let Some(unknown) = wider.iter().find(|pattern| !offered.contains(pattern)) {
            return Err(Error::invalid(format!(
                "the request does not offer the wider pattern `{unknown}`: choose from `metadata.asked.wider`"
            )));
        }
        if reply != PermissionReply::Always && !wider.is_empty() {
            return Err(Error::invalid("`wider` needs the reply `always`".to_owned()));
        }
        let by = if automatic { by.by(ReplyMeans::Automatic) } else { by };
        Ok(Self { reply, message, wider, by: Some(by) })
    }

    /// Returns the reply that follows for another request.
    fn rule(&self) -> Self {
        let by = self.by.clone().map(|by| by.by(ReplyMeans::Rule));
        Self { reply: self.reply, message: None, wider: Vec::new(), by }
    }

    /// Returns the event of this reply to a request.
    fn event(self, session_id: SessionId, request_id: PermissionId) -> Event {
        let Self { reply, message, wider, by } = self;
        Event::PermissionReplied { session_id, request_id, reply, message, wider, by }
    }
}

/// Returns the event that withdraws a request to which nobody replied.
pub(crate) fn withdrawal(session_id: SessionId, request_id: PermissionId) -> Event {
    let by = Some(Replier::nobody());
    Reply { reply: PermissionReply::Reject, message: None, wider: Vec::new(), by }
        .event(session_id, request_id)
}

/// Returns where a session works.
fn place<'a>(instance: &'a Instance, roots: &'a Roots, skills: &'a [PathBuf]) -> Place<'a> {
    Place {
        worktree: &roots.worktree,
        project: &roots.project,
        directory: &instance.directory,
        sandbox: &instance.sandbox,
        skills,
    }
}

/// The function that decides.
type Decide = fn(&Ask, &Rulebook<'_>, &Approvals, &Containment) -> Decision;

pub(crate) struct Gate {
    store: Store,
    ids: Ids,
    clock: Clock,
    /// The directories of this program.
    own: Arc<[PathBuf]>,
    /// The home directory, and the directories that replace a part of it.
    home: Arc<[HomeBase]>,
    decisive: Decisive,
    waiting: Mutex<HashMap<PermissionId, Pending>>,
    /// Admits the requests of clients one by one, so that their ids and their number are checked.
    pub(super) client_turn: tokio::sync::Mutex<()>,
}

impl Gate {
    /// Creates a gate that keeps approvals in `store`. `own` are the directories of this program.
    pub(crate) fn new(store: Store, ids: Ids, clock: Clock, own: Vec<PathBuf>, decisive: Decisive) -> Self {
        let resolved = own.iter().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
        let own = own.into_iter().chain(resolved).collect();
        let (waiting, client_turn) = (Mutex::default(), tokio::sync::Mutex::default());
        let home = decisive.home().into();
        Self { store, ids, clock, own, home, decisive, waiting, client_turn }
    }

    /// Decides about one permission of a call. Waits for a user's reply if the rules require it.
    pub(crate) async fn check(&self, ask: &Ask, asker: &Asker<'_>) -> Result<Verdict, Error> {
        self.check_with(decide, ask, asker).await
    }

    /// Decides about a permission that a hook of the user grants in the user's place.
    pub(crate) async fn check_granted(&self, ask: &Ask, asker: &Asker<'_>) -> Result<Verdict, Error> {
        self.check_with(decide_granted, ask, asker).await
    }

    async fn check_with(&self, decide: Decide, ask: &Ask, asker: &Asker<'_>) -> Result<Verdict, Error> {
        let roots = self.roots_for(ask, asker.instance);
        let book = Rulebook { rules: asker.rules, roots: &roots };
        let containment = asker.containment(ask);
        let decided = match decide(ask, &book, &Approvals::default(), &containment) {
            // Approvals are only read if they can matter.
            Decision::Ask(_) => {
                let approvals = self.approvals(&Scope::of(asker.instance)).await?;
                decide(ask, &book, &approvals, &containment)
            }
            decided => decided,
        };
        let questions = match decided {
            Decision::Granted(by) => return Ok(Verdict::Granted(by)),
            Decision::Denied(permission) => return Ok(Verdict::Denied(asker.rules.about(&permission))),
            Decision::Ask(questions) => questions,
        };
        for question in questions {
            match self.ask(&question, asker).await? {
                Verdict::Granted(_) => {}
                other => return Ok(other),
            }
        }
        Ok(Verdict::Granted(By::User))
    }

    /// Returns the roots of a session's patterns. A decision about a request needs [`Self::roots_for`] it.
    fn roots(&self, instance: &Instance) -> Roots {
        let (worktree, project) = (instance.worktree.root.clone(), Scope::of(instance).directory);
        Roots {
            worktree,
            project,
            own: Arc::clone(&self.own),
            home: Arc::clone(&self.home),
            ..Roots::default()
        }
    }

    /// Returns the roots for a request, with those of its paths that need permission by name.
    fn roots_for(&self, ask: &Ask, instance: &Instance) -> Roots {
        let roots = self.roots(instance);
        let skills = instance.skill_directories();
        let ByName { decisive, hidden } = self.decisive.of(ask, place(instance, &roots, &skills));
        Roots { decisive, hidden, ..roots }
    }

    /// Returns whether a file of a session's directory is one that the sandbox hides from commands.
    pub(crate) fn hides(&self, instance: &Instance) -> impl Fn(&Path) -> bool + Send + Sync + use<> {
        let (roots, skills) = (self.roots(instance), instance.skill_directories());
        let place = place(instance, &roots, &skills);
        let hidden = self.decisive.hidden(place);
        let shown: Vec<PathBuf> = self.decisive.shown(place).cloned().collect();
        move |path| {
            let is_below = |list: &[PathBuf]| list.iter().any(|above| path.starts_with(above));
            is_below(&hidden) && !is_below(&shown)
        }
    }

    /// Whether a file of a session's directory is one that other programs execute, so that a write needs a reply.
    pub(crate) fn is_control(&self, instance: &Instance, path: &Path) -> bool {
        let (root, mut roots) = (&instance.worktree.root, self.roots(instance));
        // Git reads paths relative to the root, or to the directory.
        let bases = [root, &instance.directory];
        let paths = bases.map(|base| normalize(&base.join(path))).to_vec();
        roots.decisive = self.decisive.among(paths, &roots.project);
        bases.into_iter().any(|base| {
            let pattern = relative(root, &base.join(path));
            roots.reason(Subject::new(&Permission::Edit, &pattern)).is_some()
        })
    }

    /// Returns the current approvals of a scope. They are read from the store, because another process may have changed
    /// them.
    pub(crate) async fn approvals(&self, scope: &Scope) -> Result<Approvals, Error> {
        let filter = Filter { project: Some(scope.project.clone()), directory: Some(scope.directory()) };
        Ok(approvals(&self.store.saved_permissions(filter).await?))
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
    pub(crate) async fn answer(
        &self,
        by: Replier,
        id: &PermissionId,
        answer: PermissionAnswer,
    ) -> Result<(), Error> {
        let pending = {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            // A client that knows the id read it from the log.
            waiting.get(id).cloned()
        };
        let Some(pending) = pending else { return self.answer_elsewhere(by, id, answer).await };
        let by = self.replier(by, &pending.request.session_id).await?;
        let reply = Reply::new(by, pending.needed, &pending.wider, answer)?;
        // The reply is recorded first, because a late reply must not save an approval.
        let event = reply.clone().event(pending.request.session_id.clone(), id.clone());
        self.reply(id, event).await?;
        self.follow(&pending, &reply).await
    }

    /// Records the reply to a request of another process. That process saves the approvals.
    async fn answer_elsewhere(
        &self,
        by: Replier,
        id: &PermissionId,
        answer: PermissionAnswer,
    ) -> Result<(), Error> {
        let pending = self.store.pending_permissions().await?;
        match pending.into_iter().find(|request| request.id == *id) {
            Some(request) if self.is_elsewhere(&request.session_id).await? => {
                let by = self.replier(by, &request.session_id).await?;
                let offered = Explanation::wider_of_stored(&request.metadata);
                let reply = Reply::new(by, needed_for_stored(&request), &offered, answer)?;
                self.reply(id, reply.event(request.session_id, request.id)).await
            }
            _ => Err(Error::not_found(Resource::Permission, id)),
        }
    }

    /// Returns who replies in a session. The owner of the machine is the operator in a session of a user.
    async fn replier(&self, by: Replier, session: &SessionId) -> Result<Replier, Error> {
        if by.principal != Some(Principal::Owner) {
            return Ok(by);
        }
        let session = self.store.session(session).await?;
        let is_of_user = session.is_some_and(|session| session.access.is_some());
        Ok(if is_of_user { Replier::new(Principal::Operator) } else { by })
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
                    others.retain(|other| answered_by(&approvals, &other.ask, &other.asking));
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
    async fn follow(&self, pending: &Pending, reply: &Reply) -> Result<(), Error> {
        if reply.reply == PermissionReply::Always {
            let stamp = || (self.ids.permission().to_string(), self.clock.now_ms());
            let by = reply.by.as_ref().map(Replier::label);
            let asking = by.map_or_else(|| pending.asking.clone(), |by| pending.asking.clone().given_by(&by));
            // Another process may have recorded the reply, so what was not offered is left out again.
            let wider = reply.wider.iter().filter(|pattern| pending.wider.contains(pattern));
            let patterns = pending.request.always.iter().chain(wider);
            let approvals = saved(patterns, &pending.request.permission, &pending.scope, &asking, stamp);
            self.store.save_permissions(approvals).await?;
        }
        for other in self.also_answered(pending, reply.reply).await? {
            let event = reply.rule().event(other.session_id, other.id);
            match self.store.append(vec![event]).await {
                // In most cases the same transaction already recorded it.
                Ok(_) | Err(codewright_store::Error::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn reply(&self, id: &PermissionId, event: Event) -> Result<(), Error> {
        match self.store.append(vec![event]).await {
            // Another client replied first, or the turn was aborted.
            Err(codewright_store::Error::Unknown { .. }) => Err(Error::not_found(Resource::Permission, id)),
            other => other.map(|_| ()).map_err(Error::from),
        }
    }

    /// Requests a user's reply.
    pub(crate) async fn ask(&self, ask: &Ask, asker: &Asker<'_>) -> Result<Verdict, Error> {
        let roots = self.roots_for(ask, asker.instance);
        let reason = Rulebook { rules: asker.rules, roots: &roots }.control_reason(ask);
        let mut request = PermissionRequest {
            id: self.ids.permission(),
            session_id: asker.session_id.clone(),
            permission: ask.permission.to_string(),
            patterns: ask.patterns.clone(),
            metadata: ask.metadata.clone(),
            always: ask.always.clone(),
            tool: asker.tool.clone(),
        };
        if let Some(reason) = reason {
            // An approval of a control file covers exactly this file.
            let is_exact = |pattern: &&String| !pattern.contains(UNKNOWN) && !pattern.contains('\u{2026}');
            request.always = ask.patterns.iter().filter(is_exact).cloned().collect();
            request.metadata.insert(Target::CONTROL.to_owned(), reason.into());
        }
        let subject = |pattern| Subject::new(&ask.permission, pattern);
        if ask.permission == Permission::Read
            && ask.patterns.iter().any(|pattern| is_secret(subject(pattern)))
        {
            request.always = exact(&ask.patterns);
        }
        let pending = self.pending(ask.clone(), request, asker.rules, asker.instance);
        self.put(pending, asker.cancel, || {}).await
    }

    /// Returns a request about an effect with the scope and rules that a reply of "always" is bound to.
    pub(super) fn pending(
        &self,
        ask: Ask,
        mut request: PermissionRequest,
        rules: &PermissionRules,
        instance: &Instance,
    ) -> Pending {
        let roots = self.roots_for(&ask, instance);
        let book = Rulebook { rules, roots: &roots };
        let target = if book.control_reason(&ask).is_some() { Target::ControlFile } else { Target::Ordinary };
        let (asking, needed) = (book.asking(&ask), needed(&ask.permission, &ask.policy, target));
        let scope = Scope::of(instance);
        let explanation = Explanation::new(&request, rules, &scope.directory);
        let (key, shown) = explanation.display();
        request.metadata.insert(key.to_owned(), shown);
        Pending { request, ask, scope, asking, needed, wider: explanation.wider }
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
                    Event::PermissionReplied { request_id, reply, message, wider, by, .. }
                        if *request_id == id =>
                    {
                        let (message, wider, by) = (message.clone(), wider.clone(), by.clone());
                        return Some(Reply { reply: *reply, message, wider, by });
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
        if let Some(Ok(Some(reply))) = &answer {
            self.follow(&pending, reply).await?;
        }
        match answer {
            Some(Ok(Some(Reply { reply: PermissionReply::Reject, message, .. }))) => {
                Ok(Verdict::Rejected(message))
            }
            Some(Ok(Some(Reply { reply: PermissionReply::Once | PermissionReply::Always, .. }))) => {
                Ok(Verdict::Granted(By::User))
            }
            Some(Ok(None)) | Some(Err(_)) | None => {
                match self.store.append(vec![withdrawal(session_id, id)]).await {
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

    /// Decides about the targets of a request by the rules and approvals, without a question.
    pub(crate) async fn judge(
        &self,
        rules: &PermissionRules,
        instance: &Instance,
        ask: &Ask,
    ) -> Result<Action, Error> {
        let roots = self.roots_for(ask, instance);
        let book = Rulebook { rules, roots: &roots };
        let alone = Ask { implied: Vec::new(), ..ask.clone() };
        let decide = |approvals: &Approvals| decide(&alone, &book, approvals, &Containment::None).action();
        match decide(&Approvals::default()) {
            Action::Ask => Ok(decide(&self.approvals(&Scope::of(instance)).await?)),
            action => Ok(action),
        }
    }

    /// Saves an approval of one pattern for the sessions of all users, bound to the rules that ask about it now.
    pub(super) async fn approve(
        &self,
        rules: &PermissionRules,
        instance: &Instance,
        permission: &str,
        pattern: &str,
    ) -> Result<(), Error> {
        let ask = Ask::new(permission, vec![pattern.to_owned()]);
        let asking = Rulebook { rules, roots: &self.roots_for(&ask, instance) }.asking(&ask).of_everyone();
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

/// Fails if a principal may not grant a request.
fn check_reply(by: Principal, needed: Power, reply: PermissionReply) -> Result<(), Error> {
    let is_permitted = match reply {
        PermissionReply::Reject => true,
        PermissionReply::Once | PermissionReply::Always => may(by, needed),
    };
    if is_permitted { Ok(()) } else { Err(Error::Forbidden { message: denial(needed) }) }
}

/// Returns the power that a reply to a request of another process needs.
fn needed_for_stored(request: &PermissionRequest) -> Power {
    let permission = Permission::from(&request.permission);
    let policy = Policy::of_stored(&permission, &request.metadata);
    needed(&permission, &policy, Target::of_stored(&request.metadata))
}

/// Why a reply was not accepted.
fn denial(needed: Power) -> &'static str {
    match needed {
        Power::LeaveSandbox => "only administrators let a command leave the sandbox",
        Power::LeaveDirectory => "only administrators permit access outside of a session's directory",
        Power::ReadHidden => "only administrators permit to read hidden files",
        Power::WriteControlFile => "only administrators permit writes to files that decide what programs run",
        Power::Trust => "only administrators decide whether a repository is trusted",
        Power::ReachPrivate => "only administrators permit addresses of this machine and of its network",
        Power::LiftDenial | Power::SetRules | Power::ApproveForAll | Power::Answer => {
            "this reply needs an administrator"
        }
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
