/** The `auth` and `provider` parts of plugins. */
import { runAs } from "./attribution.js";
import type { Connection } from "./connection.js";
import { withDeadline } from "./deadline.js";
import type { CustomFetches } from "./fetch.js";
import { describeProblems, toJson } from "./json.js";
import { MAX_SIGN_INS, SIGN_IN_LIFETIME_MS } from "./limits.js";
import { log } from "./log.js";
import { authHook, isRecord, pluginAt, providerHook, type AuthHook, type AuthMethod, type Plugin } from "./plugins.js";
import { ErrorCode, ProtocolError } from "./protocol.js";

type Inputs = Record<string, string>;

interface SignIn {
  plugin: Plugin;
  callback: (code?: string) => unknown;
  timer: NodeJS.Timeout;
}

export interface AuthSettings {
  connection: Connection;
  fetches: CustomFetches;
  /** Milliseconds for hooks that answer at once. Sign-ins wait for the user and have their own limit. */
  deadline: number;
}

export class AuthHooks {
  readonly #signIns = new Map<string, SignIn>();

  constructor(private readonly settings: AuthSettings) {}

  async prompt(params: {
    index: number;
    method: number;
    key: string;
    value?: string;
    inputs?: Inputs;
  }): Promise<unknown> {
    const { plugin, method } = this.#method(params);
    const prompt = method.prompts?.find((candidate) => candidate.key === params.key);
    if (prompt === undefined) throw new ProtocolError(ErrorCode.invalidParams, `there is no prompt ${params.key}`);
    return runAs(plugin, () => {
      const inputs = params.inputs ?? {};
      if (!isVisible(prompt, inputs)) return { visible: false };
      if (typeof params.value !== "string" || typeof prompt.validate !== "function") return { visible: true };
      const error = prompt.validate(params.value);
      return error === undefined || error === null ? { visible: true } : { visible: true, error: String(error) };
    });
  }

  async authorize(params: { index: number; method: number; inputs?: Inputs }): Promise<unknown> {
    const { plugin, method } = this.#method(params);
    // A client that asks nothing passes nothing. Plugins take an object as the sign-in of a command line, which waits.
    const inputs = params.inputs ?? undefined;
    const { authorize } = method;
    if (typeof authorize !== "function") {
      const key = inputs?.["key"];
      return key === undefined ? { type: "failed" } : { type: "success", key };
    }
    const result = await runAs(plugin, () =>
      withDeadline(`the sign-in of ${plugin.name}`, SIGN_IN_LIFETIME_MS, () => authorize.call(method, inputs)),
    );
    if (!isRecord(result)) return { type: "failed" };
    if (method.type !== "oauth") return plain(plugin, result) ?? { type: "failed" };
    const { url, instructions, method: kind, callback } = result;
    if (typeof callback !== "function") throw new Error(`the sign-in of ${plugin.name} has no callback`);
    const handle = this.#remember(plugin, (code) =>
      code === undefined ? callback.call(result) : callback.call(result, code),
    );
    return {
      url: String(url ?? ""),
      instructions: String(instructions ?? ""),
      method: kind === "code" ? "code" : "auto",
      handle,
    };
  }

  async callback(params: { handle: string; code?: string }): Promise<unknown> {
    const signIn = this.#signIns.get(params.handle);
    if (signIn === undefined)
      throw new ProtocolError(ErrorCode.invalidParams, "the sign-in has expired; start it again");
    this.#forget(params.handle);
    const { plugin, callback } = signIn;
    const run = () => callback(params.code ?? undefined);
    const result = await runAs(plugin, () => withDeadline(`the sign-in of ${plugin.name}`, SIGN_IN_LIFETIME_MS, run));
    return (isRecord(result) ? plain(plugin, result) : undefined) ?? { type: "failed" };
  }

  /** Runs a loader. Its options may contain a `fetch` function, which stays here behind a handle. */
  async loader(params: { index: number; provider: unknown }): Promise<unknown> {
    const { plugin, auth } = this.#auth(params.index);
    const { loader } = auth;
    if (typeof loader !== "function") return { options: {} };
    const { connection, deadline, fetches } = this.settings;
    const getAuth = () => connection.request("auth.get", { provider: auth.provider });
    const before = JSON.stringify(params.provider);
    const run = () => loader.call(auth, getAuth, params.provider);
    const options = await runAs(plugin, () => withDeadline(`the auth loader of ${plugin.name}`, deadline, run));
    const result: Record<string, unknown> = { options: {} };
    if (isRecord(options)) {
      const { fetch: custom, ...rest } = options;
      result["options"] = plain(plugin, rest) ?? {};
      if (typeof custom === "function") result["fetch"] = fetches.register(plugin, custom as typeof fetch);
    }
    // Loaders also change the provider, for example to set the costs of a subscription to zero.
    const after = plain(plugin, params.provider);
    if (after !== undefined && JSON.stringify(after) !== before) result["provider"] = after;
    return result;
  }

  async models(params: { index: number; provider: unknown; auth?: unknown }): Promise<unknown> {
    const plugin = pluginOrFail(params.index);
    const hook = providerHook(plugin);
    if (hook === undefined || typeof hook.models !== "function") {
      throw new ProtocolError(ErrorCode.invalidParams, `${plugin.name} provides no models`);
    }
    const models = hook.models;
    const context = params.auth === undefined || params.auth === null ? {} : { auth: params.auth };
    const run = () => models.call(hook, params.provider, context);
    const result = await runAs(plugin, () => withDeadline(`the models of ${plugin.name}`, this.settings.deadline, run));
    return { models: plain(plugin, result) ?? {} };
  }

  #auth(index: number): { plugin: Plugin; auth: AuthHook } {
    const plugin = pluginOrFail(index);
    const auth = authHook(plugin);
    if (auth === undefined) throw new ProtocolError(ErrorCode.invalidParams, `${plugin.name} has no auth hook`);
    return { plugin, auth };
  }

  #method(params: { index: number; method: number }): { plugin: Plugin; method: AuthMethod } {
    const { plugin, auth } = this.#auth(params.index);
    const method = auth.methods?.[params.method];
    if (method === undefined) {
      throw new ProtocolError(ErrorCode.invalidParams, `${plugin.name} has no sign-in method ${params.method}`);
    }
    return { plugin, method };
  }

  #remember(plugin: Plugin, callback: (code?: string) => unknown): string {
    const oldest = this.#signIns.keys().next();
    if (this.#signIns.size >= MAX_SIGN_INS && oldest.done !== true) this.#forget(oldest.value);
    const handle = crypto.randomUUID();
    const timer = setTimeout(() => this.#signIns.delete(handle), SIGN_IN_LIFETIME_MS);
    timer.unref();
    this.#signIns.set(handle, { plugin, callback, timer });
    return handle;
  }

  #forget(handle: string): void {
    clearTimeout(this.#signIns.get(handle)?.timer);
    this.#signIns.delete(handle);
  }
}

function pluginOrFail(index: number): Plugin {
  const plugin = pluginAt(index);
  if (plugin === undefined) throw new ProtocolError(ErrorCode.invalidParams, `there is no plugin ${index}`);
  return plugin;
}

function isVisible(
  prompt: { when?: { key: string; op: string; value: string }; condition?: (inputs: Inputs) => boolean },
  inputs: Inputs,
): boolean {
  const { when, condition } = prompt;
  if (isRecord(when)) {
    const equal = inputs[when.key] === when.value;
    return when.op === "neq" ? !equal : equal;
  }
  return typeof condition === "function" ? Boolean(condition(inputs)) : true;
}

function plain(plugin: Plugin, value: unknown): unknown {
  const { value: json, problems } = toJson(value);
  if (problems.length > 0) log("warn", describeProblems(problems), plugin.index);
  return json;
}
