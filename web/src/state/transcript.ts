// The messages of a session, loaded in pages from the newest on and kept up to date by events.
//
// Each message and each part is a signal of its own, so that a change draws only what it changed. Text that streams is
// collected and applied once a frame.
import { batch, createSignal, type Accessor, type Setter } from "solid-js";
import { call, callWithHeaders, type Event, type Message, type Part } from "../api";

/** The messages of a page. */
const PAGE = 60;
/** The older messages of a page. */
const OLDER = 150;
/** Events that are kept while a page loads. More than that load it again. */
const MAX_QUEUED = 5_000;
/** The waits before a growing text is fetched again. The server stores it every 100 ms, a long one less often. */
const JOIN_MS = [300, 500, 1_000, 2_000, 4_000];
/** The characters that a fetched text and the deltas must have in common to be sure that nothing is missing. */
const SURE = 24;

type Of<Type extends Event["type"]> = Extract<Event, { type: Type }>;
export type TranscriptEvent =
  | Of<"message.updated">
  | Of<"message.removed">
  | Of<"message.part.updated">
  | Of<"message.part.removed">
  | Of<"message.part.delta">;

export class PartNode {
  readonly id: string;
  readonly part: Accessor<Part>;
  readonly set: Setter<Part>;
  constructor(part: Part) {
    this.id = part.id;
    [this.part, this.set] = createSignal(part);
  }
}

export class MessageNode {
  readonly id: string;
  readonly info: Accessor<Message>;
  readonly setInfo: Setter<Message>;
  readonly parts: Accessor<PartNode[]>;
  readonly setParts: Setter<PartNode[]>;
  constructor(info: Message, parts: Part[]) {
    this.id = info.id;
    [this.info, this.setInfo] = createSignal(info);
    [this.parts, this.setParts] = createSignal(parts.map((part) => new PartNode(part)));
  }
  part(id: string): PartNode | undefined {
    // Parts that change are almost always the last ones.
    const parts = this.parts();
    for (let at = parts.length - 1; at >= 0; at -= 1) if (parts[at]?.id === id) return parts[at];
    return undefined;
  }
}

function isBefore(a: Message, b: Message): boolean {
  return a.time.created < b.time.created || (a.time.created === b.time.created && a.id < b.id);
}

export class Transcript {
  readonly session: string;
  readonly order: Accessor<string[]>;
  readonly isLoaded: Accessor<boolean>;
  readonly isLoading: Accessor<boolean>;
  /** Whether the oldest message is loaded. */
  readonly isComplete: Accessor<boolean>;
  readonly error: Accessor<string>;
  readonly #messages = new Map<string, MessageNode>();
  readonly #setOrder: Setter<string[]>;
  readonly #setLoaded: Setter<boolean>;
  readonly #setLoading: Setter<boolean>;
  readonly #setComplete: Setter<boolean>;
  readonly #setError: Setter<string>;
  /** The position of the next older page. */
  #cursor: string | null = null;
  /** Events that arrived while the newest page loads. */
  #queue: TranscriptEvent[] | null = null;
  #generation = 0;
  /** The time of the last request for the newest page. */
  requested = 0;
  /** The deltas of texts that were growing when they were fetched, until it is known where they continue. */
  readonly #joining = new Map<string, string>();

  constructor(session: string) {
    this.session = session;
    [this.order, this.#setOrder] = createSignal<string[]>([]);
    [this.isLoaded, this.#setLoaded] = createSignal(false);
    [this.isLoading, this.#setLoading] = createSignal(false);
    [this.isComplete, this.#setComplete] = createSignal(false);
    [this.error, this.#setError] = createSignal("");
  }

  message(id: string): MessageNode | undefined {
    return this.#messages.get(id);
  }

  /** Loads the newest page. What is already loaded stays if it joins the page without a gap. */
  async refresh(): Promise<void> {
    this.#generation += 1;
    const mine = this.#generation;
    this.requested = performance.now();
    this.#queue = [];
    this.#joining.clear();
    this.#setLoading(true);
    try {
      const { reply, headers } = await callWithHeaders("GET /session/{sessionID}/message", {
        path: { sessionID: this.session },
        query: { limit: PAGE },
      });
      if (mine !== this.#generation) return;
      const queued = this.#queue;
      this.#queue = null;
      batch(() => {
        this.#merge(reply, headers.get("x-next-cursor"));
        for (const { info, parts } of reply) {
          if (info.role !== "assistant" || info.time.completed) continue;
          for (const part of parts) if (isGrowing(part)) this.#join(info.id, part.id);
        }
        for (const event of queued) this.#apply(event);
        this.#setLoaded(true);
        this.#setError("");
      });
    } catch (error) {
      if (mine !== this.#generation) return;
      this.#queue = null;
      this.#setError(error instanceof Error ? error.message : String(error));
    } finally {
      if (mine === this.#generation) this.#setLoading(false);
    }
  }

  #merge(page: { info: Message; parts: Part[] }[], cursor: string | null): void {
    const oldest = page[0]?.info;
    const joins = oldest !== undefined && this.#messages.has(oldest.id);
    const kept = joins ? this.order().slice(0, this.order().indexOf(oldest.id)) : [];
    for (const id of this.#messages.keys())
      if (!kept.includes(id) && !page.some(({ info }) => info.id === id)) this.#messages.delete(id);
    for (const { info, parts } of page) this.#put(info, parts);
    this.#setOrder([...kept, ...page.map(({ info }) => info.id)]);
    if (!joins) {
      this.#cursor = cursor;
      this.#setComplete(cursor === null);
    }
  }

  /** Stores a message with all its parts. Elements of parts that exist already stay. */
  #put(info: Message, parts: Part[]): void {
    const node = this.#messages.get(info.id);
    if (!node) {
      this.#messages.set(info.id, new MessageNode(info, parts));
      return;
    }
    node.setInfo(info);
    node.setParts(
      parts.map((part) => {
        const known = node.part(part.id);
        if (!known) return new PartNode(part);
        known.set(part);
        return known;
      }),
    );
  }

  /**
   * Finds where the deltas of a growing text continue the fetched one, which is older than they are. The text is
   * fetched again until its end contains the first deltas.
   */
  #join(messageID: string, partID: string): void {
    this.#joining.set(partID, "");
    const mine = this.#generation;
    const look = async (attempt: number): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, JOIN_MS[attempt]));
      // A complete part may have arrived meanwhile.
      if (mine !== this.#generation || !this.#joining.has(partID)) return;
      const isLast = attempt === JOIN_MS.length - 1;
      let part: Part | undefined;
      try {
        const reply = await call("GET /session/{sessionID}/message/{messageID}", {
          path: { sessionID: this.session, messageID },
        });
        part = reply.parts.find((one) => one.id === partID);
      } catch {
        // The next attempt may succeed, and the complete part follows in any case.
      }
      const deltas = this.#joining.get(partID);
      if (mine !== this.#generation || deltas === undefined) return;
      const text = part && "text" in part ? part.text : "";
      const common = overlap(text, deltas);
      if (!isLast && (!part || common < Math.min(SURE, deltas.length))) return look(attempt + 1);
      this.#joining.delete(partID);
      const node = this.#messages.get(messageID)?.part(partID);
      if (node && part && "text" in part) node.set({ ...part, text: text + deltas.slice(common) } as Part);
    };
    void look(0);
  }

  /** Loads the page before the oldest message. */
  async older(): Promise<void> {
    if (this.isLoading() || this.isComplete() || !this.#cursor || !this.isLoaded()) return;
    const mine = this.#generation;
    this.#setLoading(true);
    try {
      const { reply, headers } = await callWithHeaders("GET /session/{sessionID}/message", {
        path: { sessionID: this.session },
        query: { limit: OLDER, before: this.#cursor },
      });
      if (mine !== this.#generation) return;
      batch(() => {
        const fresh = reply.filter(({ info }) => !this.#messages.has(info.id));
        for (const { info, parts } of fresh) this.#put(info, parts);
        this.#setOrder((order) => [...fresh.map(({ info }) => info.id), ...order]);
        this.#cursor = headers.get("x-next-cursor");
        this.#setComplete(this.#cursor === null);
      });
    } catch (error) {
      this.#setError(error instanceof Error ? error.message : String(error));
    } finally {
      if (mine === this.#generation) this.#setLoading(false);
    }
  }

  /** Applies an event, or keeps it while the newest page loads. */
  apply(event: TranscriptEvent): void {
    if (this.#queue) {
      if (this.#queue.length < MAX_QUEUED) this.#queue.push(event);
      else void this.refresh();
      return;
    }
    if (this.isLoaded()) this.#apply(event);
  }

  #apply(event: TranscriptEvent): void {
    switch (event.type) {
      case "message.updated": {
        const { info } = event.properties;
        const node = this.#messages.get(info.id);
        if (node) node.setInfo(info);
        else this.#insert(info);
        break;
      }
      case "message.removed": {
        const { messageID } = event.properties;
        if (this.#messages.delete(messageID)) this.#setOrder((order) => order.filter((id) => id !== messageID));
        break;
      }
      case "message.part.updated": {
        const { part } = event.properties;
        // A part without a message belongs to one that was removed or is not loaded.
        const node = this.#messages.get(part.messageID);
        if (!node) break;
        this.#joining.delete(part.id);
        const known = node.part(part.id);
        if (known) known.set(part);
        else node.setParts((parts) => insertPart(parts, new PartNode(part)));
        break;
      }
      case "message.part.removed": {
        const { messageID, partID } = event.properties;
        this.#messages.get(messageID)?.setParts((parts) => parts.filter((part) => part.id !== partID));
        break;
      }
      case "message.part.delta": {
        const { messageID, partID, field, delta } = event.properties;
        if (field !== "text") break;
        const waiting = this.#joining.get(partID);
        if (waiting !== undefined) {
          this.#joining.set(partID, waiting + delta);
          break;
        }
        const node = this.#messages.get(messageID)?.part(partID);
        const part = node?.part();
        if (node && part && "text" in part) node.set({ ...part, text: part.text + delta } as Part);
        break;
      }
    }
  }

  #insert(info: Message): void {
    const order = this.order();
    let at = order.length;
    while (at > 0) {
      const before = this.#messages.get(order[at - 1] ?? "")?.info();
      if (!before || isBefore(before, info)) break;
      at -= 1;
    }
    // Older than everything that is loaded: a later page contains it.
    if (at === 0 && order.length > 0 && !this.isComplete()) return;
    this.#messages.set(info.id, new MessageNode(info, []));
    this.#setOrder([...order.slice(0, at), info.id, ...order.slice(at)]);
  }
}

/** Returns whether a part is a text that is still being written. */
function isGrowing(part: Part): boolean {
  return (part.type === "text" || part.type === "reasoning") && part.time?.end === undefined;
}

function insertPart(parts: PartNode[], part: PartNode): PartNode[] {
  let at = parts.length;
  while (at > 0 && (parts[at - 1]?.id ?? "") > part.id) at -= 1;
  return [...parts.slice(0, at), part, ...parts.slice(at)];
}

/** Returns how much of the beginning of `added` the end of `text` already contains. */
export function overlap(text: string, added: string): number {
  for (let length = Math.min(text.length, added.length); length > 0; length -= 1) {
    if (text.endsWith(added.slice(0, length))) return length;
  }
  return 0;
}

/** Joins the deltas of each part, so that a frame changes each part once. The order of other events stays. */
export function coalesce(events: Event[]): Event[] {
  const joined: Event[] = [];
  const last = new Map<string, Of<"message.part.delta">>();
  for (const event of events) {
    if (event.type === "message.part.delta") {
      const { partID, field, delta } = event.properties;
      const key = `${partID} ${field}`;
      const before = last.get(key);
      if (before) {
        before.properties.delta += delta;
        continue;
      }
      const copy = { ...event, properties: { ...event.properties } };
      last.set(key, copy);
      joined.push(copy);
      continue;
    }
    // A complete part replaces what the deltas before it changed.
    if (event.type === "message.part.updated" || event.type === "message.part.removed") last.clear();
    joined.push(event);
  }
  return joined;
}
