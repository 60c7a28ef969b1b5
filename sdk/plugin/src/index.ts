/**
 * Plugins of Codewright, which are plugins of OpenCode.
 *
 * A plugin is a function that receives a client of the server and returns hooks. Values of hooks have the types of
 * `@opencode-ai/sdk` 1.18.33, because a plugin runs in both programs.
 */
import type {
  Config as SdkConfig, Event, Message, Model, Part, Permission, Project, Provider, UserMessage, createOpencodeClient,
} from "@opencode-ai/sdk";
import type { Auth, Model as ModelV2, Provider as ProviderV2 } from "@opencode-ai/sdk/v2";
import type { BunShell } from "./shell.js";
import type { ToolDefinition } from "./tool.js";

export * from "./tool.js";
export type * from "./shell.js";

/** What a plugin receives when it starts. */
export type PluginInput = {
  client: ReturnType<typeof createOpencodeClient>;
  project: Project;
  /** The directory of the sessions. */
  directory: string;
  /** The root of the repository. */
  worktree: string;
  experimental_workspace: { register(type: string, adapter: WorkspaceAdapter): void };
  serverUrl: URL;
  $: BunShell;
};

export type PluginOptions = Record<string, unknown>;
export type Plugin = (input: PluginInput, options?: PluginOptions) => Promise<Hooks>;
export type PluginModule = { id?: string; server: Plugin; tui?: never };
/** The configuration that the hook `config` changes. */
export type Config = Omit<SdkConfig, "plugin"> & { plugin?: Array<string | [string, PluginOptions]> };

export type ProviderContext = {
  source: "env" | "config" | "custom" | "api";
  info: Provider;
  options: Record<string, any>;
};

type Choice = { providerID: string; modelID: string };
/** What hooks about a request to the model receive. */
type Chat = { sessionID: string; agent: string; model: Model; provider: ProviderContext; message: UserMessage };
type Call = { tool: string; sessionID: string; callID: string };

/** A hook receives an input and changes the output. */
export interface Hooks {
  /** Called when the plugin ends. */
  dispose?: () => Promise<void>;
  /** Called with every event of the directory. */
  event?: (input: { event: Event }) => Promise<void>;
  /** Changes the configuration before it takes effect. */
  config?: (input: Config) => Promise<void>;
  /** Tools with their names. */
  tool?: { [name: string]: ToolDefinition };
  /** A sign-in for a provider. */
  auth?: AuthHook;
  /** The models of a provider. */
  provider?: ProviderHook;
  /** A prompt, before it is stored. */
  "chat.message"?: (
    input: { sessionID: string; agent?: string; model?: Choice; messageID?: string; variant?: string },
    output: { message: UserMessage; parts: Part[] },
  ) => Promise<void>;
  /** The parameters of a request to the model. */
  "chat.params"?: (
    input: Chat,
    output: { temperature: number; topP: number; topK: number; maxOutputTokens: number | undefined; options: Record<string, any> },
  ) => Promise<void>;
  /** The headers of a request to the model. */
  "chat.headers"?: (input: Chat, output: { headers: Record<string, string> }) => Promise<void>;
  /** A permission request. Codewright lets a plugin be stricter; it may grant if the user says so (`plugin_host.grant`). */
  "permission.ask"?: (input: Permission, output: { status: "ask" | "deny" | "allow" }) => Promise<void>;
  /** A command (`/name`), before its prompt is sent. */
  "command.execute.before"?: (input: { command: string; sessionID: string; arguments: string }, output: { parts: Part[] }) => Promise<void>;
  /** A tool call, before it runs. An error refuses the call, and the model reads its message. */
  "tool.execute.before"?: (input: Call, output: { args: any }) => Promise<void>;
  /** A tool call that has run. */
  "tool.execute.after"?: (input: Call & { args: any }, output: { title: string; output: string; metadata: any }) => Promise<void>;
  /** The environment of a command. */
  "shell.env"?: (input: { cwd: string; sessionID?: string; callID?: string }, output: { env: Record<string, string> }) => Promise<void>;
  /** The description and the parameters of a tool, as the model gets them. */
  "tool.definition"?: (input: { toolID: string }, output: { description: string; parameters: any }) => Promise<void>;
  /** The messages of a request to the model. */
  "experimental.chat.messages.transform"?: (input: {}, output: { messages: { info: Message; parts: Part[] }[] }) => Promise<void>;
  /** The system prompt. */
  "experimental.chat.system.transform"?: (input: { sessionID?: string; model: Model }, output: { system: string[] }) => Promise<void>;
  /** The model for titles and summaries. */
  "experimental.provider.small_model"?: (input: { provider: ProviderV2 }, output: { model?: ModelV2 }) => Promise<void>;
  /** The prompt of a summary: more context, or a prompt instead of the usual one. */
  "experimental.session.compacting"?: (input: { sessionID: string }, output: { context: string[]; prompt?: string }) => Promise<void>;
  /** Whether a session continues by itself after a summary. */
  "experimental.compaction.autocontinue"?: (input: Chat & { overflow: boolean }, output: { enabled: boolean }) => Promise<void>;
  /** A text of the model that is complete. */
  "experimental.text.complete"?: (input: { sessionID: string; messageID: string; partID: string }, output: { text: string }) => Promise<void>;
}

export type ProviderHookContext = { auth?: Auth };
export type ProviderHook = {
  id: string;
  models?: (provider: ProviderV2, context: ProviderHookContext) => Promise<Record<string, ModelV2>>;
};

type Condition = { key: string; op: "eq" | "neq"; value: string };
type Asked = {
  key: string;
  message: string;
  /** @deprecated Use `when`. */
  condition?: (inputs: Record<string, string>) => boolean;
  when?: Condition;
};
type AuthPrompt =
  | ({ type: "text"; placeholder?: string; validate?: (value: string) => string | undefined } & Asked)
  | ({ type: "select"; options: Array<{ label: string; value: string; hint?: string }> } & Asked);
type Failed = { type: "failed" };
type SignedIn =
  | ({ type: "success"; provider?: string } & (
      | { refresh: string; access: string; expires: number; accountId?: string; enterpriseUrl?: string }
      | { key: string; metadata?: Record<string, string> }
    ))
  | Failed;

/** A page to open, and how the sign-in ends: by itself, or with a code that the user pastes. */
export type AuthOAuthResult = { url: string; instructions: string } & (
  | { method: "auto"; callback(): Promise<SignedIn> }
  | { method: "code"; callback(code: string): Promise<SignedIn> }
);
/** @deprecated Use AuthOAuthResult. */
export type AuthOuathResult = AuthOAuthResult;

export type AuthHook = {
  provider: string;
  /** Returns the options of the provider, such as `apiKey` or `fetch`. */
  loader?: (auth: () => Promise<Auth>, provider: Provider) => Promise<Record<string, any>>;
  methods: (
    | { type: "oauth"; label: string; prompts?: AuthPrompt[]; authorize(inputs?: Record<string, string>): Promise<AuthOAuthResult> }
    | {
        type: "api";
        label: string;
        prompts?: AuthPrompt[];
        authorize?(
          inputs?: Record<string, string>,
        ): Promise<{ type: "success"; key: string; provider?: string; metadata?: Record<string, string> } | Failed>;
      }
  )[];
};

export type WorkspaceInfo = {
  id: string;
  type: string;
  name: string;
  branch: string | null;
  directory: string | null;
  extra: unknown | null;
  projectID: string;
};
export type WorkspaceTarget = { type: "local"; directory: string } | { type: "remote"; url: string | URL; headers?: HeadersInit };
/** Codewright lists adapters, but cannot create workspaces. */
export type WorkspaceAdapter = {
  name: string;
  description: string;
  configure(config: WorkspaceInfo): WorkspaceInfo | Promise<WorkspaceInfo>;
  create(config: WorkspaceInfo, env: Record<string, string | undefined>, from?: WorkspaceInfo): Promise<void>;
  remove(config: WorkspaceInfo): Promise<void>;
  target(config: WorkspaceInfo): WorkspaceTarget | Promise<WorkspaceTarget>;
};
