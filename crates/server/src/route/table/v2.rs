//! The API of version 2, as far as clients of version 1 call it.

use super::super::api::{self, history, integration, message, pending, revert, terminal};
use super::super::{event, file, pty};
use super::{Route, delete, get, patch, post, put};
use crate::auth::rules::Need::{
    Admin, Anyone, Filtered, Member, Permission, Question, Read, Terminal, Write,
};
use crate::nodes::reach::OF_TERMINAL;
use crate::nodes::reach::Reach::{Directory, Everywhere, Here, Session, SessionOrHere};

/// The v2 API without its sessions. Only the routes that clients call exist.
pub(super) const V2: &[Route] = &[
    get!("/api/health", api::health, "v2.health.get", Anyone, Here)
        .returns("{healthy:true}")
        .fails(&[400, 401]),
    get!("/api/location", api::location, "v2.location.get", Anyone, Directory)
        .at_location()
        .returns("LocationInfo")
        .fails(&[400, 401]),
    get!("/api/agent", api::agents, "v2.agent.list", Anyone, Directory)
        .at_location()
        .returns("{location:LocationInfo,data:[AgentV2Info]}")
        .fails(&[400, 401]),
    get!("/api/model", api::models, "v2.model.list", Anyone, Directory)
        .at_location()
        .returns("{location:LocationInfo,data:[ModelV2Info]}")
        .fails(&[400, 401, 503]),
    get!("/api/provider", api::providers, "v2.provider.list", Anyone, Directory)
        .at_location()
        .returns("{location:LocationInfo,data:[ProviderV2Info]}")
        .fails(&[400, 401, 503]),
    get!("/api/provider/{providerID}", api::provider, "v2.provider.get", Anyone, Directory)
        .at_location()
        .returns("{location:LocationInfo,data:ProviderV2Info}")
        .fails(&[400, 401, 404, 503]),
    get!("/api/integration", integration::list, "v2.integration.list", Anyone, Here)
        .at_location()
        .returns("{location:LocationInfo,data:[IntegrationInfo]}")
        .fails(&[400, 401]),
    get!("/api/integration/{integrationID}", integration::read, "v2.integration.get", Anyone, Here)
        .at_location()
        .returns("{location:LocationInfo,data:IntegrationInfo}")
        .fails(&[400, 401]),
    post!(
        "/api/integration/{integrationID}/connect/key",
        integration::connect_key,
        "v2.integration.connect.key",
        Admin,
        Here
    )
    .at_location()
    .takes("{key:string,label?:string}")
    .returns_nothing()
    .fails(&[400, 401]),
    post!(
        "/api/integration/{integrationID}/connect/oauth",
        integration::connect,
        "v2.integration.connect.oauth",
        Admin,
        Here
    )
    .without_deadline()
    .at_location()
    .takes("{methodID:string,inputs:<string>,label?:string}")
    .returns("{location:LocationInfo,data:IntegrationAttempt}")
    .fails(&[400, 401]),
    get!(
        "/api/integration/attempt/{attemptID}",
        integration::status,
        "v2.integration.attempt.status",
        Admin,
        Here
    )
    .at_location()
    .returns("{location:LocationInfo,data:IntegrationAttemptStatus}")
    .fails(&[400, 401]),
    delete!(
        "/api/integration/attempt/{attemptID}",
        integration::cancel,
        "v2.integration.attempt.cancel",
        Admin,
        Here
    )
    .at_location()
    .returns_nothing()
    .fails(&[400, 401]),
    post!(
        "/api/integration/attempt/{attemptID}/complete",
        integration::complete,
        "v2.integration.attempt.complete",
        Admin,
        Here
    )
    .without_deadline()
    .at_location()
    .takes("{code?:string}")
    .returns_nothing()
    .fails(&[400, 401]),
    patch!("/api/credential/{credentialID}", integration::rename, "v2.credential.update", Admin, Here)
        .at_location()
        .takes("{label:string}")
        .returns_nothing()
        .fails(&[400, 401]),
    delete!("/api/credential/{credentialID}", integration::disconnect, "v2.credential.remove", Admin, Here)
        .at_location()
        .returns_nothing()
        .fails(&[400, 401]),
    get!("/api/reference", api::nothing, "v2.reference.list", Anyone, Here)
        .at_location()
        .returns("{location:LocationInfo,data:[ReferenceInfo]}")
        .fails(&[400, 401]),
    get!("/api/command", api::commands, "v2.command.list", Anyone, Directory)
        .at_location()
        .returns("{location:LocationInfo,data:[CommandV2Info]}")
        .fails(&[400, 401]),
    get!("/api/skill", api::skills, "v2.skill.list", Anyone, Directory)
        .at_location()
        .returns("{location:LocationInfo,data:[SkillV2Info]}")
        .fails(&[400, 401]),
    get!("/api/event", event::v2, "v2.event.subscribe", Filtered, Here)
        .without_deadline()
        .streams("V2Event")
        .fails(&[400, 401]),
    get!("/api/permission/request", pending::permissions, "v2.permission.request.list", Filtered, Here)
        .at_location()
        .returns("{location:LocationInfo,data:[PermissionV2Request]}")
        .fails(&[400, 401]),
    get!("/api/permission/saved", pending::saved, "v2.permission.saved.list", Admin, Here)
        .query("projectID?:string")
        .returns("{data:[PermissionSavedInfo]}")
        .fails(&[400, 401]),
    delete!("/api/permission/saved/{id}", pending::revoke, "v2.permission.saved.remove", Admin, Here)
        .returns_nothing()
        .fails(&[400, 401]),
    get!("/api/question/request", pending::questions, "v2.question.request.list", Filtered, Everywhere)
        .at_location()
        .returns("{location:LocationInfo,data:[QuestionV2Request]}")
        .fails(&[400, 401]),
    get!("/api/pty", terminal::list, "v2.pty.list", Admin, Everywhere)
        .at_location()
        .returns("{location:LocationInfo,data:[Pty]}")
        .fails(&[400, 401]),
    post!("/api/pty", terminal::create, "v2.pty.create", Admin, Directory)
        .at_location()
        .takes("{command?:string,args?:[string],cwd?:string,title?:string,env?:<string>}")
        .returns("{location:LocationInfo,data:Pty}")
        .fails(&[400, 401]),
    get!("/api/pty/{ptyID}", terminal::read, "v2.pty.get", Admin, OF_TERMINAL)
        .at_location()
        .returns("{location:LocationInfo,data:Pty}")
        .fails(&[400, 401, 404]),
    put!("/api/pty/{ptyID}", terminal::update, "v2.pty.update", Admin, OF_TERMINAL)
        .at_location()
        .takes("{title?:string,size?:{rows:integer,cols:integer}}")
        .returns("{location:LocationInfo,data:Pty}")
        .fails(&[400, 401, 404]),
    delete!("/api/pty/{ptyID}", terminal::remove, "v2.pty.remove", Admin, OF_TERMINAL)
        .at_location()
        .returns_nothing()
        .fails(&[400, 401, 404]),
    post!("/api/pty/{ptyID}/connect-token", terminal::ticket, "v2.pty.connectToken", Admin, OF_TERMINAL)
        .at_location()
        .returns("{location:LocationInfo,data:PtyTicketConnectToken}")
        .fails(&[400, 401, 403, 404]),
    get!("/api/pty/{ptyID}/connect", pty::connect, "v2.pty.connect", Terminal, OF_TERMINAL)
        .without_deadline()
        .recorded()
        .query("location[directory]?:string&location[workspace]?:string&cursor?:string&ticket?:string")
        .returns("boolean")
        .fails(&[400, 401, 403, 404]),
    get!("/api/fs/list", file::api_list, "v2.fs.list", Anyone, Directory)
        .at_location()
        .query("path?:string")
        .returns("{location:LocationInfo,data:[FileSystemEntry]}")
        .fails(&[400, 401]),
    get!("/api/fs/find", file::api_find, "v2.fs.find", Anyone, Directory)
        .at_location()
        .query("query:string&type?:('file'|'directory')&limit?:string")
        .returns("{location:LocationInfo,data:[FileSystemEntry]}")
        .fails(&[400, 401]),
    get!("/api/fs/read/{*path}", file::api_read, "v2.fs.read", Anyone, Directory)
        .at_location()
        .returns_bytes("string")
        .fails(&[400, 401]),
];

/// The sessions of the v2 API.
pub(super) const V2_SESSIONS: &[Route] = &[
    get!("/api/session", api::sessions, "v2.session.list", Filtered, Here)
        .in_directory()
        .query(
            "limit?:number&order?:('asc'|\
             'desc')&search?:string&project?:string&subpath?:string&cursor?:string",
        )
        .returns("SessionsResponse")
        .fails(&[400, 401]),
    post!("/api/session", api::session::create, "v2.session.create", Member, Directory)
        .takes("{id?:string^ses,agent?:string,model?:ModelRef,location?:LocationRef}")
        .returns("{data:SessionV2Info}")
        .fails(&[400, 401]),
    get!("/api/session/active", api::active, "v2.session.active", Filtered, Everywhere)
        .returns("{data:<any>}")
        .fails(&[400, 401]),
    get!("/api/session/{sessionID}", api::session, "v2.session.get", Read, Here)
        .returns("{data:SessionV2Info}")
        .fails(&[400, 401, 404]),
    post!("/api/session/{sessionID}/agent", api::session::agent, "v2.session.switchAgent", Write, Session)
        .takes("{agent:string}")
        .returns_nothing()
        .fails(&[400, 401, 404]),
    post!("/api/session/{sessionID}/model", api::session::model, "v2.session.switchModel", Write, Session)
        .takes("{model:ModelRef}")
        .returns_nothing()
        .fails(&[400, 401, 404]),
    post!(
        "/api/session/{sessionID}/interrupt",
        api::session::interrupt,
        "v2.session.interrupt",
        Write,
        SessionOrHere
    )
    .returns_nothing()
    .fails(&[400, 401, 404]),
    post!("/api/session/{sessionID}/wait", api::session::wait, "v2.session.wait", Read, Session)
        .without_deadline()
        .unchanging("waits")
        .returns_nothing()
        .fails(&[400, 401, 404, 503]),
    post!("/api/session/{sessionID}/compact", api::session::compact, "v2.session.compact", Write, Session)
        .without_deadline()
        .returns_nothing()
        .fails(&[400, 401, 404, 503]),
    post!("/api/session/{sessionID}/prompt", message::prompt, "v2.session.prompt", Write, Session)
        .takes("{id?:string^msg_,prompt:PromptInput,delivery?:('steer'|'queue'),resume?:boolean}")
        .returns("{data:SessionInputAdmitted}")
        .fails(&[400, 401, 404, 409]),
    get!("/api/session/{sessionID}/message", message::messages, "v2.session.messages", Read, Here)
        .query("limit?:number&order?:('asc'|'desc')&cursor?:string")
        .returns("SessionMessagesResponse")
        .fails(&[400, 401, 404, 500]),
    get!("/api/session/{sessionID}/message/{messageID}", message::one, "v2.session.message", Read, Here)
        .returns("{data:SessionMessage}")
        .fails(&[400, 401, 404]),
    get!("/api/session/{sessionID}/context", message::context, "v2.session.context", Read, Here)
        .returns("{data:[SessionMessage]}")
        .fails(&[400, 401, 404, 500]),
    get!("/api/session/{sessionID}/history", history::read, "v2.session.history", Read, Here)
        .query("limit?:string&after?:string")
        .returns("SessionHistory")
        .fails(&[400, 401, 404]),
    get!("/api/session/{sessionID}/event", history::follow, "v2.session.events", Read, Here)
        .without_deadline()
        .query("after?:string")
        .streams("{id:string,event:string,data:SessionDurableEventStream}")
        .fails(&[400, 401, 404]),
    post!("/api/session/{sessionID}/revert/stage", revert::stage, "v2.session.revert.stage", Write, Session)
        .without_deadline()
        .takes("{messageID:string^msg_,files?:boolean}")
        .returns("{data:RevertState}")
        .fails(&[400, 401, 404, 500]),
    post!("/api/session/{sessionID}/revert/clear", revert::clear, "v2.session.revert.clear", Write, Session)
        .without_deadline()
        .returns_nothing()
        .fails(&[400, 401, 404, 500]),
    post!(
        "/api/session/{sessionID}/revert/commit",
        revert::commit,
        "v2.session.revert.commit",
        Write,
        Session
    )
    .without_deadline()
    .returns_nothing()
    .fails(&[400, 401, 404]),
    post!(
        "/api/session/{sessionID}/permission",
        pending::request_permission,
        "v2.session.permission.create",
        Write,
        Session
    )
    .takes(
        "{id?:string^per,action:string,resources:[string],save?:[string],metadata?:<any>,\
             source?:PermissionV2Source,agent?:string}",
    )
    .returns("{data:{id:string^per,effect:PermissionV2Effect}}")
    .fails(&[400, 401, 404]),
    get!(
        "/api/session/{sessionID}/permission",
        pending::permissions_of,
        "v2.session.permission.list",
        Read,
        Here
    )
    .returns("{data:[PermissionV2Request]}")
    .fails(&[400, 401, 404]),
    get!(
        "/api/session/{sessionID}/permission/{requestID}",
        pending::permission_of,
        "v2.session.permission.get",
        Read,
        Here
    )
    .returns("{data:PermissionV2Request}")
    .fails(&[400, 401, 404]),
    post!(
        "/api/session/{sessionID}/permission/{requestID}/reply",
        pending::reply_permission,
        "v2.session.permission.reply",
        Permission,
        Here
    )
    .recorded_by_handler()
    .takes("{reply:PermissionV2Reply,message?:string,wider?:[string],automatic?:boolean}")
    .returns_nothing()
    .fails(&[400, 401, 404]),
    get!(
        "/api/session/{sessionID}/question",
        pending::questions_of,
        "v2.session.question.list",
        Read,
        Session
    )
    .returns("{data:[QuestionV2Request]}")
    .fails(&[400, 401, 404]),
    post!(
        "/api/session/{sessionID}/question/{requestID}/reply",
        pending::reply,
        "v2.session.question.reply",
        Question,
        Session
    )
    .recorded_by_handler()
    .takes("QuestionV2Reply")
    .returns_nothing()
    .fails(&[400, 401, 404]),
    post!(
        "/api/session/{sessionID}/question/{requestID}/reject",
        pending::reject,
        "v2.session.question.reject",
        Question,
        Session
    )
    .recorded_by_handler()
    .returns_nothing()
    .fails(&[400, 401, 404]),
];
