import { type Client, type Options as Options2, type TDataShape } from './client/index.js';
import type { AgentPartInput, AppAgentsErrors, AppAgentsResponses, AppLogErrors, AppLogResponses, AppReadLogErrors, AppReadLogResponses, AppSkillsErrors, AppSkillsResponses, Auth as Auth3, AuthRemoveErrors, AuthRemoveResponses, AuthSetErrors, AuthSetResponses, AuthSignInErrors, AuthSignInResponses, AuthSignOutErrors, AuthSignOutResponses, AuthVerifyErrors, AuthVerifyResponses, CommandListErrors, CommandListResponses, Config as Config3, ConfigGetErrors, ConfigGetResponses, ConfigProvidersErrors, ConfigProvidersResponses, ConfigUpdateErrors, ConfigUpdateResponses, DocGetResponses, EventSubscribeResponses, EventTuiCommandExecute, EventTuiPromptAppend, EventTuiSessionSelect, EventTuiToastShow, ExperimentalBugErrors, ExperimentalBugResponses, ExperimentalCapabilitiesGetErrors, ExperimentalCapabilitiesGetResponses, ExperimentalConsoleGetErrors, ExperimentalConsoleGetResponses, ExperimentalConsoleListOrgsErrors, ExperimentalConsoleListOrgsResponses, ExperimentalConsoleSwitchOrgResponses, ExperimentalControlPlaneMoveSessionErrors, ExperimentalControlPlaneMoveSessionResponses, ExperimentalProjectCopyGenerateNameErrors, ExperimentalProjectCopyGenerateNameResponses, ExperimentalResourceListErrors, ExperimentalResourceListResponses, ExperimentalReviewRequestErrors, ExperimentalReviewRequestResponses, ExperimentalSandboxGetErrors, ExperimentalSandboxGetResponses, ExperimentalSessionBackgroundErrors, ExperimentalSessionBackgroundResponses, ExperimentalSessionListErrors, ExperimentalSessionListResponses, ExperimentalWorkspaceAdapterListErrors, ExperimentalWorkspaceAdapterListResponses, ExperimentalWorkspaceCreateErrors, ExperimentalWorkspaceCreateResponses, ExperimentalWorkspaceListErrors, ExperimentalWorkspaceListResponses, ExperimentalWorkspaceRemoveErrors, ExperimentalWorkspaceRemoveResponses, ExperimentalWorkspaceStatusErrors, ExperimentalWorkspaceStatusResponses, ExperimentalWorkspaceSyncListErrors, ExperimentalWorkspaceSyncListResponses, ExperimentalWorkspaceWarpErrors, ExperimentalWorkspaceWarpResponses, FileListErrors, FileListResponses, FilePartInput, FilePartSource, FileReadErrors, FileReadResponses, FileStatusErrors, FileStatusResponses, FindFilesErrors, FindFilesResponses, FindSymbolsErrors, FindSymbolsResponses, FindTextErrors, FindTextResponses, FormatterStatusErrors, FormatterStatusResponses, GlobalConfigGetErrors, GlobalConfigGetResponses, GlobalConfigUpdateErrors, GlobalConfigUpdateResponses, GlobalDisposeErrors, GlobalDisposeResponses, GlobalDrainErrors, GlobalDrainResponses, GlobalEventErrors, GlobalEventResponses, GlobalHealthErrors, GlobalHealthResponses, GlobalMetricsErrors, GlobalMetricsResponses, GlobalReadyErrors, GlobalReadyResponses, GlobalSyncEventErrors, GlobalSyncEventResponses, GlobalUpgradeErrors, GlobalUpgradeResponses, InstanceDisposeErrors, InstanceDisposeResponses, LocationRef, LspStatusErrors, LspStatusResponses, McpAddErrors, McpAddResponses, McpAuthAuthenticateErrors, McpAuthAuthenticateResponses, McpAuthCallbackErrors, McpAuthCallbackResponses, McpAuthRemoveErrors, McpAuthRemoveResponses, McpAuthStartErrors, McpAuthStartResponses, McpConnectErrors, McpConnectResponses, McpDisconnectErrors, McpDisconnectResponses, McpLocalConfig, McpRemoteConfig, McpRemoveErrors, McpRemoveResponses, McpStatusErrors, McpStatusResponses, ModelRef, MoveSessionDestination, OutputFormat, Part as Part2, PartDeleteErrors, PartDeleteResponses, PartUpdateErrors, PartUpdateResponses, PathGetErrors, PathGetResponses, PermissionAction, PermissionAddErrors, PermissionAddResponses, PermissionListErrors, PermissionListResponses, PermissionReplyErrors, PermissionReplyResponses, PermissionRespondErrors, PermissionRespondResponses, PermissionRuleset, PermissionV2Reply, PermissionV2Source, ProjectCommands, ProjectCurrentErrors, ProjectCurrentResponses, ProjectDirectoriesErrors, ProjectDirectoriesResponses, ProjectIcon, ProjectInitGitErrors, ProjectInitGitResponses, ProjectListErrors, ProjectListResponses, ProjectUpdateErrors, ProjectUpdateResponses, PromptInput, ProviderAuthErrors, ProviderAuthResponses, ProviderListErrors, ProviderListResponses, ProviderOauthAuthorizeErrors, ProviderOauthAuthorizeResponses, ProviderOauthCallbackErrors, ProviderOauthCallbackResponses, PtyConnectErrors, PtyConnectResponses, PtyConnectTokenErrors, PtyConnectTokenResponses, PtyCreateErrors, PtyCreateResponses, PtyGetErrors, PtyGetResponses, PtyListErrors, PtyListResponses, PtyRemoveErrors, PtyRemoveResponses, PtyShellsErrors, PtyShellsResponses, PtyUpdateErrors, PtyUpdateResponses, QuestionAnswer, QuestionListErrors, QuestionListResponses, QuestionRejectErrors, QuestionRejectResponses, QuestionReplyErrors, QuestionReplyResponses, QuestionV2Reply, SessionAbortErrors, SessionAbortResponses, SessionChildrenErrors, SessionChildrenResponses, SessionCommandErrors, SessionCommandResponses, SessionCreateErrors, SessionCreateResponses, SessionDeleteErrors, SessionDeleteMessageErrors, SessionDeleteMessageResponses, SessionDeleteResponses, SessionDiffErrors, SessionDiffResponses, SessionForkErrors, SessionForkResponses, SessionGetErrors, SessionGetResponses, SessionInitErrors, SessionInitResponses, SessionListErrors, SessionListResponses, SessionMessageErrors, SessionMessageResponses, SessionMessagesErrors, SessionMessagesResponses, SessionPromptAsyncErrors, SessionPromptAsyncResponses, SessionPromptErrors, SessionPromptResponses, SessionRevertErrors, SessionRevertResponses, SessionReviewErrors, SessionReviewResponses, SessionShareErrors, SessionShareResponses, SessionShellErrors, SessionShellResponses, SessionStatusErrors, SessionStatusResponses, SessionSummarizeErrors, SessionSummarizeResponses, SessionTodoErrors, SessionTodoResponses, SessionUnrevertErrors, SessionUnrevertResponses, SessionUnshareErrors, SessionUnshareResponses, SessionUpdateErrors, SessionUpdateResponses, SubtaskPartInput, SyncHistoryListErrors, SyncHistoryListResponses, SyncReplayErrors, SyncReplayResponses, SyncStartErrors, SyncStartResponses, SyncStealErrors, SyncStealResponses, TextPartInput, ToolIdsErrors, ToolIdsResponses, ToolListErrors, ToolListResponses, TrustDecideErrors, TrustDecideResponses, TrustDismissErrors, TrustDismissResponses, TrustGetErrors, TrustGetResponses, TrustListErrors, TrustListResponses, TrustRemoveErrors, TrustRemoveResponses, TuiAppendPromptErrors, TuiAppendPromptResponses, TuiClearPromptErrors, TuiClearPromptResponses, TuiControlNextErrors, TuiControlNextResponses, TuiControlResponseErrors, TuiControlResponseResponses, TuiExecuteCommandErrors, TuiExecuteCommandResponses, TuiOpenHelpErrors, TuiOpenHelpResponses, TuiOpenModelsErrors, TuiOpenModelsResponses, TuiOpenSessionsErrors, TuiOpenSessionsResponses, TuiOpenThemesErrors, TuiOpenThemesResponses, TuiPublishErrors, TuiPublishResponses, TuiSelectSessionErrors, TuiSelectSessionResponses, TuiShowToastErrors, TuiShowToastResponses, TuiSubmitPromptErrors, TuiSubmitPromptResponses, UsersAccessErrors, UsersAccessResponses, UsersAuditErrors, UsersAuditResponses, UsersMeErrors, UsersMeResponses, UsersUsageErrors, UsersUsageResponses, V2AgentListErrors, V2AgentListResponses, V2CommandListErrors, V2CommandListResponses, V2CredentialRemoveErrors, V2CredentialRemoveResponses, V2CredentialUpdateErrors, V2CredentialUpdateResponses, V2EventSubscribeErrors, V2EventSubscribeResponses, V2FsFindErrors, V2FsFindResponses, V2FsListErrors, V2FsListResponses, V2FsReadErrors, V2FsReadResponses, V2HealthGetErrors, V2HealthGetResponses, V2IntegrationAttemptCancelErrors, V2IntegrationAttemptCancelResponses, V2IntegrationAttemptCompleteErrors, V2IntegrationAttemptCompleteResponses, V2IntegrationAttemptStatusErrors, V2IntegrationAttemptStatusResponses, V2IntegrationConnectKeyErrors, V2IntegrationConnectKeyResponses, V2IntegrationConnectOauthErrors, V2IntegrationConnectOauthResponses, V2IntegrationGetErrors, V2IntegrationGetResponses, V2IntegrationListErrors, V2IntegrationListResponses, V2LocationGetErrors, V2LocationGetResponses, V2ModelListErrors, V2ModelListResponses, V2PermissionRequestListErrors, V2PermissionRequestListResponses, V2PermissionSavedListErrors, V2PermissionSavedListResponses, V2PermissionSavedRemoveErrors, V2PermissionSavedRemoveResponses, V2ProjectCopyCreateErrors, V2ProjectCopyCreateResponses, V2ProjectCopyRefreshErrors, V2ProjectCopyRefreshResponses, V2ProjectCopyRemoveErrors, V2ProjectCopyRemoveResponses, V2ProviderGetErrors, V2ProviderGetResponses, V2ProviderListErrors, V2ProviderListResponses, V2PtyConnectErrors, V2PtyConnectResponses, V2PtyConnectTokenErrors, V2PtyConnectTokenResponses, V2PtyCreateErrors, V2PtyCreateResponses, V2PtyGetErrors, V2PtyGetResponses, V2PtyListErrors, V2PtyListResponses, V2PtyRemoveErrors, V2PtyRemoveResponses, V2PtyUpdateErrors, V2PtyUpdateResponses, V2QuestionRequestListErrors, V2QuestionRequestListResponses, V2ReferenceListErrors, V2ReferenceListResponses, V2SessionActiveErrors, V2SessionActiveResponses, V2SessionCompactErrors, V2SessionCompactResponses, V2SessionContextErrors, V2SessionContextResponses, V2SessionCreateErrors, V2SessionCreateResponses, V2SessionEventsErrors, V2SessionEventsResponses, V2SessionGetErrors, V2SessionGetResponses, V2SessionHistoryErrors, V2SessionHistoryResponses, V2SessionInterruptErrors, V2SessionInterruptResponses, V2SessionListErrors, V2SessionListResponses, V2SessionMessageErrors, V2SessionMessageResponses, V2SessionMessagesErrors, V2SessionMessagesResponses, V2SessionPermissionCreateErrors, V2SessionPermissionCreateResponses, V2SessionPermissionGetErrors, V2SessionPermissionGetResponses, V2SessionPermissionListErrors, V2SessionPermissionListResponses, V2SessionPermissionReplyErrors, V2SessionPermissionReplyResponses, V2SessionPromptErrors, V2SessionPromptResponses, V2SessionQuestionListErrors, V2SessionQuestionListResponses, V2SessionQuestionRejectErrors, V2SessionQuestionRejectResponses, V2SessionQuestionReplyErrors, V2SessionQuestionReplyResponses, V2SessionRevertClearErrors, V2SessionRevertClearResponses, V2SessionRevertCommitErrors, V2SessionRevertCommitResponses, V2SessionRevertStageErrors, V2SessionRevertStageResponses, V2SessionSwitchAgentErrors, V2SessionSwitchAgentResponses, V2SessionSwitchModelErrors, V2SessionSwitchModelResponses, V2SessionWaitErrors, V2SessionWaitResponses, V2SkillListErrors, V2SkillListResponses, VcsApplyErrors, VcsApplyResponses, VcsDiffErrors, VcsDiffRawErrors, VcsDiffRawResponses, VcsDiffResponses, VcsGetErrors, VcsGetResponses, VcsStatusErrors, VcsStatusResponses, WorktreeCreateErrors, WorktreeCreateInput, WorktreeCreateResponses, WorktreeListErrors, WorktreeListResponses, WorktreeRemoveErrors, WorktreeRemoveInput, WorktreeRemoveResponses, WorktreeResetErrors, WorktreeResetInput, WorktreeResetResponses } from './types.gen.js';
export type Options<TData extends TDataShape = TDataShape, ThrowOnError extends boolean = boolean> = Options2<TData, ThrowOnError> & {
    /**
     * You can provide a client instance returned by `createClient()` instead of
     * individual options. This might be also useful if you want to implement a
     * custom client.
     */
    client?: Client;
    /**
     * You can pass arbitrary values through the `meta` object. This can be
     * used to access values that aren't defined as part of the SDK function.
     */
    meta?: Record<string, unknown>;
};
declare class HeyApiClient {
    protected client: Client;
    constructor(args?: {
        client?: Client;
    });
}
declare class HeyApiRegistry<T> {
    private readonly defaultKey;
    private readonly instances;
    get(key?: string): T;
    set(value: T, key?: string): void;
}
export declare class Doc extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<DocGetResponses, unknown, ThrowOnError, "fields">;
}
export declare class Config extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<GlobalConfigGetResponses, GlobalConfigGetErrors, ThrowOnError, "fields">;
    update<ThrowOnError extends boolean = false>(parameters?: {
        config?: Config3;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<GlobalConfigUpdateResponses, GlobalConfigUpdateErrors, ThrowOnError, "fields">;
}
export declare class Global extends HeyApiClient {
    health<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<GlobalHealthResponses, GlobalHealthErrors, ThrowOnError, "fields">;
    ready<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<GlobalReadyResponses, GlobalReadyErrors, ThrowOnError, "fields">;
    metrics<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<GlobalMetricsResponses, GlobalMetricsErrors, ThrowOnError, "fields">;
    event<ThrowOnError extends boolean = false>(parameters?: {
        names?: 'current' | 'legacy';
    }, options?: Options<never, ThrowOnError>): Promise<import("./core/serverSentEvents.gen.js").ServerSentEventsResult<GlobalEventResponses, GlobalEventErrors>>;
    syncEvent<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): Promise<import("./core/serverSentEvents.gen.js").ServerSentEventsResult<GlobalSyncEventResponses, GlobalSyncEventErrors>>;
    dispose<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<GlobalDisposeResponses, GlobalDisposeErrors, ThrowOnError, "fields">;
    drain<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<GlobalDrainResponses, GlobalDrainErrors, ThrowOnError, "fields">;
    upgrade<ThrowOnError extends boolean = false>(parameters?: {
        target?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<GlobalUpgradeResponses, GlobalUpgradeErrors, ThrowOnError, "fields">;
    private _config?;
    get config(): Config;
}
export declare class Auth extends HeyApiClient {
    signIn<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<AuthSignInResponses, AuthSignInErrors, ThrowOnError, "fields">;
    signOut<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<AuthSignOutResponses, AuthSignOutErrors, ThrowOnError, "fields">;
    remove<ThrowOnError extends boolean = false>(parameters: {
        providerID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<AuthRemoveResponses, AuthRemoveErrors, ThrowOnError, "fields">;
    set<ThrowOnError extends boolean = false>(parameters: {
        providerID: string;
        auth?: Auth3;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<AuthSetResponses, AuthSetErrors, ThrowOnError, "fields">;
    verify<ThrowOnError extends boolean = false>(parameters: {
        providerID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<AuthVerifyResponses, AuthVerifyErrors, ThrowOnError, "fields">;
}
export declare class Users extends HeyApiClient {
    me<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<UsersMeResponses, UsersMeErrors, ThrowOnError, "fields">;
    usage<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<UsersUsageResponses, UsersUsageErrors, ThrowOnError, "fields">;
    audit<ThrowOnError extends boolean = false>(parameters?: {
        before?: number;
        limit?: number;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<UsersAuditResponses, UsersAuditErrors, ThrowOnError, "fields">;
    access<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        shared?: {
            [key: string]: 'read' | 'full';
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<UsersAccessResponses, UsersAccessErrors, ThrowOnError, "fields">;
}
export declare class Event extends HeyApiClient {
    subscribe<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        sessionID?: string;
        names?: 'current' | 'legacy';
    }, options?: Options<never, ThrowOnError>): Promise<import("./core/serverSentEvents.gen.js").ServerSentEventsResult<EventSubscribeResponses, unknown>>;
}
export declare class Path extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PathGetResponses, PathGetErrors, ThrowOnError, "fields">;
}
export declare class Instance extends HeyApiClient {
    dispose<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<InstanceDisposeResponses, InstanceDisposeErrors, ThrowOnError, "fields">;
}
export declare class App extends HeyApiClient {
    readLog<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        limit?: number;
        level?: 'debug' | 'info' | 'error' | 'warn';
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<AppReadLogResponses, AppReadLogErrors, ThrowOnError, "fields">;
    log<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        service?: string;
        level?: 'debug' | 'info' | 'error' | 'warn';
        message?: string;
        extra?: {
            [key: string]: unknown;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<AppLogResponses, AppLogErrors, ThrowOnError, "fields">;
    agents<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<AppAgentsResponses, AppAgentsErrors, ThrowOnError, "fields">;
    skills<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<AppSkillsResponses, AppSkillsErrors, ThrowOnError, "fields">;
}
export declare class Project extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ProjectListResponses, ProjectListErrors, ThrowOnError, "fields">;
    current<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ProjectCurrentResponses, ProjectCurrentErrors, ThrowOnError, "fields">;
    initGit<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ProjectInitGitResponses, ProjectInitGitErrors, ThrowOnError, "fields">;
    update<ThrowOnError extends boolean = false>(parameters: {
        projectID: string;
        directory?: string;
        workspace?: string;
        name?: string;
        icon?: ProjectIcon;
        commands?: ProjectCommands;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ProjectUpdateResponses, ProjectUpdateErrors, ThrowOnError, "fields">;
    directories<ThrowOnError extends boolean = false>(parameters: {
        projectID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ProjectDirectoriesResponses, ProjectDirectoriesErrors, ThrowOnError, "fields">;
}
export declare class Config2 extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ConfigGetResponses, ConfigGetErrors, ThrowOnError, "fields">;
    update<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        config?: Config3;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ConfigUpdateResponses, ConfigUpdateErrors, ThrowOnError, "fields">;
    providers<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ConfigProvidersResponses, ConfigProvidersErrors, ThrowOnError, "fields">;
}
export declare class Trust extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TrustGetResponses, TrustGetErrors, ThrowOnError, "fields">;
    decide<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        decision?: 'trust' | 'restrict';
        fingerprint?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TrustDecideResponses, TrustDecideErrors, ThrowOnError, "fields">;
    dismiss<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        fingerprint?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TrustDismissResponses, TrustDismissErrors, ThrowOnError, "fields">;
    remove<ThrowOnError extends boolean = false>(parameters: {
        path: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TrustRemoveResponses, TrustRemoveErrors, ThrowOnError, "fields">;
    list<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TrustListResponses, TrustListErrors, ThrowOnError, "fields">;
}
export declare class Oauth extends HeyApiClient {
    authorize<ThrowOnError extends boolean = false>(parameters: {
        providerID: string;
        directory?: string;
        workspace?: string;
        method?: number;
        inputs?: {
            [key: string]: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ProviderOauthAuthorizeResponses, ProviderOauthAuthorizeErrors, ThrowOnError, "fields">;
    callback<ThrowOnError extends boolean = false>(parameters: {
        providerID: string;
        directory?: string;
        workspace?: string;
        method?: number;
        code?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ProviderOauthCallbackResponses, ProviderOauthCallbackErrors, ThrowOnError, "fields">;
}
export declare class Provider extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ProviderListResponses, ProviderListErrors, ThrowOnError, "fields">;
    auth<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ProviderAuthResponses, ProviderAuthErrors, ThrowOnError, "fields">;
    private _oauth?;
    get oauth(): Oauth;
}
export declare class Command extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<CommandListResponses, CommandListErrors, ThrowOnError, "fields">;
}
export declare class Lsp extends HeyApiClient {
    status<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<LspStatusResponses, LspStatusErrors, ThrowOnError, "fields">;
}
export declare class Formatter extends HeyApiClient {
    status<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<FormatterStatusResponses, FormatterStatusErrors, ThrowOnError, "fields">;
}
export declare class Auth2 extends HeyApiClient {
    remove<ThrowOnError extends boolean = false>(parameters: {
        name: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<McpAuthRemoveResponses, McpAuthRemoveErrors, ThrowOnError, "fields">;
    start<ThrowOnError extends boolean = false>(parameters: {
        name: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<McpAuthStartResponses, McpAuthStartErrors, ThrowOnError, "fields">;
    callback<ThrowOnError extends boolean = false>(parameters: {
        name: string;
        directory?: string;
        workspace?: string;
        code?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<McpAuthCallbackResponses, McpAuthCallbackErrors, ThrowOnError, "fields">;
    authenticate<ThrowOnError extends boolean = false>(parameters: {
        name: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<McpAuthAuthenticateResponses, McpAuthAuthenticateErrors, ThrowOnError, "fields">;
}
export declare class Mcp extends HeyApiClient {
    remove<ThrowOnError extends boolean = false>(parameters: {
        directory?: string;
        workspace?: string;
        name: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<McpRemoveResponses, McpRemoveErrors, ThrowOnError, "fields">;
    status<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<McpStatusResponses, McpStatusErrors, ThrowOnError, "fields">;
    add<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        name?: string;
        config?: McpLocalConfig | McpRemoteConfig;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<McpAddResponses, McpAddErrors, ThrowOnError, "fields">;
    connect<ThrowOnError extends boolean = false>(parameters: {
        name: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<McpConnectResponses, McpConnectErrors, ThrowOnError, "fields">;
    disconnect<ThrowOnError extends boolean = false>(parameters: {
        name: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<McpDisconnectResponses, McpDisconnectErrors, ThrowOnError, "fields">;
    private _auth?;
    get auth(): Auth2;
}
export declare class Session extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        scope?: 'project';
        path?: string;
        roots?: boolean | 'true' | 'false';
        start?: number;
        search?: string;
        limit?: number;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionListResponses, SessionListErrors, ThrowOnError, "fields">;
    create<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        parentID?: string;
        title?: string;
        agent?: string;
        model?: {
            id: string;
            providerID: string;
            variant?: string;
        };
        metadata?: {
            [key: string]: unknown;
        };
        permission?: PermissionRuleset;
        workspaceID?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionCreateResponses, SessionCreateErrors, ThrowOnError, "fields">;
    status<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionStatusResponses, SessionStatusErrors, ThrowOnError, "fields">;
    delete<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionDeleteResponses, SessionDeleteErrors, ThrowOnError, "fields">;
    get<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionGetResponses, SessionGetErrors, ThrowOnError, "fields">;
    update<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        title?: string;
        metadata?: {
            [key: string]: unknown;
        };
        permission?: PermissionRuleset;
        time?: {
            archived?: number;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionUpdateResponses, SessionUpdateErrors, ThrowOnError, "fields">;
    messages<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        limit?: number;
        before?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionMessagesResponses, SessionMessagesErrors, ThrowOnError, "fields">;
    prompt<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        messageID?: string;
        model?: {
            providerID: string;
            modelID: string;
        };
        chosen?: boolean;
        agent?: string;
        noReply?: boolean;
        tools?: {
            [key: string]: boolean;
        };
        format?: OutputFormat;
        system?: string;
        variant?: string;
        parts?: Array<TextPartInput | FilePartInput | AgentPartInput | SubtaskPartInput>;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionPromptResponses, SessionPromptErrors, ThrowOnError, "fields">;
    deleteMessage<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        messageID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionDeleteMessageResponses, SessionDeleteMessageErrors, ThrowOnError, "fields">;
    message<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        messageID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionMessageResponses, SessionMessageErrors, ThrowOnError, "fields">;
    promptAsync<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        messageID?: string;
        model?: {
            providerID: string;
            modelID: string;
        };
        chosen?: boolean;
        agent?: string;
        noReply?: boolean;
        tools?: {
            [key: string]: boolean;
        };
        format?: OutputFormat;
        system?: string;
        variant?: string;
        parts?: Array<TextPartInput | FilePartInput | AgentPartInput | SubtaskPartInput>;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionPromptAsyncResponses, SessionPromptAsyncErrors, ThrowOnError, "fields">;
    abort<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionAbortResponses, SessionAbortErrors, ThrowOnError, "fields">;
    fork<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        messageID?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionForkResponses, SessionForkErrors, ThrowOnError, "fields">;
    children<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionChildrenResponses, SessionChildrenErrors, ThrowOnError, "fields">;
    todo<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionTodoResponses, SessionTodoErrors, ThrowOnError, "fields">;
    review<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionReviewResponses, SessionReviewErrors, ThrowOnError, "fields">;
    diff<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        messageID?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionDiffResponses, SessionDiffErrors, ThrowOnError, "fields">;
    unshare<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionUnshareResponses, SessionUnshareErrors, ThrowOnError, "fields">;
    share<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionShareResponses, SessionShareErrors, ThrowOnError, "fields">;
    revert<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        messageID?: string;
        partID?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionRevertResponses, SessionRevertErrors, ThrowOnError, "fields">;
    unrevert<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionUnrevertResponses, SessionUnrevertErrors, ThrowOnError, "fields">;
    command<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        messageID?: string;
        agent?: string;
        model?: string;
        chosen?: boolean;
        arguments?: string;
        command?: string;
        variant?: string;
        parts?: Array<{
            id?: string;
            type: 'file';
            mime: string;
            filename?: string;
            url: string;
            source?: FilePartSource;
        }>;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionCommandResponses, SessionCommandErrors, ThrowOnError, "fields">;
    summarize<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        providerID?: string;
        modelID?: string;
        auto?: boolean;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionSummarizeResponses, SessionSummarizeErrors, ThrowOnError, "fields">;
    shell<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        messageID?: string;
        agent?: string;
        model?: {
            providerID: string;
            modelID: string;
        };
        command?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionShellResponses, SessionShellErrors, ThrowOnError, "fields">;
    init<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
        modelID?: string;
        providerID?: string;
        messageID?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SessionInitResponses, SessionInitErrors, ThrowOnError, "fields">;
}
export declare class Part extends HeyApiClient {
    delete<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        messageID: string;
        partID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PartDeleteResponses, PartDeleteErrors, ThrowOnError, "fields">;
    update<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        messageID: string;
        partID: string;
        directory?: string;
        workspace?: string;
        part?: Part2;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PartUpdateResponses, PartUpdateErrors, ThrowOnError, "fields">;
}
export declare class History extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        body?: {
            [key: string]: number;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SyncHistoryListResponses, SyncHistoryListErrors, ThrowOnError, "fields">;
}
export declare class Sync extends HeyApiClient {
    start<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SyncStartResponses, SyncStartErrors, ThrowOnError, "fields">;
    steal<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        sessionID?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SyncStealResponses, SyncStealErrors, ThrowOnError, "fields">;
    replay<ThrowOnError extends boolean = false>(parameters?: {
        query_directory?: string;
        workspace?: string;
        body_directory?: string;
        events?: Array<{
            id: string;
            aggregateID: string;
            seq: number;
            type: string;
            data: {
                [key: string]: unknown;
            };
        }>;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<SyncReplayResponses, SyncReplayErrors, ThrowOnError, "fields">;
    private _history?;
    get history(): History;
}
export declare class Pty extends HeyApiClient {
    shells<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PtyShellsResponses, PtyShellsErrors, ThrowOnError, "fields">;
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PtyListResponses, PtyListErrors, ThrowOnError, "fields">;
    create<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        command?: string;
        args?: Array<string>;
        cwd?: string;
        title?: string;
        env?: {
            [key: string]: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PtyCreateResponses, PtyCreateErrors, ThrowOnError, "fields">;
    remove<ThrowOnError extends boolean = false>(parameters: {
        ptyID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PtyRemoveResponses, PtyRemoveErrors, ThrowOnError, "fields">;
    get<ThrowOnError extends boolean = false>(parameters: {
        ptyID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PtyGetResponses, PtyGetErrors, ThrowOnError, "fields">;
    update<ThrowOnError extends boolean = false>(parameters: {
        ptyID: string;
        directory?: string;
        workspace?: string;
        title?: string;
        size?: {
            rows: number;
            cols: number;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PtyUpdateResponses, PtyUpdateErrors, ThrowOnError, "fields">;
    connectToken<ThrowOnError extends boolean = false>(parameters: {
        ptyID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PtyConnectTokenResponses, PtyConnectTokenErrors, ThrowOnError, "fields">;
    connect<ThrowOnError extends boolean = false>(parameters: {
        ptyID: string;
        directory?: string;
        workspace?: string;
        cursor?: string;
        ticket?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PtyConnectResponses, PtyConnectErrors, ThrowOnError, "fields">;
}
export declare class Permission extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PermissionListResponses, PermissionListErrors, ThrowOnError, "fields">;
    add<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        sessionID?: string;
        permission?: string;
        pattern?: string;
        action?: PermissionAction;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PermissionAddResponses, PermissionAddErrors, ThrowOnError, "fields">;
    reply<ThrowOnError extends boolean = false>(parameters: {
        requestID: string;
        directory?: string;
        workspace?: string;
        reply?: 'once' | 'always' | 'reject';
        message?: string;
        wider?: Array<string>;
        automatic?: boolean;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PermissionReplyResponses, PermissionReplyErrors, ThrowOnError, "fields">;
    respond<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        permissionID: string;
        directory?: string;
        workspace?: string;
        response?: 'once' | 'always' | 'reject';
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<PermissionRespondResponses, PermissionRespondErrors, ThrowOnError, "fields">;
}
export declare class Question extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<QuestionListResponses, QuestionListErrors, ThrowOnError, "fields">;
    reply<ThrowOnError extends boolean = false>(parameters: {
        requestID: string;
        directory?: string;
        workspace?: string;
        answers?: Array<QuestionAnswer>;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<QuestionReplyResponses, QuestionReplyErrors, ThrowOnError, "fields">;
    reject<ThrowOnError extends boolean = false>(parameters: {
        requestID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<QuestionRejectResponses, QuestionRejectErrors, ThrowOnError, "fields">;
}
export declare class File extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters: {
        directory?: string;
        workspace?: string;
        path: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<FileListResponses, FileListErrors, ThrowOnError, "fields">;
    read<ThrowOnError extends boolean = false>(parameters: {
        directory?: string;
        workspace?: string;
        path: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<FileReadResponses, FileReadErrors, ThrowOnError, "fields">;
    status<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<FileStatusResponses, FileStatusErrors, ThrowOnError, "fields">;
}
export declare class Find extends HeyApiClient {
    text<ThrowOnError extends boolean = false>(parameters: {
        directory?: string;
        workspace?: string;
        pattern: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<FindTextResponses, FindTextErrors, ThrowOnError, "fields">;
    files<ThrowOnError extends boolean = false>(parameters: {
        directory?: string;
        workspace?: string;
        query: string;
        dirs?: 'true' | 'false';
        type?: 'file' | 'directory';
        limit?: number;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<FindFilesResponses, FindFilesErrors, ThrowOnError, "fields">;
    symbols<ThrowOnError extends boolean = false>(parameters: {
        directory?: string;
        workspace?: string;
        query: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<FindSymbolsResponses, FindSymbolsErrors, ThrowOnError, "fields">;
}
export declare class Diff extends HeyApiClient {
    raw<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<VcsDiffRawResponses, VcsDiffRawErrors, ThrowOnError, "fields">;
}
export declare class Vcs extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<VcsGetResponses, VcsGetErrors, ThrowOnError, "fields">;
    status<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<VcsStatusResponses, VcsStatusErrors, ThrowOnError, "fields">;
    diff<ThrowOnError extends boolean = false>(parameters: {
        directory?: string;
        workspace?: string;
        mode: 'git' | 'branch';
        context?: number;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<VcsDiffResponses, VcsDiffErrors, ThrowOnError, "fields">;
    apply<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        patch?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<VcsApplyResponses, VcsApplyErrors, ThrowOnError, "fields">;
    private _diff?;
    get diff2(): Diff;
}
export declare class Capabilities extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalCapabilitiesGetResponses, ExperimentalCapabilitiesGetErrors, ThrowOnError, "fields">;
}
export declare class Review extends HeyApiClient {
    request<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        range?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalReviewRequestResponses, ExperimentalReviewRequestErrors, ThrowOnError, "fields">;
}
export declare class Sandbox extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        probe?: 'true' | 'false';
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalSandboxGetResponses, ExperimentalSandboxGetErrors, ThrowOnError, "fields">;
}
export declare class Console extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalConsoleGetResponses, ExperimentalConsoleGetErrors, ThrowOnError, "fields">;
    listOrgs<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalConsoleListOrgsResponses, ExperimentalConsoleListOrgsErrors, ThrowOnError, "fields">;
    switchOrg<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        accountID?: string;
        orgID?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalConsoleSwitchOrgResponses, unknown, ThrowOnError, "fields">;
}
export declare class Session2 extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        roots?: boolean | 'true' | 'false';
        start?: number;
        cursor?: number;
        search?: string;
        limit?: number;
        archived?: boolean | 'true' | 'false';
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalSessionListResponses, ExperimentalSessionListErrors, ThrowOnError, "fields">;
    background<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalSessionBackgroundResponses, ExperimentalSessionBackgroundErrors, ThrowOnError, "fields">;
}
export declare class Resource extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalResourceListResponses, ExperimentalResourceListErrors, ThrowOnError, "fields">;
}
export declare class Adapter extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalWorkspaceAdapterListResponses, ExperimentalWorkspaceAdapterListErrors, ThrowOnError, "fields">;
}
export declare class Workspace extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalWorkspaceListResponses, ExperimentalWorkspaceListErrors, ThrowOnError, "fields">;
    create<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        id?: string;
        type?: string;
        branch?: string | null;
        extra?: unknown | null;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalWorkspaceCreateResponses, ExperimentalWorkspaceCreateErrors, ThrowOnError, "fields">;
    syncList<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalWorkspaceSyncListResponses, ExperimentalWorkspaceSyncListErrors, ThrowOnError, "fields">;
    status<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalWorkspaceStatusResponses, ExperimentalWorkspaceStatusErrors, ThrowOnError, "fields">;
    remove<ThrowOnError extends boolean = false>(parameters: {
        id: string;
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalWorkspaceRemoveResponses, ExperimentalWorkspaceRemoveErrors, ThrowOnError, "fields">;
    warp<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        id?: string | null;
        sessionID?: string;
        copyChanges?: boolean;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalWorkspaceWarpResponses, ExperimentalWorkspaceWarpErrors, ThrowOnError, "fields">;
    private _adapter?;
    get adapter(): Adapter;
}
export declare class ControlPlane extends HeyApiClient {
    moveSession<ThrowOnError extends boolean = false>(parameters?: {
        sessionID?: string;
        destination?: MoveSessionDestination;
        moveChanges?: boolean;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalControlPlaneMoveSessionResponses, ExperimentalControlPlaneMoveSessionErrors, ThrowOnError, "fields">;
}
export declare class ProjectCopy extends HeyApiClient {
    generateName<ThrowOnError extends boolean = false>(parameters: {
        projectID: string;
        directory?: string;
        workspace?: string;
        context?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalProjectCopyGenerateNameResponses, ExperimentalProjectCopyGenerateNameErrors, ThrowOnError, "fields">;
}
export declare class Experimental extends HeyApiClient {
    bug<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ExperimentalBugResponses, ExperimentalBugErrors, ThrowOnError, "fields">;
    private _capabilities?;
    get capabilities(): Capabilities;
    private _review?;
    get review(): Review;
    private _sandbox?;
    get sandbox(): Sandbox;
    private _console?;
    get console(): Console;
    private _session?;
    get session(): Session2;
    private _resource?;
    get resource(): Resource;
    private _workspace?;
    get workspace(): Workspace;
    private _controlPlane?;
    get controlPlane(): ControlPlane;
    private _projectCopy?;
    get projectCopy(): ProjectCopy;
}
export declare class Tool extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters: {
        directory?: string;
        workspace?: string;
        provider: string;
        model: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ToolListResponses, ToolListErrors, ThrowOnError, "fields">;
    ids<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<ToolIdsResponses, ToolIdsErrors, ThrowOnError, "fields">;
}
export declare class Worktree extends HeyApiClient {
    remove<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        worktreeRemoveInput?: WorktreeRemoveInput;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<WorktreeRemoveResponses, WorktreeRemoveErrors, ThrowOnError, "fields">;
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<WorktreeListResponses, WorktreeListErrors, ThrowOnError, "fields">;
    create<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        worktreeCreateInput?: WorktreeCreateInput;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<WorktreeCreateResponses, WorktreeCreateErrors, ThrowOnError, "fields">;
    reset<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        worktreeResetInput?: WorktreeResetInput;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<WorktreeResetResponses, WorktreeResetErrors, ThrowOnError, "fields">;
}
export declare class ProjectCopy2 extends HeyApiClient {
    remove<ThrowOnError extends boolean = false>(parameters: {
        projectID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
        directory?: string;
        force?: boolean;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2ProjectCopyRemoveResponses, V2ProjectCopyRemoveErrors, ThrowOnError, "fields">;
    create<ThrowOnError extends boolean = false>(parameters: {
        projectID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
        strategy?: string;
        directory?: string;
        name?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2ProjectCopyCreateResponses, V2ProjectCopyCreateErrors, ThrowOnError, "fields">;
    refresh<ThrowOnError extends boolean = false>(parameters: {
        projectID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2ProjectCopyRefreshResponses, V2ProjectCopyRefreshErrors, ThrowOnError, "fields">;
}
export declare class Health extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2HealthGetResponses, V2HealthGetErrors, ThrowOnError, "fields">;
}
export declare class Location extends HeyApiClient {
    get<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2LocationGetResponses, V2LocationGetErrors, ThrowOnError, "fields">;
}
export declare class Agent extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2AgentListResponses, V2AgentListErrors, ThrowOnError, "fields">;
}
export declare class Model extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2ModelListResponses, V2ModelListErrors, ThrowOnError, "fields">;
}
export declare class Provider2 extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2ProviderListResponses, V2ProviderListErrors, ThrowOnError, "fields">;
    get<ThrowOnError extends boolean = false>(parameters: {
        providerID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2ProviderGetResponses, V2ProviderGetErrors, ThrowOnError, "fields">;
}
export declare class Connect extends HeyApiClient {
    key<ThrowOnError extends boolean = false>(parameters: {
        integrationID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
        key?: string;
        label?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2IntegrationConnectKeyResponses, V2IntegrationConnectKeyErrors, ThrowOnError, "fields">;
    oauth<ThrowOnError extends boolean = false>(parameters: {
        integrationID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
        methodID?: string;
        inputs?: {
            [key: string]: string;
        };
        label?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2IntegrationConnectOauthResponses, V2IntegrationConnectOauthErrors, ThrowOnError, "fields">;
}
export declare class Attempt extends HeyApiClient {
    cancel<ThrowOnError extends boolean = false>(parameters: {
        attemptID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2IntegrationAttemptCancelResponses, V2IntegrationAttemptCancelErrors, ThrowOnError, "fields">;
    status<ThrowOnError extends boolean = false>(parameters: {
        attemptID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2IntegrationAttemptStatusResponses, V2IntegrationAttemptStatusErrors, ThrowOnError, "fields">;
    complete<ThrowOnError extends boolean = false>(parameters: {
        attemptID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
        code?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2IntegrationAttemptCompleteResponses, V2IntegrationAttemptCompleteErrors, ThrowOnError, "fields">;
}
export declare class Integration extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2IntegrationListResponses, V2IntegrationListErrors, ThrowOnError, "fields">;
    get<ThrowOnError extends boolean = false>(parameters: {
        integrationID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2IntegrationGetResponses, V2IntegrationGetErrors, ThrowOnError, "fields">;
    private _connect?;
    get connect(): Connect;
    private _attempt?;
    get attempt(): Attempt;
}
export declare class Credential extends HeyApiClient {
    remove<ThrowOnError extends boolean = false>(parameters: {
        credentialID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2CredentialRemoveResponses, V2CredentialRemoveErrors, ThrowOnError, "fields">;
    update<ThrowOnError extends boolean = false>(parameters: {
        credentialID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
        label?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2CredentialUpdateResponses, V2CredentialUpdateErrors, ThrowOnError, "fields">;
}
export declare class Reference extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2ReferenceListResponses, V2ReferenceListErrors, ThrowOnError, "fields">;
}
export declare class Command2 extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2CommandListResponses, V2CommandListErrors, ThrowOnError, "fields">;
}
export declare class Skill extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SkillListResponses, V2SkillListErrors, ThrowOnError, "fields">;
}
export declare class Event2 extends HeyApiClient {
    subscribe<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): Promise<import("./core/serverSentEvents.gen.js").ServerSentEventsResult<V2EventSubscribeResponses, V2EventSubscribeErrors>>;
}
export declare class Request extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2PermissionRequestListResponses, V2PermissionRequestListErrors, ThrowOnError, "fields">;
}
export declare class Saved extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        projectID?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2PermissionSavedListResponses, V2PermissionSavedListErrors, ThrowOnError, "fields">;
    remove<ThrowOnError extends boolean = false>(parameters: {
        id: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2PermissionSavedRemoveResponses, V2PermissionSavedRemoveErrors, ThrowOnError, "fields">;
}
export declare class Permission2 extends HeyApiClient {
    private _request?;
    get request(): Request;
    private _saved?;
    get saved(): Saved;
}
export declare class Request2 extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2QuestionRequestListResponses, V2QuestionRequestListErrors, ThrowOnError, "fields">;
}
export declare class Question2 extends HeyApiClient {
    private _request?;
    get request(): Request2;
}
export declare class Pty2 extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2PtyListResponses, V2PtyListErrors, ThrowOnError, "fields">;
    create<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
        command?: string;
        args?: Array<string>;
        cwd?: string;
        title?: string;
        env?: {
            [key: string]: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2PtyCreateResponses, V2PtyCreateErrors, ThrowOnError, "fields">;
    remove<ThrowOnError extends boolean = false>(parameters: {
        ptyID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2PtyRemoveResponses, V2PtyRemoveErrors, ThrowOnError, "fields">;
    get<ThrowOnError extends boolean = false>(parameters: {
        ptyID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2PtyGetResponses, V2PtyGetErrors, ThrowOnError, "fields">;
    update<ThrowOnError extends boolean = false>(parameters: {
        ptyID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
        title?: string;
        size?: {
            rows: number;
            cols: number;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2PtyUpdateResponses, V2PtyUpdateErrors, ThrowOnError, "fields">;
    connectToken<ThrowOnError extends boolean = false>(parameters: {
        ptyID: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2PtyConnectTokenResponses, V2PtyConnectTokenErrors, ThrowOnError, "fields">;
    connect<ThrowOnError extends boolean = false>(parameters: {
        ptyID: string;
        'location[directory]'?: string;
        'location[workspace]'?: string;
        cursor?: string;
        ticket?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2PtyConnectResponses, V2PtyConnectErrors, ThrowOnError, "fields">;
}
export declare class Fs extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        location?: {
            directory?: string;
            workspace?: string;
        };
        path?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2FsListResponses, V2FsListErrors, ThrowOnError, "fields">;
    find<ThrowOnError extends boolean = false>(parameters: {
        location?: {
            directory?: string;
            workspace?: string;
        };
        query: string;
        type?: 'file' | 'directory';
        limit?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2FsFindResponses, V2FsFindErrors, ThrowOnError, "fields">;
    read<ThrowOnError extends boolean = false>(parameters: {
        path: string;
        location?: {
            directory?: string;
            workspace?: string;
        };
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2FsReadResponses, V2FsReadErrors, ThrowOnError, "fields">;
}
export declare class Revert extends HeyApiClient {
    stage<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        messageID?: string;
        files?: boolean;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionRevertStageResponses, V2SessionRevertStageErrors, ThrowOnError, "fields">;
    clear<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionRevertClearResponses, V2SessionRevertClearErrors, ThrowOnError, "fields">;
    commit<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionRevertCommitResponses, V2SessionRevertCommitErrors, ThrowOnError, "fields">;
}
export declare class Permission3 extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionPermissionListResponses, V2SessionPermissionListErrors, ThrowOnError, "fields">;
    create<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        id?: string;
        action?: string;
        resources?: Array<string>;
        save?: Array<string>;
        metadata?: {
            [key: string]: unknown;
        };
        source?: PermissionV2Source;
        agent?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionPermissionCreateResponses, V2SessionPermissionCreateErrors, ThrowOnError, "fields">;
    get<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        requestID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionPermissionGetResponses, V2SessionPermissionGetErrors, ThrowOnError, "fields">;
    reply<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        requestID: string;
        reply?: PermissionV2Reply;
        message?: string;
        wider?: Array<string>;
        automatic?: boolean;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionPermissionReplyResponses, V2SessionPermissionReplyErrors, ThrowOnError, "fields">;
}
export declare class Question3 extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionQuestionListResponses, V2SessionQuestionListErrors, ThrowOnError, "fields">;
    reply<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        requestID: string;
        questionV2Reply: QuestionV2Reply;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionQuestionReplyResponses, V2SessionQuestionReplyErrors, ThrowOnError, "fields">;
    reject<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        requestID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionQuestionRejectResponses, V2SessionQuestionRejectErrors, ThrowOnError, "fields">;
}
export declare class Session3 extends HeyApiClient {
    list<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        limit?: number;
        order?: 'asc' | 'desc';
        search?: string;
        project?: string;
        subpath?: string;
        cursor?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionListResponses, V2SessionListErrors, ThrowOnError, "fields">;
    create<ThrowOnError extends boolean = false>(parameters?: {
        id?: string;
        agent?: string;
        model?: ModelRef;
        location?: LocationRef;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionCreateResponses, V2SessionCreateErrors, ThrowOnError, "fields">;
    active<ThrowOnError extends boolean = false>(options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionActiveResponses, V2SessionActiveErrors, ThrowOnError, "fields">;
    get<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionGetResponses, V2SessionGetErrors, ThrowOnError, "fields">;
    switchAgent<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        agent?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionSwitchAgentResponses, V2SessionSwitchAgentErrors, ThrowOnError, "fields">;
    switchModel<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        model?: ModelRef;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionSwitchModelResponses, V2SessionSwitchModelErrors, ThrowOnError, "fields">;
    interrupt<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionInterruptResponses, V2SessionInterruptErrors, ThrowOnError, "fields">;
    wait<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionWaitResponses, V2SessionWaitErrors, ThrowOnError, "fields">;
    compact<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionCompactResponses, V2SessionCompactErrors, ThrowOnError, "fields">;
    prompt<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        id?: string;
        prompt?: PromptInput;
        delivery?: 'steer' | 'queue';
        resume?: boolean;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionPromptResponses, V2SessionPromptErrors, ThrowOnError, "fields">;
    messages<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        limit?: number;
        order?: 'asc' | 'desc';
        cursor?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionMessagesResponses, V2SessionMessagesErrors, ThrowOnError, "fields">;
    message<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        messageID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionMessageResponses, V2SessionMessageErrors, ThrowOnError, "fields">;
    context<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionContextResponses, V2SessionContextErrors, ThrowOnError, "fields">;
    history<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        limit?: number;
        after?: number;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<V2SessionHistoryResponses, V2SessionHistoryErrors, ThrowOnError, "fields">;
    events<ThrowOnError extends boolean = false>(parameters: {
        sessionID: string;
        after?: string;
    }, options?: Options<never, ThrowOnError>): Promise<import("./core/serverSentEvents.gen.js").ServerSentEventsResult<V2SessionEventsResponses, V2SessionEventsErrors>>;
    private _revert?;
    get revert(): Revert;
    private _permission?;
    get permission(): Permission3;
    private _question?;
    get question(): Question3;
}
export declare class V2 extends HeyApiClient {
    private _projectCopy?;
    get projectCopy(): ProjectCopy2;
    private _health?;
    get health(): Health;
    private _location?;
    get location(): Location;
    private _agent?;
    get agent(): Agent;
    private _model?;
    get model(): Model;
    private _provider?;
    get provider(): Provider2;
    private _integration?;
    get integration(): Integration;
    private _credential?;
    get credential(): Credential;
    private _reference?;
    get reference(): Reference;
    private _command?;
    get command(): Command2;
    private _skill?;
    get skill(): Skill;
    private _event?;
    get event(): Event2;
    private _permission?;
    get permission(): Permission2;
    private _question?;
    get question(): Question2;
    private _pty?;
    get pty(): Pty2;
    private _fs?;
    get fs(): Fs;
    private _session?;
    get session(): Session3;
}
export declare class Control extends HeyApiClient {
    next<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiControlNextResponses, TuiControlNextErrors, ThrowOnError, "fields">;
    response<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        body?: unknown;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiControlResponseResponses, TuiControlResponseErrors, ThrowOnError, "fields">;
}
export declare class Tui extends HeyApiClient {
    appendPrompt<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        text?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiAppendPromptResponses, TuiAppendPromptErrors, ThrowOnError, "fields">;
    openHelp<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiOpenHelpResponses, TuiOpenHelpErrors, ThrowOnError, "fields">;
    openSessions<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiOpenSessionsResponses, TuiOpenSessionsErrors, ThrowOnError, "fields">;
    openThemes<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiOpenThemesResponses, TuiOpenThemesErrors, ThrowOnError, "fields">;
    openModels<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiOpenModelsResponses, TuiOpenModelsErrors, ThrowOnError, "fields">;
    submitPrompt<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiSubmitPromptResponses, TuiSubmitPromptErrors, ThrowOnError, "fields">;
    clearPrompt<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiClearPromptResponses, TuiClearPromptErrors, ThrowOnError, "fields">;
    executeCommand<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        command?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiExecuteCommandResponses, TuiExecuteCommandErrors, ThrowOnError, "fields">;
    showToast<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        title?: string;
        message?: string;
        variant?: 'info' | 'success' | 'warning' | 'error';
        duration?: number;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiShowToastResponses, TuiShowToastErrors, ThrowOnError, "fields">;
    publish<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        body?: EventTuiPromptAppend | EventTuiCommandExecute | EventTuiToastShow | EventTuiSessionSelect;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiPublishResponses, TuiPublishErrors, ThrowOnError, "fields">;
    selectSession<ThrowOnError extends boolean = false>(parameters?: {
        directory?: string;
        workspace?: string;
        sessionID?: string;
    }, options?: Options<never, ThrowOnError>): import("./client/types.gen.js").RequestResult<TuiSelectSessionResponses, TuiSelectSessionErrors, ThrowOnError, "fields">;
    private _control?;
    get control(): Control;
}
export declare class CodewrightClient extends HeyApiClient {
    static readonly __registry: HeyApiRegistry<CodewrightClient>;
    constructor(args?: {
        client?: Client;
        key?: string;
    });
    private _doc?;
    get doc(): Doc;
    private _global?;
    get global(): Global;
    private _auth?;
    get auth(): Auth;
    private _users?;
    get users(): Users;
    private _event?;
    get event(): Event;
    private _path?;
    get path(): Path;
    private _instance?;
    get instance(): Instance;
    private _app?;
    get app(): App;
    private _project?;
    get project(): Project;
    private _config?;
    get config(): Config2;
    private _trust?;
    get trust(): Trust;
    private _provider?;
    get provider(): Provider;
    private _command?;
    get command(): Command;
    private _lsp?;
    get lsp(): Lsp;
    private _formatter?;
    get formatter(): Formatter;
    private _mcp?;
    get mcp(): Mcp;
    private _session?;
    get session(): Session;
    private _part?;
    get part(): Part;
    private _sync?;
    get sync(): Sync;
    private _pty?;
    get pty(): Pty;
    private _permission?;
    get permission(): Permission;
    private _question?;
    get question(): Question;
    private _file?;
    get file(): File;
    private _find?;
    get find(): Find;
    private _vcs?;
    get vcs(): Vcs;
    private _experimental?;
    get experimental(): Experimental;
    private _tool?;
    get tool(): Tool;
    private _worktree?;
    get worktree(): Worktree;
    private _v2?;
    get v2(): V2;
    private _tui?;
    get tui(): Tui;
}
export {};
