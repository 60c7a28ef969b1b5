//! Sessions, sign-ins, terminals, permission requests and questions.

use super::super::session::{self, change};
use super::super::{auth, experimental, permission, pty, question, review, sync};
use super::{Route, delete, get, patch, post, put};
use crate::auth::rules::Need::{
    Admin, Anyone, Filtered, Member, Permission, Question, Read, Terminal, Write,
};
use crate::nodes::reach::Reach::{Directory, Everywhere, Here, Session, SessionOrHere};
use crate::nodes::reach::{OF_QUESTION, OF_QUESTION_IN_BODY, OF_TERMINAL};

/// Sessions, sign-ins, terminals, permission requests and questions.
pub(super) const SESSIONS: &[Route] = &[
    get!("/session", session::list, "session.list", Filtered, Directory)
        .in_directory()
        .query(
            "scope?:'project'&path?:string&roots?:(boolean|('true'|\
             'false'))&start?:number&search?:string&limit?:number",
        )
        .returns("[Session]")
        .fails(&[400]),
    post!("/session", session::create, "session.create", Member, Directory)
        .in_directory()
        .takes(
            "{parentID?:string^ses,title?:string,agent?:string,model?:{id:string,providerID:string,\
             variant?:string},metadata?:<any>,permission?:PermissionRuleset,workspaceID?:string^wrk}",
        )
        .returns("Session")
        .fails(&[400]),
    get!("/session/status", session::statuses, "session.status", Filtered, Everywhere)
        .in_directory()
        .returns("<SessionStatus>")
        .fails(&[400]),
    get!("/session/{sessionID}", session::read, "session.get", Read, Here)
        .in_directory()
        .returns("Session")
        .fails(&[400, 404]),
    patch!("/session/{sessionID}", session::update, "session.update", Write, Here)
        .in_directory()
        .takes("{title?:string,metadata?:<any>,permission?:PermissionRuleset,time?:{archived?:number}}")
        .returns("Session")
        .fails(&[400, 404]),
    delete!("/session/{sessionID}", session::remove, "session.delete", Write, SessionOrHere)
        .in_directory()
        .returns("boolean")
        .fails(&[400, 404]),
    get!("/session/{sessionID}/message", session::messages, "session.messages", Read, Here)
        .in_directory()
        .query("limit?:integer&before?:string")
        .returns("[{info:Message,parts:[Part]}]")
        .fails(&[400, 404]),
    post!("/session/{sessionID}/message", session::prompt, "session.prompt", Write, Session)
        .without_deadline()
        .in_directory()
        .takes(
            "{messageID?:string^msg,model?:{providerID:string,modelID:string},chosen?:boolean,\
             agent?:string,noReply?:boolean,tools?:<boolean>,format?:OutputFormat,system?:string,\
             variant?:string,parts:[(TextPartInput|FilePartInput|AgentPartInput|SubtaskPartInput)]}",
        )
        .returns("{info:AssistantMessage,parts:[Part]}")
        .fails(&[400, 404]),
    post!("/session/{sessionID}/prompt", session::prompt, "session.prompt.alias", Write, Session)
        .without_deadline()
        .in_directory()
        .takes(
            "{messageID?:string^msg,model?:{providerID:string,modelID:string},chosen?:boolean,\
             agent?:string,noReply?:boolean,tools?:<boolean>,format?:OutputFormat,system?:string,\
             variant?:string,parts?:[(TextPartInput|FilePartInput|AgentPartInput|SubtaskPartInput)],\
             content?:(string|[(TextPartInput|FilePartInput|AgentPartInput|SubtaskPartInput)])}",
        )
        .returns("{info:AssistantMessage,parts:[Part]}")
        .fails(&[400, 404]),
    get!("/session/{sessionID}/message/{messageID}", session::message, "session.message", Read, Here)
        .in_directory()
        .returns("{info:Message,parts:[Part]}")
        .fails(&[400, 404]),
    post!("/session/{sessionID}/prompt_async", session::prompt_async, "session.prompt_async", Write, Session)
        .in_directory()
        .takes(
            "{messageID?:string^msg,model?:{providerID:string,modelID:string},chosen?:boolean,\
             agent?:string,noReply?:boolean,tools?:<boolean>,format?:OutputFormat,system?:string,\
             variant?:string,parts:[(TextPartInput|FilePartInput|AgentPartInput|SubtaskPartInput)]}",
        )
        .returns_nothing()
        .fails(&[400, 404]),
    post!("/session/{sessionID}/abort", session::abort, "session.abort", Write, SessionOrHere)
        .in_directory()
        .returns("boolean")
        .fails(&[400]),
    post!("/session/{sessionID}/fork", session::fork, "session.fork", Read, Session)
        .in_directory()
        .takes("{messageID?:string^msg}")
        .returns("Session")
        .fails(&[400, 404]),
    get!("/session/{sessionID}/children", change::children, "session.children", Read, Here)
        .in_directory()
        .returns("[Session]")
        .fails(&[400, 404]),
    get!("/session/{sessionID}/todo", change::todos, "session.todo", Read, Here)
        .in_directory()
        .returns("[Todo]")
        .fails(&[400, 404]),
    get!("/session/{sessionID}/review", review::findings, "session.review", Read, Here)
        .in_directory()
        .returns("Review")
        .fails(&[400, 404]),
    get!("/session/{sessionID}/diff", change::diff, "session.diff", Read, Here)
        .in_directory()
        .query("messageID?:string^msg")
        .returns("[SnapshotFileDiff]")
        .fails(&[400]),
    delete!(
        "/session/{sessionID}/message/{messageID}",
        change::remove_message,
        "session.deleteMessage",
        Write,
        Session
    )
    .in_directory()
    .returns("boolean")
    .fails(&[400, 404, 409]),
    delete!(
        "/session/{sessionID}/message/{messageID}/part/{partID}",
        change::remove_part,
        "part.delete",
        Write,
        Session
    )
    .in_directory()
    .returns("boolean")
    .fails(&[400, 404]),
    patch!(
        "/session/{sessionID}/message/{messageID}/part/{partID}",
        change::update_part,
        "part.update",
        Write,
        Session
    )
    .in_directory()
    .takes("Part")
    .returns("Part")
    .fails(&[400, 404]),
    post!("/session/{sessionID}/share", change::share, "session.share", Write, Here)
        .in_directory()
        .returns("Session")
        .fails(&[400, 404, 500]),
    delete!("/session/{sessionID}/share", change::unshare, "session.unshare", Write, Here)
        .in_directory()
        .returns("Session")
        .fails(&[400, 404, 500]),
    post!("/session/{sessionID}/revert", change::revert, "session.revert", Write, Session)
        .without_deadline()
        .in_directory()
        .takes("{messageID:string^msg,partID?:string^prt}")
        .returns("Session")
        .fails(&[400, 404, 409]),
    post!("/session/{sessionID}/unrevert", change::unrevert, "session.unrevert", Write, Session)
        .without_deadline()
        .in_directory()
        .returns("Session")
        .fails(&[400, 404, 409]),
    post!("/session/{sessionID}/command", session::command, "session.command", Write, Session)
        .without_deadline()
        .in_directory()
        .takes(
            "{messageID?:string^msg,agent?:string,model?:string,chosen?:boolean,arguments:string,\
             command:string,variant?:string,parts?:[{id?:string^prt,type:'file',mime:string,\
             filename?:string,url:string,source?:FilePartSource}]}",
        )
        .returns("{info:AssistantMessage,parts:[Part]}")
        .fails(&[400, 404]),
    post!("/session/{sessionID}/summarize", session::summarize, "session.summarize", Write, Session)
        .without_deadline()
        .in_directory()
        .takes("{providerID:string,modelID:string,auto?:boolean}")
        .returns("boolean")
        .fails(&[400, 404]),
    post!("/session/{sessionID}/compact", session::compact, "session.compact.alias", Write, Session)
        .without_deadline()
        .in_directory()
        .returns("boolean")
        .fails(&[400, 404]),
    post!("/session/{sessionID}/shell", session::shell, "session.shell", Admin, Session)
        .without_deadline()
        .in_directory()
        .takes(
            "{messageID?:string^msg,agent:string,model?:{providerID:string,modelID:string},\
             command:string}",
        )
        .returns("{info:Message,parts:[Part]}")
        .fails(&[400, 404, 409]),
    post!("/session/{sessionID}/init", session::init, "session.init", Write, Session)
        .without_deadline()
        .in_directory()
        .takes("{modelID:string,providerID:string,messageID:string^msg}")
        .returns("boolean")
        .fails(&[400, 404]),
    post!("/sync/start", sync::start, "sync.start", Anyone, Here)
        .unchanging("does nothing")
        .in_directory()
        .returns("boolean")
        .fails(&[400]),
    post!("/sync/steal", experimental::no_workspaces, "sync.steal", Admin, Here)
        .unchanging("always refused")
        .in_directory()
        .takes("{sessionID:string^ses}")
        .returns("{sessionID:string^ses}")
        .fails(&[400]),
    post!("/sync/replay", sync::replay, "sync.replay", Admin, Here)
        .in_directory()
        .takes(
            "{directory:string,events:[{id:string^evt_,aggregateID:string,seq:integer,type:string,\
             data:<any>}]}",
        )
        .returns("{sessionID:string}")
        .fails(&[400]),
    post!("/sync/history", sync::history, "sync.history.list", Admin, Here)
        .unchanging("reads")
        .in_directory()
        .takes("<integer>")
        .returns("[{id:string^evt_,aggregate_id:string,seq:integer,type:string,data:<any>}]")
        .fails(&[400]),
    put!("/auth/{providerID}", auth::set, "auth.set", Admin, Here)
        .takes("Auth")
        .returns("boolean")
        .fails(&[400]),
    delete!("/auth/{providerID}", auth::remove, "auth.remove", Admin, Here).returns("boolean").fails(&[400]),
    post!("/auth/{providerID}/verify", auth::verify, "auth.verify", Admin, Here)
        .in_directory()
        .returns("{status:('accepted'|'refused'|'unchecked'|'unreachable'),message:(string|null)}")
        .fails(&[400]),
    get!("/provider/auth", auth::methods, "provider.auth", Anyone, Here)
        .in_directory()
        .returns("<[ProviderAuthMethod]>")
        .fails(&[400]),
    post!("/provider/{providerID}/oauth/authorize", auth::begin, "provider.oauth.authorize", Admin, Here)
        .without_deadline()
        .in_directory()
        .takes("{method:number,inputs?:<string>}")
        .returns("ProviderAuthAuthorization")
        .fails(&[400]),
    post!("/provider/{providerID}/oauth/callback", auth::finish, "provider.oauth.callback", Admin, Here)
        .without_deadline()
        .in_directory()
        .takes("{method:number,code?:string}")
        .returns("boolean")
        .fails(&[400]),
    get!("/pty/shells", pty::shells, "pty.shells", Anyone, Here)
        .in_directory()
        .returns("[{path:string,name:string,acceptable:boolean}]")
        .fails(&[400]),
    get!("/pty", pty::list, "pty.list", Admin, Everywhere).in_directory().returns("[Pty]").fails(&[400]),
    post!("/pty", pty::create, "pty.create", Admin, Directory)
        .in_directory()
        .takes("{command?:string,args?:[string],cwd?:string,title?:string,env?:<string>}")
        .returns("Pty")
        .fails(&[400]),
    get!("/pty/{ptyID}", pty::read, "pty.get", Admin, OF_TERMINAL)
        .in_directory()
        .returns("Pty")
        .fails(&[400, 404]),
    put!("/pty/{ptyID}", pty::update, "pty.update", Admin, OF_TERMINAL)
        .in_directory()
        .takes("{title?:string,size?:{rows:integer,cols:integer}}")
        .returns("Pty")
        .fails(&[400, 404]),
    delete!("/pty/{ptyID}", pty::remove, "pty.remove", Admin, OF_TERMINAL)
        .in_directory()
        .returns("boolean")
        .fails(&[400, 404]),
    post!("/pty/{ptyID}/connect-token", pty::ticket, "pty.connectToken", Admin, OF_TERMINAL)
        .in_directory()
        .returns("PtyTicketConnectToken")
        .fails(&[400, 403, 404]),
    get!("/pty/{ptyID}/connect", pty::connect, "pty.connect", Terminal, OF_TERMINAL)
        .without_deadline()
        .recorded()
        .in_directory()
        .query("cursor?:string&ticket?:string")
        .returns("boolean")
        .fails(&[403, 404]),
    get!("/permission", permission::list, "permission.list", Filtered, Here)
        .in_directory()
        .returns("[PermissionRequest]")
        .fails(&[400]),
    post!("/permission", permission::add, "permission.add", Member, Here)
        .in_directory()
        .takes("{sessionID?:string^ses,permission:string,pattern:string,action:PermissionAction}")
        .returns("boolean")
        .fails(&[400, 404]),
    post!("/permission/{requestID}/reply", permission::reply, "permission.reply", Permission, Here)
        .recorded_by_handler()
        .in_directory()
        .takes("{reply:('once'|'always'|'reject'),message?:string,wider?:[string],automatic?:boolean}")
        .returns("boolean")
        .fails(&[400, 404]),
    post!(
        "/session/{sessionID}/permissions/{permissionID}",
        permission::respond,
        "permission.respond",
        Permission,
        Here
    )
    .recorded_by_handler()
    .in_directory()
    .takes("{response:('once'|'always'|'reject')}")
    .returns("boolean")
    .fails(&[400, 404]),
    get!("/question", question::list, "question.list", Filtered, Everywhere)
        .in_directory()
        .returns("[QuestionRequest]")
        .fails(&[400]),
    post!("/question", question::answer, "question.reply.alias", Member, OF_QUESTION_IN_BODY)
        .recorded_by_handler()
        .takes(
            "{id:string,answers?:[QuestionAnswer],reply?:('once'|'always'|'reject'),message?:string,\
             wider?:[string],automatic?:boolean}",
        )
        .returns("boolean")
        .fails(&[400, 404]),
    post!("/question/{requestID}/reply", question::reply, "question.reply", Question, OF_QUESTION)
        .recorded_by_handler()
        .in_directory()
        .takes("{answers:[QuestionAnswer]}")
        .returns("boolean")
        .fails(&[400, 404]),
    post!("/question/{requestID}/reject", question::reject, "question.reject", Question, OF_QUESTION)
        .recorded_by_handler()
        .in_directory()
        .returns("boolean")
        .fails(&[400, 404]),
];
