// The entry of the app.
import "./ui/css/tokens.css";
import "./ui/css/ui.css";
import "./app/css/shell.css";
import "./app/css/session.css";
import "./app/css/views.css";
import { createSignal, Show } from "solid-js";
import { render } from "solid-js/web";
import { whenUnauthorized } from "./api";
import { base, isOwn } from "./api/server";
import { Shell } from "./app/shell";
import { connect, refuse } from "./state/mirror";
import { followTheme } from "./state/themes";
import { registerWorker } from "./state/version";
import { ServerGate } from "./views/sign-in/sign-in";

/** The servers that the user confirmed in this tab. */
const CONFIRMED = "codewright.server";

function isConfirmed(): boolean {
  try {
    return isOwn || sessionStorage.getItem(CONFIRMED) === base.href;
  } catch {
    return isOwn;
  }
}

function App() {
  followTheme();
  const [isUsed, setUsed] = createSignal(isConfirmed());
  if (isUsed()) connect();
  const use = () => {
    try {
      sessionStorage.setItem(CONFIRMED, base.href);
    } catch {
      // Then a reload asks again.
    }
    setUsed(true);
    connect();
  };
  return <Show when={isUsed()} fallback={<ServerGate onUse={use} />}><Shell /></Show>;
}

whenUnauthorized(refuse);
registerWorker();
const root = document.getElementById("app");
if (root) render(() => <App />, root);
