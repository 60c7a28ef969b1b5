/** The sign-ins and credentials of v2 plugins. */
import type { Connection } from "../connection.js";
import { log } from "../log.js";
import { isRecord, type AuthHook, type AuthMethod, type Plugin } from "../plugins.js";

interface OAuthRegistration {
  integrationID: string;
  method: { type: string; id?: string; label?: string; prompts?: AuthMethod["prompts"] };
  authorize?: (inputs: Record<string, string>) => unknown;
}

/** Runs the callbacks for sign-ins. A plugin can sign in to one provider. */
export async function collectSignIns(
  plugin: Plugin,
  callbacks: ((draft: unknown) => unknown)[],
): Promise<AuthHook | undefined> {
  if (callbacks.length === 0) return undefined;
  const found: OAuthRegistration[] = [];
  const ignore = (what: string) => log("warn", `${what} has no effect in this program`, plugin.index);
  const draft = {
    list: () => [],
    get: () => undefined,
    update: () => ignore("integration.update"),
    remove: () => ignore("integration.remove"),
    method: {
      list: (id: string) => found.filter(({ integrationID }) => integrationID === id).map(({ method }) => method),
      update: (registration: OAuthRegistration) => {
        if (registration?.method?.type === "oauth" && typeof registration.authorize === "function")
          found.push(registration);
        else ignore(`a sign-in method of the type ${String(registration?.method?.type)}`);
      },
      remove: (id: string, method: { id?: string }) => {
        const at = found.findIndex((known) => known.integrationID === id && known.method.id === method?.id);
        if (at >= 0) found.splice(at, 1);
      },
    },
  };
  for (const callback of callbacks) await callback(draft);
  const provider = found[0]?.integrationID;
  if (provider === undefined) return undefined;
  for (const { integrationID } of found)
    if (integrationID !== provider) ignore(`a second provider to sign in to (${integrationID})`);
  return { provider, methods: found.filter(({ integrationID }) => integrationID === provider).map(method) };
}

/** The method in the form of the other plugins. */
function method({ method, authorize }: OAuthRegistration): AuthMethod {
  const described: AuthMethod = {
    type: "oauth",
    label: String(method.label ?? ""),
    authorize: async (inputs) => {
      const page = await authorize?.(inputs ?? {});
      if (!isRecord(page)) throw new TypeError("`authorize` returned no page");
      const { url, instructions, mode, callback } = page;
      if (typeof callback !== "function") throw new TypeError("`callback` must be a function that returns a promise");
      return {
        url,
        instructions,
        method: mode,
        callback: async (code?: string) => {
          const credential: unknown = await callback.call(page, code);
          if (!isRecord(credential) || credential["type"] !== "oauth") return { type: "failed" };
          const { access, refresh, expires } = credential;
          return { type: "success", access, refresh, expires };
        },
      };
    },
  };
  if (method.prompts !== undefined) described.prompts = method.prompts;
  return described;
}

/** `integration.connection`: the credentials of the providers that the plugin signs in to. */
export function connections(connection: Connection): unknown {
  const credential = (provider: string) =>
    connection.request<Record<string, unknown> | null>("auth.get", { provider: String(provider) });
  return {
    active: async (id: string) => ((await credential(id)) === null ? undefined : { type: "credential", id, label: id }),
    resolve: async (info: { type: string; id?: string; name?: string }) => {
      if (info?.type === "env")
        return typeof info.name === "string" && process.env[info.name]
          ? { type: "key", key: process.env[info.name] }
          : undefined;
      const stored = await credential(info?.id ?? "");
      if (stored === null) return undefined;
      const { type, key, access, refresh, expires } = stored;
      return type === "oauth" ? { type, methodID: "", access, refresh, expires } : { type: "key", key };
    },
  };
}
