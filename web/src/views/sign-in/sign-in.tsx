// The page that asks for the password of a server.
import { createSignal, Show, type JSX } from "solid-js";
import { Logo } from "../../app/sidebar";
import { access, base, setCredentials } from "../../api/server";
import { address } from "../../api";
import { connect } from "../../state/mirror";
import { t } from "../../text";
import { Button } from "../../ui/button";

export function SignIn(): JSX.Element {
  const [username, setUsername] = createSignal("opencode");
  const [password, setPassword] = createSignal("");
  const [problem, setProblem] = createSignal("");
  const [isTrying, setTrying] = createSignal(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setTrying(true);
    setProblem("");
    setCredentials({ username: username(), password: password() });
    try {
      const { headers, credentials } = access();
      const response = await fetch(address("GET /global/health"), { headers, credentials, signal: AbortSignal.timeout(15_000) });
      if (response.ok) {
        void connect();
        return;
      }
      setProblem(response.status === 401 ? t.passwordWrong : t.failedWith(response.status));
    } catch {
      setProblem(t.unreachable);
    } finally {
      setTrying(false);
    }
    setCredentials(null);
  };
  return (
    <main class="gate">
      <form class="gate-box" onSubmit={(event) => void submit(event)}>
        <Logo />
        <h1>{t.signInTo(base.host)}</h1>
        <label class="column"><span>{t.username}</span><input class="field" autocomplete="username" value={username()} onInput={(event) => setUsername(event.currentTarget.value)} /></label>
        <label class="column"><span>{t.password}</span><input class="field" type="password" autocomplete="current-password" autofocus value={password()} onInput={(event) => setPassword(event.currentTarget.value)} /></label>
        <Show when={problem()}><p class="notice bad" role="alert">{problem()}</p></Show>
        <Button type="submit" kind="primary" disabled={isTrying()}>{t.signIn}</Button>
        <p class="muted">{t.signInHint}</p>
      </form>
    </main>
  );
}

/** Asks before the app uses a server that the page's address names, because anybody can write such a link. */
export function ServerGate(props: { onUse: () => void }): JSX.Element {
  return (
    <main class="gate">
      <div class="gate-box">
        <Logo />
        <h1>{t.unconfirmedServer(base.host)}</h1>
        <p>{t.unconfirmedHint}</p>
        <div class="row wrap">
          <Button kind="primary" onClick={() => props.onUse()}>{t.useServer}</Button>
          <Button onClick={() => location.assign(location.pathname)}>{t.useOwn}</Button>
        </div>
      </div>
    </main>
  );
}
