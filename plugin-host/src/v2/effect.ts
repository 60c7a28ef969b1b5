/**
 * Plugins of the form `{id, effect}`, which are written with the library Effect.
 *
 * The plugin brings the library. Its functions are wrapped, so that it becomes a plugin of the form `{id, setup}`.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isRecord } from "../plugins.js";
import type { V2Module } from "./setup.js";

interface EffectModule {
  id: string;
  effect(context: unknown): unknown;
}

type Method = (...args: never[]) => unknown;

/** The parts of the library that are used. */
interface Library {
  Effect: {
    isEffect(value: unknown): boolean;
    promise(evaluate: () => unknown): unknown;
    provideService(effect: unknown, service: unknown, value: unknown): unknown;
    runPromise(effect: unknown): Promise<unknown>;
    runSync(effect: unknown): unknown;
  };
  Exit: { void: unknown };
  Scope: { Scope: unknown; make(): unknown; close(scope: unknown, exit: unknown): unknown };
}

/**
 * Returns the plugin in the other form, and a function that closes what it has opened. `home` is its file or directory.
 */
export async function fromEffect(
  module: EffectModule,
  home: string,
): Promise<{ module: V2Module; close(): Promise<void> }> {
  const adapter = new Adapter(await library(home));
  return { module: adapter.module(module), close: () => adapter.close() };
}

async function library(home: string): Promise<Library> {
  for (const from of [home, join(home, "package.json")]) {
    let file: string;
    try {
      file = createRequire(from).resolve("effect");
    } catch {
      continue;
    }
    return (await import(pathToFileURL(file).href)) as Library;
  }
  throw new Error("a plugin of the form {id, effect} needs the package effect, which is not installed next to it");
}

class Adapter {
  #scopes: unknown[] = [];

  constructor(private readonly library: Library) {}

  module(plugin: EffectModule): V2Module {
    return {
      id: plugin.id,
      setup: async (context) => {
        const { Effect, Scope } = this.library;
        const scope = Effect.runSync(Scope.make());
        this.#scopes.push(scope);
        const effect = plugin.effect(this.#context(context as Record<string, unknown>));
        if (Effect.isEffect(effect)) await Effect.runPromise(Effect.provideService(effect, Scope.Scope, scope));
      },
    };
  }

  async close(): Promise<void> {
    const { Effect, Exit, Scope } = this.library;
    for (const scope of this.#scopes.splice(0).reverse()) await Effect.runPromise(Scope.close(scope, Exit.void));
  }

  /** The context with functions that return effects. */
  #context(context: Record<string, unknown>): unknown {
    const wrapped: Record<string, unknown> = {};
    for (const [domain, value] of Object.entries(context)) {
      wrapped[domain] = domain === "options" || !isRecord(value) ? value : this.#domain(domain, value);
    }
    return wrapped;
  }

  #domain(domain: string, functions: Record<string, unknown>): unknown {
    const wrapped: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(functions)) {
      if (isRecord(value)) wrapped[name] = this.#domain(name, value);
      if (typeof value !== "function") continue;
      const call = value as (...args: unknown[]) => unknown;
      if (domain === "plugin" && name === "add")
        wrapped[name] = (plugin: EffectModule) => this.#promise(() => call(this.module(plugin)));
      else if (["transform", "sdk", "language"].includes(name)) wrapped[name] = this.#registration(domain, call);
      else wrapped[name] = (...args: unknown[]) => this.#promise(() => call(...args));
    }
    return wrapped;
  }

  #registration(domain: string, register: (callback: unknown) => unknown) {
    return (callback: unknown) => {
      if (typeof callback !== "function") throw new TypeError(`${domain} needs a function`);
      const run = (draft: unknown) => this.#run(callback(domain === "integration" ? this.#signIns(draft) : draft));
      return this.#promise(async () => {
        const { dispose } = (await register(run)) as { dispose(): unknown };
        return { dispose: this.#promise(dispose) };
      });
    };
  }

  /** The draft of sign-ins, whose methods return effects. */
  #signIns(draft: unknown): unknown {
    const { method, ...rest } = draft as { method: { update(registration: unknown): void } };
    const update = (registration: { authorize?: Method }) => {
      const authorize = registration.authorize;
      if (typeof authorize !== "function") return method.update(registration);
      method.update({
        ...registration,
        authorize: async (inputs: never) => this.#page(await this.#run(authorize(inputs))),
      });
    };
    return { ...rest, method: { ...method, update } };
  }

  #page(page: unknown): unknown {
    if (!isRecord(page)) return page;
    const callback = page["callback"];
    const run =
      typeof callback === "function" ? (code: unknown) => this.#run(callback(code)) : () => this.#run(callback);
    return { ...page, callback: run };
  }

  #promise(evaluate: () => unknown): unknown {
    return this.library.Effect.promise(async () => evaluate());
  }

  async #run(value: unknown): Promise<unknown> {
    const { Effect } = this.library;
    return Effect.isEffect(value) ? Effect.runPromise(value) : value;
  }
}
