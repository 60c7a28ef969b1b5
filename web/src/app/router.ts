// The address of a view is in the fragment, so the app works below any path and behind any proxy.
import { createSignal } from "solid-js";

export type Panel = "changes" | "files" | "terminal" | "tasks" | "status" | "context";
/** The panels, in the order of their tabs. */
export const PANELS: readonly Panel[] = ["changes", "files", "terminal", "tasks", "status", "context"];

export type Route =
  | { name: "home" }
  | { name: "new"; directory: string }
  | { name: "session"; id: string; panel: Panel | null; message: string | null }
  | { name: "settings"; page: string }
  | { name: "shortcuts" }
  | { name: "gallery" };

/** Returns the view of a fragment. An unknown one is home. */
export function parse(fragment: string): Route {
  const [path = "", query = ""] = fragment.replace(/^#?\/?/, "").split("?", 2);
  const parts = path.split("/").map(decode);
  const values = new URLSearchParams(query);
  switch (parts[0]) {
    case "session": {
      if (!/^ses\w*$/.test(parts[1] ?? "")) return { name: "home" };
      const panel = PANELS.find((one) => one === values.get("panel")) ?? null;
      return { name: "session", id: parts[1] ?? "", panel, message: values.get("message") };
    }
    case "new":
      return { name: "new", directory: values.get("directory") ?? "" };
    case "settings":
      return { name: "settings", page: parts[1] ?? "" };
    case "shortcuts":
      return { name: "shortcuts" };
    case "gallery":
      return { name: "gallery" };
    default:
      return { name: "home" };
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** Returns the fragment of a view. */
export function format(route: Route): string {
  switch (route.name) {
    case "home":
      return "#/";
    case "new":
      return route.directory ? `#/new?directory=${encodeURIComponent(route.directory)}` : "#/new";
    case "session": {
      const values = new URLSearchParams();
      if (route.panel) values.set("panel", route.panel);
      if (route.message) values.set("message", route.message);
      return `#/session/${encodeURIComponent(route.id)}${values.size > 0 ? `?${values}` : ""}`;
    }
    case "settings":
      return `#/settings${route.page ? `/${route.page}` : ""}`;
    case "shortcuts":
      return "#/shortcuts";
    case "gallery":
      return "#/gallery";
  }
}

const [route, setRoute] = createSignal<Route>(parse(location.hash), { equals: (a, b) => format(a) === format(b) });
export { route };

addEventListener("hashchange", () => setRoute(parse(location.hash)));

/** Opens a view. */
export function go(next: Route): void {
  location.hash = format(next);
  setRoute(next);
}

/** Opens a view instead of the current one. */
export function replace(next: Route): void {
  history.replaceState(null, "", `${location.pathname}${location.search}${format(next)}`);
  setRoute(next);
}

export function openSession(id: string, message: string | null = null): void {
  const now = route();
  go({ name: "session", id, panel: now.name === "session" ? now.panel : null, message });
}

/** Opens a panel next to the session, or closes it. */
export function showPanel(panel: Panel | null): void {
  const now = route();
  if (now.name === "session") replace({ ...now, panel });
}
