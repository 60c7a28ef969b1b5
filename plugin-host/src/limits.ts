/** The bounds of the host. The protocol fixes the first three; the server has the same ones. */

/** The longest line of the protocol, in bytes. */
export const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** Requests that may be open in one direction. */
export const MAX_OPEN_REQUESTS = 256;
/** Bytes of a stream that may be on the way before the receiver extends the window. */
export const STREAM_WINDOW_BYTES = 256 * 1024;

/** Requests of plugins that wait for a free place among the open ones. */
export const MAX_WAITING_REQUESTS = 4096;
/** Bytes of one `http.data` or `fetch.data` message before base64. */
export const STREAM_CHUNK_BYTES = 64 * 1024;
/** A request body must fit into one line as base64. */
export const MAX_BODY_BYTES = 11 * 1024 * 1024;
/** Unsent bytes on the socket above which log lines are dropped. */
export const MAX_UNSENT_LOG_BYTES = 4 * 1024 * 1024;

/** Characters of one log line. */
export const MAX_LOG_CHARS = 1000;
/** Log lines of one plugin per second. */
export const MAX_LOG_LINES_PER_SECOND = 200;

/** Events that wait for one plugin. */
export const MAX_QUEUED_EVENTS = 1000;
/** Event handlers of one plugin that run at the same time. */
export const MAX_RUNNING_EVENTS = 64;

/** Sign-ins that wait for their callback, and how long one may wait. */
export const MAX_SIGN_INS = 16;
export const SIGN_IN_LIFETIME_MS = 15 * 60 * 1000;
/** Custom `fetch` functions kept for one plugin. */
export const MAX_FETCH_HANDLES_PER_PLUGIN = 4;

/** Output that a process started with `$` or `Bun.spawnSync` may produce. */
export const MAX_PROCESS_OUTPUT_BYTES = 64 * 1024 * 1024;
/** Results of `$.braces`. */
export const MAX_BRACE_RESULTS = 10_000;

/** Nesting of a value that is sent to the server. */
export const MAX_JSON_DEPTH = 500;
/** Characters of an error message that is sent to the server. */
export const MAX_ERROR_CHARS = 4000;

/** Callbacks that a v2 plugin may have registered at the same time. */
export const MAX_V2_REGISTRATIONS = 100;
/** v2 plugins in one module: itself and those that it adds. */
export const MAX_V2_PLUGINS = 20;

/** Workspace adapters of one plugin. */
export const MAX_WORKSPACE_ADAPTERS = 20;
/** The characters of their type, name and description. */
export const MAX_WORKSPACE_CHARS = 1000;
