// The calls of the first view. The page names them, so that the browser sends them while it loads the scripts.

/** The sessions of a page of the list. */
export const PAGE = 100;

/** The queries of the first view, by route. `vite.config.ts` adds them to the page. */
export const FIRST = {
  "GET /experimental/session": { roots: "true", limit: PAGE },
  "GET /project": {},
  "GET /path": {},
  "GET /api/session/active": {},
} as const;
