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
  signInHint: "The password is sent to this server once. The browser then keeps a sign-in that ends after 30 days, after 7 days without use, when the password changes, or when you sign out.",
  signInHintForeign: "The password stays in this tab and is sent only in a header of requests to this server.",
  signInWhy: "This server has a password. It was set with OPENCODE_SERVER_PASSWORD, or you have a token as one of its users.",
  signOutHere: "Sign out of this server", signedIn: "Signed in in this browser",
  passwordMissing: "Enter the password", showPassword: "Show the password", signingIn: "Signing in…",
  usernameHint: (name: string) => `Keep “${name}” unless the server has users or another name`,
  tooManyAttempts: (seconds: number) => `Too many wrong passwords. Try again ${seconds > 0 ? `in ${seconds} seconds` : "later"}.`,
  unconfirmedServer: (server: string) => `The address of this page names another server: ${server}`,
  unconfirmedHint: "The page will show the sessions of that server and send your prompts to it. Go on only if you know it.",
  useServer: "Use this server", useOwn: "Use the server of this page", server: "Server", serverAddress: "Address of a server",

  // Navigation
  home: "Home", sessions: "Sessions", newSession: "New session", settings: "Settings", status: "Status", shortcuts: "Keyboard shortcuts", keys: "Keys",
  commands: "Commands", palettePlaceholder: "Type a command or the name of a session", toggleSidebar: "Show or hide the sidebar", togglePanel: "Show or hide the panel",
  searchSessions: "Search sessions", openDirectory: "Open a directory", directory: "Directory", allSessions: "All sessions",
  pathOfDirectory: "Path of a directory on the server's machine", gallery: "Components of the app",

  // Home
  homeTitle: "What should we work on?", waitsForYou: "Waiting for you", running: "Running", pinned: "Pinned", today: "Today", yesterday: "Yesterday", thisWeek: "This week", earlier: "Earlier",
  noSessions: "No sessions yet", noSessionsHint: "A session is a conversation about a directory. Write a prompt to begin one.",
  moreSessions: "Older sessions", pin: "Pin", unpin: "Unpin", archive: "Archive", unarchive: "Restore from the archive", archived: "Archived",
  deleted: (title: string) => `“${title}” will be deleted`, sessionsIn: (count: number) => plural(count, "session", "sessions"),
  waitsForPermission: "needs permission", waitsForAnswer: "asks a question",
  untitled: "Untitled session", renameSession: "Rename the session", title: "Title", deleteSession: "Delete the session",

  // First run
  firstRunTitle: "No model is available yet", firstRunWhy: "No stored sign-in, no key in the environment and no local model server was found. Nothing is sent to any provider until you choose one.",
  firstRunProvider: "Sign in to a provider, or enter its key", allProviders: "All providers",
  firstRunLocal: "Use a model on your machine", firstRunLocalHint: "Ollama and LM Studio are found by themselves if they are running. Start one, then look again.",
  lookAgain: "Look again", looking: "Looking…", noLocalServer: "No local model server was found", otherAddress: "Another address",
  baseUrl: "Base URL of the server", modelId: "Name of the model", ownServerHint: "For any server with the interface of OpenAI. Both are written to your configuration, where you can change them.",
  firstRunFree: "Use free models without a sign-in", firstRunFreeHint: (name: string, count: number) => `${name} offers ${plural(count, "model", "models")} to everybody. It receives your prompts and the files that they mention.`,
  chooseFree: (name: string) => `Choose a model of ${name}`,
  firstRunTerminal: "In a terminal, codewright providers login signs in, and codewright demo shows the program without a key or network.",
  promptKept: "Your prompt was not sent. It stays in the field.",
  modelGuessed: (name: string) => `No model was chosen, so ${name} answers.`,
  unknownCommand: (name: string, near: string | undefined) => `Unknown command /${name}${near ? `. Did you mean /${near}?` : ". Type / for the list."}`,
  unknownName: (what: string, name: string, near: string | undefined) => `${what} “${name}” does not exist${near ? `. Did you mean “${near}”?` : ""}`,
  ambiguous: (name: string, all: string) => `“${name}” is part of several names: ${all}`, noArgument: (name: string) => `/${name} takes no text`,
  needsSession: (name: string) => `${name} needs an open session`, notNow: (name: string) => `/${name} does nothing here`,

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
  favourites: "Favourites", recentModels: "Recent", favourite: "favourite", noModel: "No model", allModels: "all models", onlyAgents: "only models for agents", noModelHint: "Connect a provider to use its models.", connectProvider: "Connect a provider",
  interruptHint: "Escape twice interrupts", context: "Context", contextAndCost: "Context and cost", cost: "Cost", tokensOf: (used: string, limit: string) => `${used} of ${limit} tokens`,
  tokensUsed: (used: string) => `${used} tokens`, todos: "To do", timeline: "Timeline", compact: "Summarize the conversation", exportSession: "Export as Markdown", exportJson: "Export as JSON", unshare: "Stop sharing",
 copyLast: "Copy the last answer", showTimes: "Show times", showThinking: "Show thinking", showOutputs: "Show full outputs",
  forkSession: "Fork the session", editQueued: "is sent before the next step",
  moveSession: "Move to another directory",
  reviewChanges: "Let the model review changes", findings: "Findings of the review", reviewing: "The changes are being reviewed…", reviewEnded: "The review is finished", noFindings: "The review has no findings", allDismissed: "Every finding is dismissed",
  applyChange: "Apply", applied: "Applied", changeApplied: "The change is applied", changeGone: "The change does not apply: the original lines are not in the file", giveToAgent: "Give it to the agent", dismiss: "Dismiss",
  bugReport: "Report a problem", bugWritten: (name: string) => `The report was downloaded as ${name}. Nothing was sent.`, downloadAgain: "Download again",

  panels: "Panels", rulesOfRefusal: "Rules", cannotSee: (model: string) => `${model} cannot see pictures. Choose another model, or remove the picture.`,
  shares: { system: "System prompt", tools: "Tools", prompts: "Your prompts", files: "Files", outputs: "Outputs of tools", answers: "Answers" },
  shareHints: { system: "instructions, AGENTS.md, agent", tools: "", prompts: "", files: "read and mentioned", outputs: "commands, searches, errors", answers: "text, thinking, calls" } as Record<string, string>,
  freeContext: "Free", noContext: "Nothing was sent yet. After the first answer this shows what fills the context.",
  fromCache: (share: string) => `${share} of the last request came from the provider's cache.`, estimated: "The total is what the provider counted; the parts are estimated from their length.",
  withSubagents: "With subagents", answers: (count: number) => plural(count, "answer", "answers"),
  costHint: "By the prices of the catalogue. A subscription costs nothing per token.", costPartial: "By the prices of the catalogue, without the oldest messages.",
  searchSession: "Search this session", matchOf: (at: string, count: string) => `${at} of ${count}`, previousMatch: "Previous match", nextMatch: "Next match", searchingOlder: "loading older messages…",

  // Permissions and questions
  focusRequest: "Go to what waits for you", permissionTitle: (permission: string) => `Allow ${permission}?`, allowOnce: "Allow once", allowAlways: "Allow always", reject: "Reject", rejectWhy: "Tell the model what to do instead (optional)",
  askedBecause: (why: string) => `Asked because ${why}.`, alwaysAllows: (what: string) => `Always allows: ${what}.`, alwaysScope: "What “Allow always” covers", alwaysNarrow: "No more", alwaysAlso: "Also",
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

  trustWords: { unneeded: "This repository requests nothing that needs trust", undecided: "Not decided yet", trusted: "Trusted", restricted: "Not trusted" } as Record<string, string>,
  sandboxMode: "Mode", mechanism: "Mechanism", network: "Network", unknownYet: "not known yet", notEnforced: "not enforced", sandboxModes: { off: "off: commands run without a sandbox" } as Record<string, string>,

  // Settings
  permissions: "Permissions", agents: "Agents", written: "Written to your configuration", notSet: "not set", modelOfPrompt: "the model of the prompt",
  writtenTo: "Changes are written to codewright.json in your configuration directory (codewright debug paths prints it). Removing an entry removes it from your other configuration files too.",
  modelSettingHint: "Answers prompts unless a session or an agent has another one", smallModel: "Small model", smallModelHint: "Writes titles and summaries", defaultAgent: "Default agent",
  permissionRules: "Rules", permissionRulesHint: "The last rule that fits decides. A pattern can contain * for any text.", noRules: "No rules of your own. The defaults ask before what can do harm.",
  permission: "Permission", pattern: "Pattern", action: "Action", addRule: "Add rule", savedPermissionsHint: "What you allowed with “Allow always”.",
  patternExamples: { bash: "npm test *", edit: "docs/**", read: "*.env", external_directory: "~/other/**", skill: "*", task: "*" } as Record<string, string>,
  name: "Name", command: "Command", address: "Address", variables: "Variables", headers: "Headers", description: "Description", mode: "Mode", agentPrompt: "System prompt",
  addServer: "Add a server", serverKind: "Kind of server", localServer: "A program on the server's machine", remoteServer: "An address",
  serverNameBad: "A name has letters, digits, - and _", serverExists: (name: string) => `There is already a server named ${name}`, serverAddressBad: "An address begins with https:// or http://", pairsBad: "Each line is a name, = or :, and a value",
  addAgent: "Add an agent", agentNameBad: "A name has letters, digits, - and _", agentExists: (name: string) => `There is already an agent named ${name}`,
  modes: { primary: "you choose it for prompts", subagent: "other agents call it", all: "both" },
  appearance: "Appearance", theme: "Theme", scheme: "Colours", system: "System", light: "Light", dark: "Dark", textSize: "Text size", providers: "Providers", notifyMe: "Notify me when a session waits or is done", notificationsBlocked: "The browser blocks notifications of this page",
  importTheme: "Import a theme file", chooseFile: "Choose a file…", apiKey: "API key", connected: "connected", openPage: "Open the page of the provider", code: "Code", waitingForBrowser: "Waiting for the browser…", providerConnected: (name: string) => `${name} is connected`, keyAccepted: (name: string) => `${name} is connected and accepts the key`, keyRefused: (name: string, why: string) => `${name} refuses the key: ${why}`, keyUnreached: (name: string, why: string) => `${name} is connected, but was not reached: ${why}`, checkingKey: "The key is being checked…", removeAgain: "Press again to remove", searchSettings: "Search settings",
  editor: "Editor", noEditor: "Ask", editorAddress: "Address that opens a file", editorAddressHint: "An address of your editor with {path} and {line}, such as myeditor://open?file={path}&line={line}", editorAddressBad: "The address needs a scheme, such as myeditor://, and {path}",
  enterSends: "Enter sends the prompt", diffsSplit: "Diffs side by side", prompts: "Prompt", display: "Display", notTheme: "The file is not a theme", models: "Models", archivedSessions: "Archive",
  newVersion: "A new version of the app is available", reload: "Reload", storageOff: "This browser stores nothing: drafts and settings end with the page",
  waitingTitle: (count: number) => `(${count})`, notifyPermission: "needs your permission", notifyQuestion: "has a question", notifyDone: "is done", notifyFailed: "failed",
};
