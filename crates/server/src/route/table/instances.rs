//! The server, its instances, configuration, trust and servers of tools.

use super::super::{
    config, doc, event, experimental, instance, log, mcp, ops, project, sign_in, trust, users,
};
use super::{Route, delete, get, patch, post, put};
use crate::auth::rules::Need::{Admin, Anyone, Filtered, Member, Write};
use crate::nodes::reach::Reach::{Directory, Here};

/// The server, instances, configuration, trust and MCP servers.
pub(super) const INSTANCES: &[Route] = &[
    get!("/doc", doc::read, "doc.get", Anyone, Here).returns("<any>"),
    get!("/global/health", instance::health, "global.health", Anyone, Here)
        .returns("{healthy:true,version:string}")
        .fails(&[400]),
    get!("/global/ready", ops::ready, "global.ready", Anyone, Here)
        .returns("{ready:boolean,reason?:string}")
        .fails(&[401, 503]),
    post!("/sign-in", sign_in::begin, "auth.signIn", Anyone, Here)
        .returns("{key:string}")
        .fails(&[400, 401, 404, 429]),
    post!("/sign-out", sign_in::end, "auth.signOut", Anyone, Here).returns("boolean").fails(&[400, 401]),
    get!("/users/me", users::me, "users.me", Anyone, Here)
        .returns("{name:string,role:('admin'|'member'|'reader'),teams:[string]}")
        .fails(&[401, 404]),
    get!("/users/usage", users::usage, "users.usage", Anyone, Here)
        .returns(
            "{user:{used:{tokens:integer,cost:number,sessions:integer},quota:{tokens:(integer|null),\
             cost:(number|null),sessions:(integer|null)}},teams:<{used:{tokens:integer,cost:number,\
             sessions:integer},quota:{tokens:(integer|null),cost:(number|null),sessions:(integer|\
             null)}}>}",
        )
        .fails(&[401, 404]),
    get!("/users/audit", users::audit, "users.audit", Admin, Here)
        .query("before?:integer&limit?:integer")
        .returns(
            "[{id:integer,time:integer,user:string,action:string,target:string,detail:string,\
             request:string}]",
        )
        .fails(&[401, 403]),
    put!("/session/{sessionID}/access", users::share, "users.access", Write, Here)
        .takes("{shared:<('read'|'full')>}")
        .returns("Session")
        .fails(&[400, 401, 403, 404]),
    get!("/metrics", ops::metrics, "global.metrics", Admin, Here).returns_text("string").fails(&[401, 404]),
    get!("/global/event", event::global, "global.event", Filtered, Here)
        .without_deadline()
        .query("names?:('current'|'legacy')")
        .streams("GlobalEvent")
        .fails(&[400]),
    get!("/global/sync-event", event::sync, "global.syncEvent", Filtered, Here)
        .without_deadline()
        .streams("GlobalEvent")
        .fails(&[400]),
    get!("/event", event::local, "event.subscribe", Filtered, Directory)
        .without_deadline()
        .in_directory()
        .query("sessionID?:string^ses&names?:('current'|'legacy')")
        .streams("Event"),
    get!("/path", instance::path, "path.get", Anyone, Directory).in_directory().returns("Path").fails(&[400]),
    post!("/instance/dispose", instance::dispose, "instance.dispose", Admin, Directory)
        .in_directory()
        .returns("boolean")
        .fails(&[400]),
    post!("/global/dispose", instance::dispose_all, "global.dispose", Admin, Here)
        .returns("boolean")
        .fails(&[400]),
    post!("/global/drain", instance::drain, "global.drain", Admin, Here).returns("boolean").fails(&[400]),
    post!("/global/upgrade", instance::upgrade, "global.upgrade", Admin, Here)
        .takes("{target:string}")
        .returns("({success:true,version:string}|{success:false,error:string})")
        .fails(&[400]),
    post!("/log", log::write, "app.log", Member, Here)
        .unchanging("the log itself records it")
        .in_directory()
        .takes("{service:string,level:('debug'|'info'|'error'|'warn'),message:string,extra?:<any>}")
        .returns("boolean")
        .fails(&[400]),
    get!("/log", log::read, "app.log.read", Admin, Here)
        .in_directory()
        .query("limit?:integer&level?:('debug'|'info'|'error'|'warn')")
        .returns("[LogLine]")
        .fails(&[400]),
    get!("/project", project::list, "project.list", Anyone, Here)
        .in_directory()
        .returns("[Project]")
        .fails(&[400]),
    get!("/project/current", project::current, "project.current", Anyone, Directory)
        .in_directory()
        .returns("Project")
        .fails(&[400]),
    post!("/project/git/init", project::init_git, "project.initGit", Admin, Directory)
        .in_directory()
        .returns("Project")
        .fails(&[400]),
    patch!("/project/{projectID}", project::update, "project.update", Admin, Here)
        .in_directory()
        .takes("{name?:string,icon?:ProjectIcon,commands?:ProjectCommands}")
        .returns("Project")
        .fails(&[400, 404]),
    get!("/project/{projectID}/directories", project::directories, "project.directories", Anyone, Here)
        .in_directory()
        .returns("ProjectDirectories")
        .fails(&[400]),
    get!("/config", config::read, "config.get", Anyone, Directory)
        .in_directory()
        .returns("Config")
        .fails(&[400]),
    patch!("/config", config::change, "config.update", Admin, Directory)
        .in_directory()
        .takes("Config")
        .returns("Config")
        .fails(&[400]),
    put!("/config", config::change, "config.update.alias", Admin, Directory)
        .in_directory()
        .takes("Config")
        .returns("Config")
        .fails(&[400]),
    get!("/global", experimental::sessions, "experimental.session.list.alias", Filtered, Here)
        .in_directory()
        .query(
            "roots?:(boolean|('true'|\
             'false'))&start?:number&cursor?:number&search?:string&limit?:number&archived?:(boolean|\
             ('true'|'false'))",
        )
        .returns("[GlobalSession]")
        .fails(&[400]),
    get!("/global/config", config::read_global, "global.config.get", Anyone, Here)
        .returns("Config")
        .fails(&[400]),
    patch!("/global/config", config::change_global, "global.config.update", Admin, Here)
        .takes("Config")
        .returns("Config")
        .fails(&[400]),
    get!("/trust", trust::read, "trust.get", Anyone, Directory).in_directory().returns("Trust").fails(&[400]),
    post!("/trust", trust::decide, "trust.decide", Admin, Directory)
        .in_directory()
        .takes("{decision:('trust'|'restrict'),fingerprint:string}")
        .returns("Trust")
        .fails(&[400]),
    post!("/trust/dismiss", trust::dismiss, "trust.dismiss", Admin, Directory)
        .in_directory()
        .takes("{fingerprint:string}")
        .returns("boolean")
        .fails(&[400]),
    get!("/trust/decisions", trust::list, "trust.list", Admin, Here).returns("[TrustDecision]").fails(&[400]),
    delete!("/trust/decisions", trust::remove, "trust.remove", Admin, Here)
        .query("path:string")
        .returns("boolean")
        .fails(&[400]),
    get!("/config/providers", instance::providers, "config.providers", Anyone, Directory)
        .in_directory()
        .returns(
            "{providers:[Provider],default:<string>,model:({providerID:string,modelID:string,\
             guessed:boolean}|null)}",
        )
        .fails(&[400]),
    get!("/provider", instance::all_providers, "provider.list", Anyone, Directory)
        .in_directory()
        .returns("{all:[Provider],default:<string>,connected:[string]}")
        .fails(&[400]),
    get!("/agent", instance::agents, "app.agents", Anyone, Directory)
        .in_directory()
        .returns("[Agent]")
        .fails(&[400]),
    get!("/command", instance::commands, "command.list", Anyone, Directory)
        .without_deadline()
        .in_directory()
        .returns("[Command]")
        .fails(&[400]),
    get!("/skill", instance::skills, "app.skills", Anyone, Directory)
        .in_directory()
        .returns("[{name:string,description?:string,location:string,content:string}]")
        .fails(&[400]),
    get!("/lsp", instance::language_servers, "lsp.status", Anyone, Directory)
        .in_directory()
        .returns("[LSPStatus]")
        .fails(&[400]),
    get!("/formatter", instance::formatters, "formatter.status", Anyone, Directory)
        .in_directory()
        .returns("[FormatterStatus]")
        .fails(&[400]),
    get!("/mcp", mcp::status, "mcp.status", Anyone, Directory)
        .without_deadline()
        .in_directory()
        .returns("<MCPStatus>")
        .fails(&[400]),
    post!("/mcp", mcp::add, "mcp.add", Admin, Directory)
        .without_deadline()
        .in_directory()
        .takes("{name:string,config:(McpLocalConfig|McpRemoteConfig)}")
        .returns("<MCPStatus>")
        .fails(&[400]),
    delete!("/mcp", mcp::remove, "mcp.remove", Admin, Directory)
        .in_directory()
        .query("name:string")
        .returns("<MCPStatus>")
        .fails(&[400, 404]),
    post!("/mcp/{name}/auth", mcp::begin, "mcp.auth.start", Admin, Directory)
        .without_deadline()
        .in_directory()
        .returns("{authorizationUrl:string,oauthState:string}")
        .fails(&[400, 404]),
    delete!("/mcp/{name}/auth", mcp::sign_out, "mcp.auth.remove", Admin, Directory)
        .in_directory()
        .returns("{success:true}")
        .fails(&[400, 404]),
    post!("/mcp/{name}/auth/callback", mcp::callback, "mcp.auth.callback", Admin, Directory)
        .without_deadline()
        .in_directory()
        .takes("{code:string}")
        .returns("MCPStatus")
        .fails(&[400, 404]),
    post!("/mcp/{name}/auth/authenticate", mcp::authenticate, "mcp.auth.authenticate", Admin, Directory)
        .without_deadline()
        .in_directory()
        .returns("MCPStatus")
        .fails(&[400, 404]),
    post!("/mcp/{name}/connect", mcp::connect, "mcp.connect", Admin, Directory)
        .without_deadline()
        .in_directory()
        .returns("boolean")
        .fails(&[400, 404]),
    post!("/mcp/{name}/disconnect", mcp::disconnect, "mcp.disconnect", Admin, Directory)
        .in_directory()
        .returns("boolean")
        .fails(&[400, 404]),
];
