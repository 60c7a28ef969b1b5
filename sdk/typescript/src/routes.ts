// Generated from the API document by generate.mjs.
export const ROUTES: string = `
app.agents GET /agent
app.log POST /log
app.readLog GET /log
app.skills GET /skill
auth.remove DELETE /auth/{providerID}
auth.set PUT /auth/{providerID} =auth
auth.signIn POST /sign-in -
auth.signOut POST /sign-out -
auth.verify POST /auth/{providerID}/verify
command.list GET /command
config.get GET /config
config.providers GET /config/providers
config.update PATCH /config =config
doc.get GET /doc -
event.subscribe SSE /event
experimental.bug POST /experimental/bug
experimental.capabilities.get GET /experimental/capabilities
experimental.console.get GET /experimental/console
experimental.console.listOrgs GET /experimental/console/orgs
experimental.console.switchOrg POST /experimental/console/switch
experimental.controlPlane.moveSession POST /experimental/control-plane/move-session
experimental.projectCopy.generateName POST /experimental/project/{projectID}/copy/generate-name
experimental.resource.list GET /experimental/resource
experimental.review.request GET /experimental/review
experimental.sandbox.get GET /experimental/sandbox
experimental.session.background POST /experimental/session/{sessionID}/background
experimental.session.list GET /experimental/session
experimental.workspace.adapter.list GET /experimental/workspace/adapter
experimental.workspace.create POST /experimental/workspace
experimental.workspace.list GET /experimental/workspace
experimental.workspace.remove DELETE /experimental/workspace/{id}
experimental.workspace.status GET /experimental/workspace/status
experimental.workspace.syncList POST /experimental/workspace/sync-list
experimental.workspace.warp POST /experimental/workspace/warp
file.list GET /file
file.read GET /file/content
file.status GET /file/status
find.files GET /find/file
find.symbols GET /find/symbol
find.text GET /find
formatter.status GET /formatter
global.config.get GET /global/config -
global.config.update PATCH /global/config =config
global.dispose POST /global/dispose -
global.drain POST /global/drain -
global.event SSE /global/event
global.health GET /global/health -
global.metrics GET /metrics -
global.ready GET /global/ready -
global.syncEvent SSE /global/sync-event -
global.upgrade POST /global/upgrade
instance.dispose POST /instance/dispose
lsp.status GET /lsp
mcp.add POST /mcp
mcp.auth.authenticate POST /mcp/{name}/auth/authenticate
mcp.auth.callback POST /mcp/{name}/auth/callback
mcp.auth.remove DELETE /mcp/{name}/auth
mcp.auth.start POST /mcp/{name}/auth
mcp.connect POST /mcp/{name}/connect
mcp.disconnect POST /mcp/{name}/disconnect
mcp.remove DELETE /mcp ?name
mcp.status GET /mcp
part.delete DELETE /session/{sessionID}/message/{messageID}/part/{partID}
part.update PATCH /session/{sessionID}/message/{messageID}/part/{partID} =part
path.get GET /path
permission.add POST /permission
permission.list GET /permission
permission.reply POST /permission/{requestID}/reply
permission.respond POST /session/{sessionID}/permissions/{permissionID}
project.current GET /project/current
project.directories GET /project/{projectID}/directories
project.initGit POST /project/git/init
project.list GET /project
project.update PATCH /project/{projectID}
provider.auth GET /provider/auth
provider.list GET /provider
provider.oauth.authorize POST /provider/{providerID}/oauth/authorize
provider.oauth.callback POST /provider/{providerID}/oauth/callback
pty.connect GET /pty/{ptyID}/connect
pty.connectToken POST /pty/{ptyID}/connect-token
pty.create POST /pty
pty.get GET /pty/{ptyID}
pty.list GET /pty
pty.remove DELETE /pty/{ptyID}
pty.shells GET /pty/shells
pty.update PUT /pty/{ptyID}
question.list GET /question
question.reject POST /question/{requestID}/reject
question.reply POST /question/{requestID}/reply
session.abort POST /session/{sessionID}/abort
session.children GET /session/{sessionID}/children
session.command POST /session/{sessionID}/command
session.create POST /session
session.delete DELETE /session/{sessionID}
session.deleteMessage DELETE /session/{sessionID}/message/{messageID}
session.diff GET /session/{sessionID}/diff
session.fork POST /session/{sessionID}/fork
session.get GET /session/{sessionID}
session.init POST /session/{sessionID}/init
session.list GET /session
session.message GET /session/{sessionID}/message/{messageID}
session.messages GET /session/{sessionID}/message
session.prompt POST /session/{sessionID}/message
session.promptAsync POST /session/{sessionID}/prompt_async
session.revert POST /session/{sessionID}/revert
session.review GET /session/{sessionID}/review
session.share POST /session/{sessionID}/share
session.shell POST /session/{sessionID}/shell
session.status GET /session/status
session.summarize POST /session/{sessionID}/summarize
session.todo GET /session/{sessionID}/todo
session.unrevert POST /session/{sessionID}/unrevert
session.unshare DELETE /session/{sessionID}/share
session.update PATCH /session/{sessionID}
sync.history.list POST /sync/history =body
sync.replay POST /sync/replay query_directory>directory !body_directory>directory
sync.start POST /sync/start
sync.steal POST /sync/steal
tool.ids GET /experimental/tool/ids
tool.list GET /experimental/tool
trust.decide POST /trust
trust.dismiss POST /trust/dismiss
trust.get GET /trust
trust.list GET /trust/decisions -
trust.remove DELETE /trust/decisions ?path
tui.appendPrompt POST /tui/append-prompt
tui.clearPrompt POST /tui/clear-prompt
tui.control.next GET /tui/control/next
tui.control.response POST /tui/control/response =body
tui.executeCommand POST /tui/execute-command
tui.openHelp POST /tui/open-help
tui.openModels POST /tui/open-models
tui.openSessions POST /tui/open-sessions
tui.openThemes POST /tui/open-themes
tui.publish POST /tui/publish =body
tui.selectSession POST /tui/select-session
tui.showToast POST /tui/show-toast
tui.submitPrompt POST /tui/submit-prompt
users.access PUT /session/{sessionID}/access
users.audit GET /users/audit
users.me GET /users/me -
users.usage GET /users/usage -
v2.agent.list GET /api/agent
v2.command.list GET /api/command
v2.credential.remove DELETE /api/credential/{credentialID}
v2.credential.update PATCH /api/credential/{credentialID}
v2.event.subscribe SSE /api/event -
v2.fs.find GET /api/fs/find
v2.fs.list GET /api/fs/list
v2.fs.read GET /api/fs/read/{path}
v2.health.get GET /api/health -
v2.integration.attempt.cancel DELETE /api/integration/attempt/{attemptID}
v2.integration.attempt.complete POST /api/integration/attempt/{attemptID}/complete
v2.integration.attempt.status GET /api/integration/attempt/{attemptID}
v2.integration.connect.key POST /api/integration/{integrationID}/connect/key
v2.integration.connect.oauth POST /api/integration/{integrationID}/connect/oauth
v2.integration.get GET /api/integration/{integrationID}
v2.integration.list GET /api/integration
v2.location.get GET /api/location
v2.model.list GET /api/model
v2.permission.request.list GET /api/permission/request
v2.permission.saved.list GET /api/permission/saved
v2.permission.saved.remove DELETE /api/permission/saved/{id}
v2.projectCopy.create POST /experimental/project/{projectID}/copy !directory
v2.projectCopy.refresh POST /experimental/project/{projectID}/copy/refresh
v2.projectCopy.remove DELETE /experimental/project/{projectID}/copy !directory
v2.provider.get GET /api/provider/{providerID}
v2.provider.list GET /api/provider
v2.pty.connect GET /api/pty/{ptyID}/connect
v2.pty.connectToken POST /api/pty/{ptyID}/connect-token
v2.pty.create POST /api/pty
v2.pty.get GET /api/pty/{ptyID}
v2.pty.list GET /api/pty
v2.pty.remove DELETE /api/pty/{ptyID}
v2.pty.update PUT /api/pty/{ptyID}
v2.question.request.list GET /api/question/request
v2.reference.list GET /api/reference
v2.session.active GET /api/session/active -
v2.session.compact POST /api/session/{sessionID}/compact
v2.session.context GET /api/session/{sessionID}/context
v2.session.create POST /api/session !location
v2.session.events SSE /api/session/{sessionID}/event
v2.session.get GET /api/session/{sessionID}
v2.session.history GET /api/session/{sessionID}/history
v2.session.interrupt POST /api/session/{sessionID}/interrupt
v2.session.list GET /api/session
v2.session.message GET /api/session/{sessionID}/message/{messageID}
v2.session.messages GET /api/session/{sessionID}/message
v2.session.permission.create POST /api/session/{sessionID}/permission
v2.session.permission.get GET /api/session/{sessionID}/permission/{requestID}
v2.session.permission.list GET /api/session/{sessionID}/permission
v2.session.permission.reply POST /api/session/{sessionID}/permission/{requestID}/reply
v2.session.prompt POST /api/session/{sessionID}/prompt
v2.session.question.list GET /api/session/{sessionID}/question
v2.session.question.reject POST /api/session/{sessionID}/question/{requestID}/reject
v2.session.question.reply POST /api/session/{sessionID}/question/{requestID}/reply =questionV2Reply
v2.session.revert.clear POST /api/session/{sessionID}/revert/clear
v2.session.revert.commit POST /api/session/{sessionID}/revert/commit
v2.session.revert.stage POST /api/session/{sessionID}/revert/stage
v2.session.switchAgent POST /api/session/{sessionID}/agent
v2.session.switchModel POST /api/session/{sessionID}/model
v2.session.wait POST /api/session/{sessionID}/wait
v2.skill.list GET /api/skill
vcs.apply POST /vcs/apply
vcs.diff GET /vcs/diff
vcs.diff2.raw GET /vcs/diff/raw
vcs.get GET /vcs
vcs.status GET /vcs/status
worktree.create POST /experimental/worktree =worktreeCreateInput
worktree.list GET /experimental/worktree
worktree.remove DELETE /experimental/worktree =worktreeRemoveInput
worktree.reset POST /experimental/worktree/reset =worktreeResetInput
`;
