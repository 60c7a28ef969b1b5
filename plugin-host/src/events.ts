/** Gives the events of the server to the plugins, in order. */
import { runAs } from "./attribution.js";
import { withDeadline } from "./deadline.js";
import { DeadlineError } from "./errors.js";
import { MAX_QUEUED_EVENTS, MAX_RUNNING_EVENTS } from "./limits.js";
import { log, logError, reportError } from "./log.js";
import { allPlugins, hookFunctions, type HookFunction, type Plugin } from "./plugins.js";

interface Queue {
  plugin: Plugin;
  handlers: HookFunction[];
  waiting: unknown[];
  running: number;
  dropped: number;
}

/**
 * The event queues of the plugins.
 *
 * A handler starts when the one before it has returned its promise, not when that promise settles: a handler may wait
 * for a prompt whose events it also gets.
 */
export class EventQueues {
  #queues: Queue[] | undefined;

  constructor(private readonly deadline: number) {}

  push(event: unknown): void {
    this.#queues ??= [...allPlugins()]
      .map((plugin) => ({ plugin, handlers: hookFunctions(plugin, "event"), waiting: [], running: 0, dropped: 0 }))
      .filter((queue) => queue.handlers.length > 0);
    for (const queue of this.#queues) {
      queue.waiting.push(event);
      if (queue.waiting.length > MAX_QUEUED_EVENTS) {
        queue.waiting.shift();
        if (queue.dropped++ === 0)
          log("warn", "events come faster than the plugin handles them; the oldest are dropped", queue.plugin.index);
      }
      this.#run(queue);
    }
  }

  #run(queue: Queue): void {
    while (queue.running < MAX_RUNNING_EVENTS && queue.waiting.length > 0) {
      const event = queue.waiting.shift();
      queue.running++;
      void this.#handle(queue, event).finally(() => {
        queue.running--;
        if (queue.waiting.length === 0 && queue.dropped > 0) {
          log("warn", `${queue.dropped} events were dropped`, queue.plugin.index);
          queue.dropped = 0;
        }
        this.#run(queue);
      });
    }
  }

  async #handle(queue: Queue, event: unknown): Promise<void> {
    const { plugin } = queue;
    for (const handler of queue.handlers) {
      const late = (error: unknown) => logError("event failed", error, plugin.index);
      try {
        // Each plugin gets a copy of its own, as a change must not reach the others.
        const run = () => handler({ event: structuredClone(event) }, undefined);
        await runAs(plugin, () => withDeadline(`event of ${plugin.name}`, this.deadline, run, late));
      } catch (error) {
        // A handler may take its time, for example for a prompt of its own. Its place in the queue is free again.
        if (!(error instanceof DeadlineError)) reportError("event", error, plugin.index);
      }
    }
  }
}
