// All English texts of the app.
import { grouped } from "./format";

const plural = (count: number, one: string, many: string) => `${grouped(count)} ${count === 1 ? one : many}`;

export const en = {
  app: "Codewright",
  close: "Close", copy: "Copy", copied: "Copied", cancel: "Cancel", save: "Save", remove: "Remove", delete: "Delete", rename: "Rename", undo: "Undo", redo: "Redo",
  done: "Done", open: "Open", back: "Back", more: "More actions", send: "Send", stop: "Stop", retry: "Try again", search: "Search", loading: "Loading…",
  nothingFound: "Nothing found", table: "Table", image: "Image", binary: "Binary file", edit: "Edit",
  skipToContent: "Skip to content",

  // Connection
  unreachable: "The server cannot be reached", otherServer: "The reply does not come from a Codewright server",
  passwordWrong: "The user name or the password is wrong", failedWith: (status: number) => `The server replied with status ${status}`,
  connecting: "Connecting…", connectionLost: "Connection lost. Connecting again…", connectedAgain: "Connected again. Everything is up to date.",
  signIn: "Sign in", signInTo: (server: string) => `Sign in to ${server}`, username: "User name", password: "Password",
  signInHint: "The password stays in this tab and is sent only in a header of requests to this server.",
  unconfirmedServer: (server: string) => `The address of this page names another server: ${server}`,
  unconfirmedHint: "The page will show the sessions of that server and send your prompts to it. Go on only if you know it.",
  useServer: "Use this server", useOwn: "Use the server of this page", server: "Server", serverAddress: "Address of a server",

  // Navigation
  home: "Home", sessions: "Sessions", newSession: "New session", settings: "Settings", status: "Status", shortcuts: "Keyboard shortcuts",
  commands: "Commands", palettePlaceholder: "Type a command or the name of a session", toggleSidebar: "Show or hide the sidebar", togglePanel: "Show or hide the panel",
  searchSessions: "Search sessions", openDirectory: "Open a directory", directory: "Directory", allSessions: "All sessions",
  pathOfDirectory: "Path of a directory on the server's machine", gallery: "Components",

  // Home
  homeTitle: "What should we work on?", waitsForYou: "Waiting for you", running: "Running", pinned: "Pinned", today: "Today", yesterday: "Yesterday", thisWeek: "This week", earlier: "Earlier",
  noSessions: "No sessions yet", noSessionsHint: "A session is a conversation about a directory. Write a prompt to begin one.",
  moreSessions: "Older sessions", pin: "Pin", unpin: "Unpin", archive: "Archive", unarchive: "Restore from the archive", archived: "Archived",
  deleted: (title: string) => `“${title}” will be deleted`, sessionsIn: (count: number) => plural(count, "session", "sessions"),
  waitsForPermission: "needs permission", waitsForAnswer: "asks a question",
  untitled: "Untitled session", renameSession: "Rename the session", title: "Title", deleteSession: "Delete the session",

  // Session
  transcript: "Transcript", olderMessages: "Loading older messages…", toEnd: "To the newest message", emptySession: "Nothing here yet",
  you: "You", thinking: "Thinking", thought: "Thought", thoughtFor: (time: string) => `Thought for ${time}`, working: "Working", queued: "queued",
  interrupted: "Interrupted", compacted: "The conversation was summarized here", compacting: "Summarizing the conversation", retrying: (attempt: number, message: string) => `Attempt ${attempt} failed: ${message}`,
  showOutput: "Show the output", hideOutput: "Hide the output", allLines: (count: number) => `All ${grouped(count)} lines`, lines: (count: number) => plural(count, "line", "lines"),
  truncated: (size: string) => `Only the last part of ${size} is displayed`,
  subagent: "Subagent", openSubagent: "Open", parentSession: "Back to the calling session", toolCalls: (count: number) => plural(count, "tool call", "tool calls"),
  sessionMissing: "This session does not exist", sessionMissingHint: "It may have been deleted in another window or by another program.",
  undone: (count: number) => `${plural(count, "message is", "messages are")} undone`, redoAll: "Redo all", undoPrompt: "Undo from here", undoHint: "The prompt, everything after it and the changes of files that they made are undone. Redo brings them back until you send another prompt.",
  forkHere: "Fork from here", copyMessage: "Copy the text", filesChange: "Files that change", noFilesChange: "No file changes",
  attachmentTooLarge: (name: string) => `${name} is larger than 20 MiB`, attachFile: "Attach files", dropHere: "Drop files to attach them",
  promptPlaceholder: "Ask anything, @ to mention files, / for commands, ! for a shell command", shellPlaceholder: "Shell command", promptLabel: "Prompt", shellMode: "Shell",
  agent: "Agent", model: "Model", variant: "Variant", defaultVariant: "default", chooseModel: "Choose a model", chooseAgent: "Choose an agent", chooseVariant: "Choose a variant",
  favourites: "Favourites", recentModels: "Recent", favourite: "favourite", noModel: "No model", noModelHint: "Connect a provider to use its models.", connectProvider: "Connect a provider",
  interruptHint: "Escape twice interrupts", context: "Context", cost: "Cost", tokensOf: (used: string, limit: string) => `${used} of ${limit} tokens`,
  tokensUsed: (used: string) => `${used} tokens`, todos: "To do", timeline: "Timeline", compact: "Summarize the conversation", exportSession: "Export as Markdown", exportJson: "Export as JSON", share: "Share", unshare: "Stop sharing",
  shareHint: "A shared session can be read by everyone who has its address.", copyLast: "Copy the last answer", showTimes: "Show times", showThinking: "Show thinking", showOutputs: "Show full outputs",
  forkSession: "Fork the session", editQueued: "is sent before the next step",
  moveSession: "Move to another directory",

  // Permissions and questions
  focusRequest: "Go to what waits for you", permissionTitle: (permission: string) => `Allow ${permission}?`, allowOnce: "Allow once", allowAlways: "Allow always", reject: "Reject", rejectWhy: "Tell the model what to do instead (optional)",
  alwaysHint: (patterns: string, more: number) => `“Allow always” also allows ${patterns}${more > 0 ? ` and ${grouped(more)} more` : ""} from now on in this project.`, requestsWaiting: (count: number) => `${count - 1} more waiting`, inSubagent: (title: string) => `in the subagent “${title}”`,
  answer: "Answer", ownAnswer: "Your own answer", next: "Next", review: "Review", questionOf: (at: number, count: number) => `Question ${at} of ${count}`, noAnswer: "no answer", skipQuestion: "Dismiss",

  // Trust
  trustTitle: "Trust this repository?", trustAbout: {
    unneeded: "This repository requests nothing that needs trust.",
    undecided: "The configuration of this repository waits for your decision. Until you trust it, it does none of this:",
    trusted: "This repository is trusted. Its configuration does this:",
    restricted: "This repository is not trusted. Its configuration does none of this:",
  }, trustYes: "Trust this repository", trustNo: "Do not trust it", trustLater: "Not now", trustChanged: "Changed since your decision", trustRequests: (count: number) => plural(count, "request", "requests"),
  trustLimit: (limit: string) => `It cannot be trusted: ${limit}`, untrusted: "untrusted", trustOverridden: "The decision is stored, but CODEWRIGHT_TRUST overrides it for this server", notStored: (why: string) => `Not stored: ${why}`, trust: "Workspace trust",

  // Changes and files
  changes: "Changes", files: "Files", terminal: "Terminal", tasks: "Tasks", workingTree: "Working tree", branch: "Branch", thisSession: "Session", lastTurn: "Last turn", noChanges: "No changes", diffOf: (name: string) => `Changes of ${name}`,
  unchangedLines: (count: number) => plural(count, "unchanged line", "unchanged lines"), showAllLines: (count: number) => `Show all ${grouped(count)} lines`, commentOnLine: (line: number) => `Comment on line ${line}`,
  comment: "Comment", commentPlaceholder: "What should change here?", addComment: "Add comment", unified: "Unified", split: "Side by side", layout: "Layout",
  openInEditor: "Open in the editor", openIn: (editor: string) => `Open in ${editor}`, chooseEditor: "Which editor do you use?", otherEditor: "Another editor…", openDirectoryInEditor: "Open the directory in the editor",
  reviewed: "Reviewed", filterFiles: "Find a file", findInFiles: "Find in files", findSymbols: "Find a symbol", tooLarge: "The file is too large to be displayed", mention: "Mention in the prompt", ignored: "ignored",
  newTerminal: "New terminal", closeTerminal: "Close the terminal", exited: (code: number) => `ended with code ${code}`, terminalLost: "The connection to the terminal is lost. Connecting again…", noTerminals: "No terminal is open",
  fileTree: "File tree", viewer: "File", results: (count: number) => plural(count, "result", "results"),

  // Status
  mcpServers: "MCP servers", languageServers: "Language servers", formatters: "Formatters", sandbox: "Sandbox", none: "None", connect: "Connect", authorize: "Sign in", openSignIn: "Open the page for the sign-in", signOut: "Sign out",
  pasteCode: "Paste the address that the browser ended at, or the code", version: "Version",
  statusOf: { connected: "connected", disabled: "off", failed: "failed", needs_auth: "needs sign-in", needs_client_registration: "needs registration", error: "failed" } as Record<string, string>,
  usageToday: "Usage today", yours: "You", team: (name: string) => `Team ${name}`, tokensOfDay: "tokens", sessionsAtWork: "sessions at work", ofLimit: (used: string, limit: string) => `${used} of ${limit}`,
  savedPermissions: "Granted permissions", revoke: "Revoke",

  // Settings
  appearance: "Appearance", theme: "Theme", scheme: "Colours", system: "System", light: "Light", dark: "Dark", textSize: "Text size", providers: "Providers", notifyMe: "Notify me when a session waits or is done", notificationsBlocked: "The browser blocks notifications of this page",
  importTheme: "Import a theme file", chooseFile: "Choose a file…", apiKey: "API key", connected: "connected", openPage: "Open the page of the provider", code: "Code", waitingForBrowser: "Waiting for the browser…", providerConnected: (name: string) => `${name} is connected`, searchSettings: "Search settings",
  editor: "Editor", noEditor: "Ask", editorAddress: "Address that opens a file", editorAddressHint: "An address of your editor with {path} and {line}, such as myeditor://open?file={path}&line={line}", editorAddressBad: "The address needs a scheme, such as myeditor://, and {path}",
  enterSends: "Enter sends the prompt", diffsSplit: "Diffs side by side", prompts: "Prompt", display: "Display", notTheme: "The file is not a theme", models: "Models", archivedSessions: "Archived sessions",
  newVersion: "A new version of the app is available", reload: "Reload", storageOff: "This browser stores nothing: drafts and settings end with the page",
  waitingTitle: (count: number) => `(${count})`, notifyPermission: "needs your permission", notifyQuestion: "has a question", notifyDone: "is done", notifyFailed: "failed",
};
