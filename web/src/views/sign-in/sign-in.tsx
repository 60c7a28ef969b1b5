// The page that asks for the password of a server.
import { createSignal, Show, type JSX } from "solid-js";
import { Logo } from "../../app/sidebar";
import { base, isOwn, signIn } from "../../api/server";
import { connect } from "../../state/mirror";
import { t } from "../../text";
import { Button } from "../../ui/button";

/** The user name of a server with one user. */
const DEFAULT_USER = "opencode";

export function SignIn(): JSX.Element {
  const [username, setUsername] = createSignal(DEFAULT_USER);
  const [password, setPassword] = createSignal("");
  const [isVisible, setVisible] = createSignal(false);
  const [problem, setProblem] = createSignal("");
  const [isTrying, setTrying] = createSignal(false);
  let field!: HTMLInputElement;
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (!password()) {
      setProblem(t.passwordMissing);
      field.focus();
      return;
    }
    setTrying(true);
    setProblem("");
    try {
      const { status, waitSeconds } = await signIn({ username: username().trim(), password: password() });
      if (status === 200) {
        setPassword("");
        void connect();
        return;
      }
      setProblem(
        status === 401 ? t.passwordWrong : status === 429 ? t.tooManyAttempts(waitSeconds) : t.failedWith(status),
      );
      field.select();
    } catch {
      setProblem(t.unreachable);
    } finally {
      setTrying(false);
    }
  };
  return (
    <main class="gate">
      <form class="gate-box" onSubmit={(event) => void submit(event)}>
        <Logo />
        <h1>{t.signInTo(base.host)}</h1>
        <p class="muted">{t.signInWhy}</p>
        <label class="column">
          <span>{t.password}</span>
          <input
            ref={field}
            class="field"
            type={isVisible() ? "text" : "password"}
            name="password"
            autocomplete="current-password"
            autofocus
            autocapitalize="off"
            spellcheck={false}
            aria-invalid={problem() !== ""}
            aria-describedby={problem() ? "sign-in-problem" : undefined}
            value={password()}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
        </label>
        <label class="choice">
          <input type="checkbox" checked={isVisible()} onChange={(event) => setVisible(event.currentTarget.checked)} />
          <span>{t.showPassword}</span>
        </label>
        <label class="column">
          <span>{t.username}</span>
          <input
            class="field"
            name="username"
            autocomplete="username"
            autocapitalize="off"
            spellcheck={false}
            value={username()}
            onInput={(event) => setUsername(event.currentTarget.value)}
          />
          <small class="muted">{t.usernameHint(DEFAULT_USER)}</small>
        </label>
        <Show when={problem()}>
          <p class="notice bad" id="sign-in-problem" role="alert">
            {problem()}
          </p>
        </Show>
        <Button type="submit" kind="primary" disabled={isTrying()}>
          {isTrying() ? t.signingIn : t.signIn}
        </Button>
        <p class="muted">{isOwn ? t.signInHint : t.signInHintForeign}</p>
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
          <Button kind="primary" onClick={() => props.onUse()}>
            {t.useServer}
          </Button>
          <Button onClick={() => location.assign(location.pathname)}>{t.useOwn}</Button>
        </div>
      </div>
    </main>
  );
}
