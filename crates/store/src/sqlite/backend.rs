//! The store on SQLite, as a backend.

use std::collections::HashMap;
use std::sync::Arc;

use codewright_proto::{
    Envelope, Event, Message, MessageId, MessageWithParts, Part, PermissionRequest, Project, Session,
    SessionId, Todo,
};

use super::Sqlite;
use crate::backend::{Answer, Backend};
use crate::{
    Approvals, Claim, Condition, Holder, Incoming, Json, Logged, MessagesJson, Rest, Salvage,
    SavedPermission, SessionFilter,
};

impl Backend for Sqlite {
    fn append(&self, condition: Condition, events: Vec<Event>) -> Answer<'_, Vec<Arc<Envelope>>> {
        Box::pin(self.append(condition, events))
    }

    fn draft(&self, condition: Condition, part: Part) -> Answer<'_, ()> {
        Box::pin(self.draft(condition, part))
    }

    fn drafts<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<(Part, u64)>> {
        Box::pin(self.drafts(session))
    }

    fn lease<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Claim> {
        Box::pin(self.lease(session))
    }

    fn release<'a>(&'a self, session: &'a SessionId, fence: u64, seen: u64) -> Answer<'a, bool> {
        Box::pin(self.release(session, fence, seen))
    }

    fn holder<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Option<Holder>> {
        Box::pin(self.holder(session))
    }

    fn ask_to_stop<'a>(&'a self, session: &'a SessionId) -> Answer<'a, bool> {
        Box::pin(self.ask_to_stop(session))
    }

    fn holders(&self) -> Answer<'_, Vec<(SessionId, Holder)>> {
        Box::pin(self.holders())
    }

    fn replay_foreign(&self, events: Vec<Incoming>) -> Answer<'_, Vec<Arc<Envelope>>> {
        Box::pin(self.replay_foreign(events))
    }

    fn history(&self, known: HashMap<String, u64>) -> Answer<'_, Vec<Logged>> {
        Box::pin(self.history(known))
    }

    fn events_between(&self, after: u64, until: u64, limit: usize) -> Answer<'_, Vec<Envelope>> {
        Box::pin(self.events_between(after, until, limit))
    }

    fn events_of<'a>(
        &'a self,
        session: &'a SessionId,
        from_seq: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Envelope>> {
        Box::pin(self.events_of(session, from_seq, limit))
    }

    fn seq_before<'a>(
        &'a self,
        session: &'a SessionId,
        until_seq: u64,
        most: (usize, u64),
    ) -> Answer<'a, u64> {
        Box::pin(self.seq_before(session, until_seq, most))
    }

    fn session_before<'a>(&'a self, session: &'a SessionId, until_seq: u64) -> Answer<'a, Option<Session>> {
        Box::pin(self.session_before(session, until_seq))
    }

    fn first_seq<'a>(&'a self, session: &'a SessionId, message: &'a MessageId) -> Answer<'a, Option<u64>> {
        Box::pin(self.first_seq(session, message))
    }

    fn session<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Option<(u64, Session)>> {
        Box::pin(self.session(id))
    }

    fn sessions(&self, filter: SessionFilter) -> Answer<'_, Vec<Session>> {
        Box::pin(self.sessions(filter))
    }

    fn sessions_json(&self, filter: SessionFilter) -> Answer<'_, Json> {
        Box::pin(self.sessions_json(filter))
    }

    fn transcript<'a>(&'a self, session: &'a SessionId) -> Answer<'a, (u64, Vec<MessageWithParts>)> {
        Box::pin(self.transcript(session))
    }

    fn messages<'a>(
        &'a self,
        session: &'a SessionId,
        limit: Option<usize>,
    ) -> Answer<'a, Vec<MessageWithParts>> {
        Box::pin(self.messages(session, limit))
    }

    fn messages_before<'a>(
        &'a self,
        session: &'a SessionId,
        limit: usize,
        before: Option<(u64, MessageId)>,
    ) -> Answer<'a, (Vec<MessageWithParts>, bool)> {
        Box::pin(self.messages_before(session, limit, before))
    }

    fn messages_json<'a>(
        &'a self,
        session: &'a SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Answer<'a, Option<MessagesJson>> {
        Box::pin(self.messages_json(session, limit, before))
    }

    fn more_messages_json(&self, rest: Rest) -> Answer<'_, (Json, Option<Rest>)> {
        Box::pin(self.more_messages_json(rest))
    }

    fn message<'a>(
        &'a self,
        session: &'a SessionId,
        id: &'a MessageId,
    ) -> Answer<'a, Option<MessageWithParts>> {
        Box::pin(self.message(session, id))
    }

    fn infos<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<Message>> {
        Box::pin(self.infos(session))
    }

    fn todos<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<Todo>> {
        Box::pin(self.todos(session))
    }

    fn pending_permissions(&self) -> Answer<'_, Vec<PermissionRequest>> {
        Box::pin(self.pending_permissions())
    }

    fn projects(&self) -> Answer<'_, Vec<Project>> {
        Box::pin(self.projects())
    }

    fn project_of<'a>(&'a self, worktree: &'a str) -> Answer<'a, Option<Project>> {
        Box::pin(self.project_of(worktree))
    }

    fn save_project(&self, project: Project) -> Answer<'_, ()> {
        Box::pin(self.save_project(project))
    }

    fn save_permissions(&self, saved: Vec<SavedPermission>) -> Answer<'_, ()> {
        Box::pin(self.save_permissions(saved))
    }

    fn saved_permissions(&self, filter: Approvals) -> Answer<'_, Vec<SavedPermission>> {
        Box::pin(self.saved_permissions(filter))
    }

    fn remove_permission<'a>(&'a self, id: &'a str) -> Answer<'a, bool> {
        Box::pin(self.remove_permission(id))
    }

    fn replay(&self) -> Answer<'_, u64> {
        Box::pin(self.replay())
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(self.close())
    }

    fn abandon(&self, session: &SessionId, fence: u64) {
        self.abandon(session, fence);
    }

    fn watch(&self) {
        self.watch();
    }

    fn salvage(&self) -> Option<&Salvage> {
        self.salvage()
    }
}
