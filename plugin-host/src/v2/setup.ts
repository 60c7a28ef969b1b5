/**
 * Plugins of the v2 form `{id, setup}`.
 *
 * Their callbacks change drafts of the agents, commands, providers and skills. The hook `TRANSFORM` runs them on the
 * lists of the server and returns the differences as a part of the configuration.
 */
import { log } from "../log.js";
import type { Connection } from "../connection.js";
import { MAX_V2_PLUGINS, MAX_V2_REGISTRATIONS } from "../limits.js";
import { isRecord, type Hooks, type Plugin } from "../plugins.js";
import { agentDraft, catalogDraft, commandDraft, skillDraft, type Lists } from "./drafts.js";
import { collectSignIns, connections } from "./integration.js";
import { merge, patchOf } from "./patch.js";

export interface V2Module {
  id: string;
  setup(context: unknown): unknown;
}

/** The hook that runs the callbacks. No plugin of the other form can have it by accident. */
const TRANSFORM = "v2.transform";

type Callback = (draft: unknown) => unknown;

const DRAFTS: Record<string, (lists: Lists) => unknown> = {
  agent: agentDraft,
  command: commandDraft,
  catalog: catalogDraft,
  skill: skillDraft,
};

/** Registrations that the program has no use for: it sends requests to models itself, and has no references. */
const WITHOUT_EFFECT = { aisdk: ["sdk", "language"], reference: ["transform"] };

interface Registration {
  owner: string;
  domain: string;
  callback: Callback;
}

export async function setupV2Plugin(
  plugin: Plugin,
  module: V2Module,
  options: unknown,
  connection: Connection,
): Promise<void> {
  const setup = new Setup(plugin, connection, options);
  await setup.add(module);
  const hooks: Hooks = { [TRANSFORM]: (input: unknown, output: unknown) => setup.transform(input, output) };
  const auth = await collectSignIns(plugin, setup.callbacks("integration"));
  if (auth !== undefined) hooks.auth = auth;
  plugin.hooks.push(hooks);
  setup.isReady = true;
}

class Setup {
  isReady = false;
  #registrations: Registration[] = [];
  #owners = new Set<string>();
  #reload: Promise<unknown> | undefined;
  #isRunning = false;

  constructor(
    private readonly plugin: Plugin,
    private readonly connection: Connection,
    private readonly options: unknown,
  ) {}

  async add(module: V2Module): Promise<void> {
    if (typeof module.id !== "string" || typeof module.setup !== "function")
      throw new TypeError("a plugin has an `id` and a function `setup`");
    if (this.#owners.size >= MAX_V2_PLUGINS) throw new Error(`a plugin can add at most ${MAX_V2_PLUGINS - 1} others`);
    this.#remove(module.id);
    this.#owners.add(module.id);
    await module.setup(this.#context(module.id));
  }

  callbacks(domain: string): Callback[] {
    return this.#registrations.filter((registration) => registration.domain === domain).map(({ callback }) => callback);
  }

  /** Runs the callbacks on the lists of the server, and adds the differences to `output.config`. */
  async transform(input: unknown, output: unknown): Promise<void> {
    const { lists, config } = input as { lists: Lists; config: Record<string, unknown> };
    const result = output as { config: Record<string, unknown> };
    const before = structuredClone(lists);
    this.#isRunning = true;
    try {
      for (const { domain, callback } of this.#registrations) {
        const draft = DRAFTS[domain];
        if (draft !== undefined) await callback(draft(lists));
      }
    } catch (error) {
      // The other plugins continue with the lists as they were.
      Object.assign(lists, before);
      throw error;
    } finally {
      this.#isRunning = false;
    }
    const base = merge(structuredClone(config), structuredClone(result.config));
    const patch = patchOf(before, lists, base);
    merge(result.config, patch.config);
    for (const lost of new Set(patch.lost)) log("warn", `${lost} cannot be used`, this.plugin.index);
  }

  #context(owner: string): unknown {
    const registers = (domain: string) => ({
      transform: this.#register(owner, domain),
      reload: () => this.#reloadSoon(),
    });
    const context: Record<string, unknown> = { options: isRecord(this.options) ? this.options : {} };
    for (const domain of Object.keys(DRAFTS)) context[domain] = registers(domain);
    for (const [domain, hooks] of Object.entries(WITHOUT_EFFECT)) {
      context[domain] = {
        ...Object.fromEntries(hooks.map((hook) => [hook, this.#ignore(domain, hook)])),
        reload: async () => {},
      };
    }
    context["integration"] = { ...registers("integration"), connection: connections(this.connection) };
    context["plugin"] = {
      add: async (module: V2Module) => {
        await this.add(module);
        await this.#reloadSoon();
      },
      remove: async (id: string) => {
        if (this.#remove(id)) await this.#reloadSoon();
      },
    };
    return context;
  }

  #register(owner: string, domain: string) {
    return async (callback: Callback) => {
      if (typeof callback !== "function") throw new TypeError(`${domain}.transform needs a function`);
      if (this.#registrations.length >= MAX_V2_REGISTRATIONS)
        throw new Error(`a plugin has at most ${MAX_V2_REGISTRATIONS} registrations`);
      const registration = { owner, domain, callback };
      this.#registrations.push(registration);
      await this.#reloadSoon();
      return {
        dispose: async () => {
          const at = this.#registrations.indexOf(registration);
          if (at < 0) return;
          this.#registrations.splice(at, 1);
          await this.#reloadSoon();
        },
      };
    };
  }

  #ignore(domain: string, hook: string) {
    return async () => {
      log("warn", `${domain}.${hook} has no effect in this program`, this.plugin.index);
      return { dispose: async () => {} };
    };
  }

  #remove(id: string): boolean {
    const count = this.#registrations.length;
    this.#registrations = this.#registrations.filter((registration) => registration.owner !== id);
    return this.#owners.delete(id) && this.#registrations.length < count;
  }

  /**
   * Asks the server to run the callbacks again, and waits for it. While the plugin is loaded, the server does so
   * anyway; and a callback cannot wait for itself.
   */
  async #reloadSoon(): Promise<void> {
    if (!this.isReady || this.#isRunning) return;
    this.#reload ??= Promise.resolve().then(() => {
      this.#reload = undefined;
      return this.connection.request("reload", {});
    });
    await this.#reload;
  }
}
