//! Files, version control, the remote control of a terminal client, and experimental routes.

use super::super::{experimental, file, mcp, review, sandbox, tui, vcs, worktree};
use super::{Route, delete, get, post};
use crate::auth::rules::Need::{Admin, Anyone, Filtered, Member, Write};
use crate::nodes::reach::Reach::{Directory, Here, Session};

/// Files and version control.
pub(super) const FILES: &[Route] = &[
    get!("/file", file::list, "file.list", Anyone, Directory)
        .in_directory()
        .query("path:string")
        .returns("[FileNode]")
        .fails(&[400]),
    get!("/file/content", file::content, "file.read", Anyone, Directory)
        .in_directory()
        .query("path:string")
        .returns("FileContent")
        .fails(&[400]),
    get!("/file/status", file::status, "file.status", Anyone, Directory)
        .in_directory()
        .returns("[File]")
        .fails(&[400]),
    get!("/find", file::find_text, "find.text", Anyone, Directory)
        .in_directory()
        .query("pattern:string")
        .returns(
            "[{path:{text:string},lines:{text:string},line_number:integer,absolute_offset:integer,\
             submatches:[{match:{text:string},start:integer,end:integer}]}]",
        )
        .fails(&[400]),
    get!("/find/file", file::find_files, "find.files", Anyone, Directory)
        .in_directory()
        .query("query:string&dirs?:('true'|'false')&type?:('file'|'directory')&limit?:integer")
        .returns("[string]")
        .fails(&[400]),
    get!("/find/symbol", file::find_symbols, "find.symbols", Anyone, Directory)
        .in_directory()
        .query("query:string")
        .returns("[Symbol]")
        .fails(&[400]),
    get!("/vcs", vcs::read, "vcs.get", Anyone, Directory).in_directory().returns("VcsInfo").fails(&[400]),
    get!("/vcs/status", vcs::status, "vcs.status", Anyone, Directory)
        .in_directory()
        .returns("[VcsFileStatus]")
        .fails(&[400]),
    get!("/vcs/diff", vcs::diff, "vcs.diff", Anyone, Directory)
        .in_directory()
        .query("mode:('git'|'branch')&context?:integer")
        .returns("[VcsFileDiff]")
        .fails(&[400]),
    get!("/vcs/diff/raw", vcs::raw, "vcs.diff.raw", Anyone, Directory)
        .in_directory()
        .returns_text("string")
        .fails(&[400]),
    post!("/vcs/apply", vcs::apply, "vcs.apply", Member, Directory)
        .in_directory()
        .takes("{patch:string}")
        .returns("{applied:boolean}")
        .fails(&[400]),
];

/// Experimental routes, most of them for features that do not exist here.
pub(super) const EXPERIMENTAL: &[Route] = &[
    get!(
        "/experimental/capabilities",
        experimental::capabilities,
        "experimental.capabilities.get",
        Anyone,
        Directory
    )
    .in_directory()
    .returns("ExperimentalCapabilities")
    .fails(&[400]),
    get!("/experimental/review", review::request, "experimental.review.request", Anyone, Directory)
        .in_directory()
        .query("range?:string")
        .returns("ReviewRequest")
        .fails(&[400]),
    post!("/experimental/bug", review::bug, "experimental.bug", Admin, Directory)
        .in_directory()
        .returns("{name:string,text:string,advice:string}")
        .fails(&[400]),
    get!("/experimental/sandbox", sandbox::read, "experimental.sandbox.get", Anyone, Directory)
        .in_directory()
        .query("probe?:('true'|'false')")
        .returns("SandboxStatus")
        .fails(&[400]),
    get!("/experimental/console", experimental::console, "experimental.console.get", Anyone, Here)
        .in_directory()
        .returns("ConsoleState")
        .fails(&[400, 500]),
    get!("/experimental/console/orgs", experimental::orgs, "experimental.console.listOrgs", Anyone, Here)
        .in_directory()
        .returns(
            "{orgs:[{accountID:string,accountEmail:string,accountUrl:string,orgID:string,\
             orgName:string,active:boolean}]}",
        )
        .fails(&[400, 500]),
    post!(
        "/experimental/console/switch",
        experimental::switch_org,
        "experimental.console.switchOrg",
        Admin,
        Here
    )
    .unchanging("always refused")
    .in_directory()
    .takes("{accountID:string,orgID:string}")
    .returns("boolean"),
    get!("/experimental/tool", experimental::tools, "tool.list", Anyone, Directory)
        .in_directory()
        .query("provider:string&model:string")
        .returns("ToolList")
        .fails(&[400]),
    get!("/experimental/tool/ids", experimental::tool_ids, "tool.ids", Anyone, Directory)
        .in_directory()
        .returns("ToolIDs")
        .fails(&[400]),
    get!("/experimental/worktree", worktree::list, "worktree.list", Anyone, Directory)
        .in_directory()
        .returns("[string]")
        .fails(&[400]),
    post!("/experimental/worktree", worktree::create, "worktree.create", Admin, Directory)
        .without_deadline()
        .in_directory()
        .takes("WorktreeCreateInput")
        .returns("Worktree")
        .fails(&[400]),
    delete!("/experimental/worktree", worktree::remove, "worktree.remove", Admin, Directory)
        .without_deadline()
        .in_directory()
        .takes("WorktreeRemoveInput")
        .returns("boolean")
        .fails(&[400]),
    post!("/experimental/worktree/reset", worktree::reset, "worktree.reset", Admin, Directory)
        .without_deadline()
        .in_directory()
        .takes("WorktreeResetInput")
        .returns("boolean")
        .fails(&[400]),
    get!("/experimental/session", experimental::sessions, "experimental.session.list", Filtered, Here)
        .in_directory()
        .query(
            "roots?:(boolean|('true'|\
             'false'))&start?:number&cursor?:number&search?:string&limit?:number&archived?:(boolean|\
             ('true'|'false'))",
        )
        .returns("[GlobalSession]")
        .fails(&[400]),
    post!(
        "/experimental/session/{sessionID}/background",
        experimental::background,
        "experimental.session.background",
        Write,
        Session
    )
    .in_directory()
    .returns("boolean")
    .fails(&[400]),
    get!("/experimental/resource", mcp::resources, "experimental.resource.list", Anyone, Directory)
        .without_deadline()
        .in_directory()
        .returns("<McpResource>")
        .fails(&[400]),
    get!(
        "/experimental/workspace/adapter",
        experimental::workspace_adapters,
        "experimental.workspace.adapter.list",
        Anyone,
        Here
    )
    .in_directory()
    .returns("[{type:string,name:string,description:string}]")
    .fails(&[400]),
    get!("/experimental/workspace", experimental::nothing, "experimental.workspace.list", Anyone, Here)
        .in_directory()
        .returns("[Workspace]")
        .fails(&[400]),
    post!(
        "/experimental/workspace",
        experimental::no_workspaces,
        "experimental.workspace.create",
        Admin,
        Here
    )
    .unchanging("always refused")
    .in_directory()
    .takes("{id?:string^wrk,type:string,branch?:(string|null),extra?:(any|null)}")
    .returns("Workspace")
    .fails(&[400]),
    post!(
        "/experimental/workspace/sync-list",
        experimental::done,
        "experimental.workspace.syncList",
        Anyone,
        Here
    )
    .unchanging("does nothing")
    .in_directory()
    .returns_nothing()
    .fails(&[400]),
    get!(
        "/experimental/workspace/status",
        experimental::nothing,
        "experimental.workspace.status",
        Anyone,
        Here
    )
    .in_directory()
    .returns("[WorkspaceEventConnectionStatus]")
    .fails(&[400]),
    delete!(
        "/experimental/workspace/{id}",
        experimental::no_workspaces,
        "experimental.workspace.remove",
        Admin,
        Here
    )
    .unchanging("always refused")
    .in_directory()
    .returns("Workspace")
    .fails(&[400]),
    post!(
        "/experimental/workspace/warp",
        experimental::no_workspaces,
        "experimental.workspace.warp",
        Admin,
        Here
    )
    .unchanging("always refused")
    .in_directory()
    .takes("{id:(string^wrk|null),sessionID:string^ses,copyChanges?:boolean}")
    .returns_nothing()
    .fails(&[400, 404]),
    post!(
        "/experimental/control-plane/move-session",
        worktree::move_session,
        "experimental.controlPlane.moveSession",
        Member,
        Directory
    )
    .without_deadline()
    .takes("{sessionID:string^ses,destination:MoveSessionDestination,moveChanges?:boolean}")
    .returns_nothing()
    .fails(&[400]),
    post!(
        "/experimental/project/{projectID}/copy",
        experimental::no_copies,
        "v2.projectCopy.create",
        Admin,
        Here
    )
    .unchanging("always refused")
    .at_location()
    .takes("{strategy:string,directory:string,name?:string}")
    .returns("ProjectCopyCopy")
    .fails(&[400]),
    delete!(
        "/experimental/project/{projectID}/copy",
        experimental::no_copies,
        "v2.projectCopy.remove",
        Admin,
        Here
    )
    .unchanging("always refused")
    .at_location()
    .takes("{directory:string,force:boolean}")
    .returns_nothing()
    .fails(&[400]),
    post!(
        "/experimental/project/{projectID}/copy/refresh",
        experimental::done,
        "v2.projectCopy.refresh",
        Admin,
        Here
    )
    .unchanging("does nothing")
    .at_location()
    .returns_nothing()
    .fails(&[400]),
    post!(
        "/experimental/project/{projectID}/copy/generate-name",
        experimental::copy_name,
        "experimental.projectCopy.generateName",
        Anyone,
        Directory
    )
    .unchanging("returns a name")
    .in_directory()
    .takes("{context?:string}")
    .returns("{name:string}")
    .fails(&[400]),
];

/// The remote control of a terminal client.
pub(super) const CLIENTS: &[Route] = &[
    post!("/tui/append-prompt", tui::append, "tui.appendPrompt", Admin, Here)
        .in_directory()
        .takes("{text:string}")
        .returns("boolean")
        .fails(&[400]),
    post!("/tui/open-help", tui::open_help, "tui.openHelp", Admin, Here)
        .in_directory()
        .returns("boolean")
        .fails(&[400]),
    post!("/tui/open-sessions", tui::open_sessions, "tui.openSessions", Admin, Here)
        .in_directory()
        .returns("boolean")
        .fails(&[400]),
    post!("/tui/open-themes", tui::open_themes, "tui.openThemes", Admin, Here)
        .in_directory()
        .returns("boolean")
        .fails(&[400]),
    post!("/tui/open-models", tui::open_models, "tui.openModels", Admin, Here)
        .in_directory()
        .returns("boolean")
        .fails(&[400]),
    post!("/tui/submit-prompt", tui::submit, "tui.submitPrompt", Admin, Here)
        .in_directory()
        .returns("boolean")
        .fails(&[400]),
    post!("/tui/clear-prompt", tui::clear, "tui.clearPrompt", Admin, Here)
        .in_directory()
        .returns("boolean")
        .fails(&[400]),
    post!("/tui/execute-command", tui::execute, "tui.executeCommand", Admin, Here)
        .in_directory()
        .takes("{command:string}")
        .returns("boolean")
        .fails(&[400]),
    post!("/tui/show-toast", tui::toast, "tui.showToast", Admin, Here)
        .in_directory()
        .takes(
            "{title?:string,message:string,variant:('info'|'success'|'warning'|'error'),\
             duration?:integer}",
        )
        .returns("boolean")
        .fails(&[400]),
    post!("/tui/publish", tui::published, "tui.publish", Admin, Here)
        .in_directory()
        .takes("(EventTuiPromptAppend|EventTuiCommandExecute|EventTuiToastShow|EventTuiSessionSelect)")
        .returns("boolean")
        .fails(&[400]),
    post!("/tui/select-session", tui::select, "tui.selectSession", Admin, Here)
        .in_directory()
        .takes("{sessionID:string^ses}")
        .returns("boolean")
        .fails(&[400, 404]),
    get!("/tui/control/next", tui::next, "tui.control.next", Admin, Here)
        .without_deadline()
        .in_directory()
        .returns("{path:string,body:any}")
        .fails(&[400]),
    post!("/tui/control/response", tui::response, "tui.control.response", Admin, Here)
        .in_directory()
        .takes("any")
        .returns("boolean")
        .fails(&[400]),
];
