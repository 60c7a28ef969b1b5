/** The messages between the server and the host. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** The entry of one plugin in `initialize`. */
export interface PluginEntry {
  index: number;
  /** The entry of the configuration, for example `opencode-wakatime@1.3.9`. */
  spec: string;
  /** The file of the module, or the directory of a package. */
  entry: string;
  options?: JsonObject;
  scope?: "user" | "project";
  /** The directory that the plugin came from. */
  root?: string;
}

/** A file of the `tool` directory. */
export interface ToolFileEntry {
  index: number;
  file: string;
  name: string;
}

/** Time limits in milliseconds. */
export interface Deadlines {
  load: number;
  hook: number;
  tool: number;
  dispose: number;
}

export interface InitializeParams {
  protocol: number;
  directory: string;
  worktree: string;
  project: JsonObject;
  serverUrl: string;
  version: string;
  env?: { [name: string]: string };
  plugins: PluginEntry[];
  tools: ToolFileEntry[];
  deadlines: Deadlines;
}

export interface ToolDescription {
  name: string;
  description: string;
  parameters: JsonObject;
}

export interface PromptDescription {
  type: string;
  key: string;
  message: string;
  placeholder?: string;
  options?: Json;
  when?: Json;
  hasValidate?: boolean;
  hasCondition?: boolean;
}

export interface AuthDescription {
  provider: string;
  loader: boolean;
  methods: { type: string; label: string; authorizes?: boolean; prompts?: PromptDescription[] }[];
}

export interface FailureReport {
  message: string;
  file?: string;
  line?: number;
  column?: number;
}

/** What the host reports about one plugin or tool file. */
export interface Loaded {
  index: number;
  id?: string;
  name: string;
  hooks: string[];
  tools: ToolDescription[];
  workspaces?: { type: string; name: string; description: string }[];
  auth?: AuthDescription;
  provider?: { id: string };
  skipped?: string;
  error?: FailureReport;
}

export interface HookParams {
  name: string;
  input?: unknown;
  output?: unknown;
  skip?: number[];
}

export interface HookFailure {
  index: number;
  message: string;
  file?: string;
  line?: number;
  timeout?: boolean;
  /** True if the hook has thrown an error. */
  thrown?: boolean;
}

export interface ToolContextData {
  sessionID: string;
  messageID: string;
  callID?: string;
  agent: string;
  directory?: string;
  worktree?: string;
  extra?: JsonObject;
}

export interface ToolExecuteParams {
  index: number;
  tool: string;
  args: unknown;
  context: ToolContextData;
  call: string;
}

export type HeaderList = [string, string][];

export interface FetchParams {
  handle: number | string;
  id: string;
  url: string;
  method: string;
  headers: HeaderList;
  body?: string;
}

export interface ErrorData {
  plugin?: string;
  file?: string;
  line?: number;
  stack?: string;
  kind?: string;
  [key: string]: unknown;
}

export const ErrorCode = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** A bound of the protocol was reached. */
  limit: -32001,
  /** The code of a plugin failed. */
  plugin: -32002,
} as const;

/** An error with a code of the protocol. */
export class ProtocolError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: ErrorData,
  ) {
    super(message);
    this.name = "ProtocolError";
  }
}
