/** Where a token becomes a session. The token itself is not kept. */

import type { BrowserClient, Session } from "@hibernaut/client/browser";
import { useEffect, useRef } from "preact/hooks";
import { useAction } from "../../parts/action.tsx";
import { Command, ErrorNote, Page } from "../../parts/basics.tsx";
import { ThemeChoice } from "../../parts/shell.tsx";

interface SignInProps {
  api: BrowserClient;
  /** Why there is no session, if it is not the first visit. */
  notice?: string | undefined;
  onSignedIn(session: Session): void;
}

/** The page of someone without a session. */
export function SignIn({ api, notice, onSignedIn }: SignInProps) {
  const input = useRef<HTMLInputElement>(null);
  const { busy, error, run } = useAction();
  useEffect(() => {
    if (error !== undefined) input.current?.focus();
  }, [error]);
  const submit = (event: Event) => {
    event.preventDefault();
    const field = input.current;
    if (field === null) return;
    run(async () => {
      const session = await api.startSession(field.value.trim());
      field.value = "";
      onSignedIn(session);
    });
  };
  return (
    <main class="sign-in" id="main">
      <Page title="Sign in to Hibernaut">
        {notice !== undefined && (
          <p class="note" role="status">
            {notice}
          </p>
        )}
        <form class="panel form" onSubmit={submit}>
          <label class="field">
            <span>Token</span>
            <input
              ref={input}
              type="password"
              name="token"
              autocomplete="current-password"
              autocapitalize="off"
              spellcheck={false}
              placeholder="hib_…"
              required
              // oxlint-disable-next-line jsx-a11y/no-autofocus -- the page has nothing else to do
              autofocus
              aria-describedby="token-help"
            />
          </label>
          <button type="submit" class="button primary" aria-disabled={busy}>
            {busy ? "Signing in…" : "Sign in"}
          </button>
          <ErrorNote error={error} />
        </form>
        <div id="token-help" class="muted stack">
          <p>A token authenticates you, as in the CLI. The dashboard may do what the token may. Make one:</p>
          <Command text="hibernaut tokens create dashboard" />
          <p>
            The platform's first token is <code>api_token</code> in <code>config.json</code> in its data directory.
          </p>
        </div>
        <ThemeChoice />
      </Page>
    </main>
  );
}
