// The entry of the app.
import "./ui/css/tokens.css";
import "./ui/css/ui.css";
import "./app/css/shell.css";
import "./app/css/session.css";
import "./app/css/views.css";
// The last one, because it changes the sizes of all others.
import "./app/css/touch.css";
import { createSignal, Show } from "solid-js";
import { render } from "solid-js/web";
import { whenUnauthorized } from "./api";
import { base, isOwn } from "./api/server";
import { route } from "./app/router";
import { Shell } from "./app/shell";
import { connect, refuse } from "./state/mirror";
import { followTheme } from "./state/themes";
import { registerWorker } from "./state/version";
import { afterFirstView, firstViewExists } from "./ui/idle";
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

/** The longest wait for the lists before the frame is drawn without them. They are usually there before the scripts. */
const LISTS_MS = 100;

function App() {
  followTheme();
  const [isUsed, setUsed] = createSignal(isConfirmed());
  const use = () => {
    try {
      sessionStorage.setItem(CONFIRMED, base.href);
    } catch {
      // Then a reload asks again.
    }
    setUsed(true);
    void connect();
  };
  return (
    <Show when={isUsed()} fallback={<ServerGate onUse={use} />}>
      <Shell />
    </Show>
  );
}

async function start(root: HTMLElement): Promise<void> {
  whenUnauthorized(refuse);
  if (isConfirmed()) {
    const listed = connect();
    // One frame with all instead of an empty one and one that changes it: the first layout of a page is the most
    // expensive.
    if (route().name === "home") await Promise.race([listed, new Promise((resolve) => setTimeout(resolve, LISTS_MS))]);
  }
  render(() => <App />, root);
  firstViewExists();
  afterFirstView(registerWorker);
}

const root = document.getElementById("app");
if (root) void start(root);
