// The API of the server.
export * from "./client";
export type * from "./types.gen";
