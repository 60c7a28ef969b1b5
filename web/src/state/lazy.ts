// A value of the server that is fetched when it is first needed.
import { createSignal } from "solid-js";
import { afterFirstView } from "../ui/idle";

/** A value that is fetched when it is first read. */
export interface Lazy<T> {
  (): T | undefined;
  refresh: () => Promise<void>;
  /** Returns the value, and waits for it if it has not been fetched. */
  load: () => Promise<T | undefined>;
  set: (value: T) => void;
  /** Why the last fetch failed. */
  error: () => string;
  /** Fetches again if the value has been read and its last request was before a time. */
  touch: (before?: number) => void;
}

export function lazy<T>(fetch: () => Promise<T>): Lazy<T> {
  const [value, setValue] = createSignal<T | undefined>(undefined);
  const [error, setError] = createSignal("");
  let isRead = false;
  let mine = 0;
  let requested = 0;
  let latest: Promise<void> = Promise.resolve();
  const fetched = async (ticket: number) => {
    try {
      const found = await fetch();
      if (ticket !== mine) return;
      setValue(() => found);
      setError("");
    } catch (failure) {
      if (ticket === mine) setError(failure instanceof Error ? failure.message : String(failure));
    }
  };
  const refresh = (): Promise<void> => {
    isRead = true;
    requested = performance.now();
    mine += 1;
    const own: Promise<void> = fetched(mine).then(() => {
      // The caller wants the new value, which a later request brings.
      if (latest !== own) return latest;
    });
    latest = own;
    return own;
  };
  const read = () => {
    if (!isRead) {
      isRead = true;
      afterFirstView(() => {
        // Something else may have fetched or set it meanwhile.
        if (mine === 0) void refresh();
      });
    }
    return value();
  };
  return Object.assign(read, {
    refresh,
    load: async () => {
      if (value() === undefined) await refresh();
      return value();
    },
    error,
    set: (next: T) => {
      isRead = true;
      mine += 1;
      setValue(() => next);
    },
    touch: (before = Infinity) => {
      if (isRead && requested < before) void refresh();
    },
  });
}
