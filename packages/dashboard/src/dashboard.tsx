/** The dashboard: who is signed in, and which page is shown. */
import { ApiError, BrowserClient, type NewToken, type Session } from "@hibernaut/client/browser";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isAdmin, type Services, ServicesProvider } from "./data/context.ts";
import { pacedFrames } from "./data/frames.ts";
import { Live } from "./data/live.ts";
import { isUnlimited } from "./data/rights.ts";
import { Store } from "./data/store.ts";
import { count } from "./format.ts";
import { NewTokenValue } from "./pages/host/new-token.tsx";
import { Overview } from "./pages/overview/index.tsx";
import { SignIn } from "./pages/sign-in/index.tsx";
import { Empty, ErrorNote, Loading, Page } from "./parts/basics.tsx";
import { lazyPage } from "./parts/lazy.tsx";
import { Shell } from "./parts/shell.tsx";
import { navigate, useRoute } from "./router.tsx";
import type { Route } from "./routes.ts";

const AppPage = lazyPage("App", () => import("./pages/app/index.tsx"));
const MachinePage = lazyPage("Machine", () => import("./pages/machine/index.tsx"));
const NetworksPage = lazyPage("Networks", () => import("./pages/networks/index.tsx"));
const BackupsPage = lazyPage("Backups", () => import("./pages/backups/index.tsx"));
const HostPage = lazyPage("Host", () => import("./pages/host/index.tsx"));
const TokensPage = lazyPage("Tokens", () => import("./pages/host/tokens.tsx"));
const AuditPage = lazyPage("Audit log", () => import("./pages/host/audit.tsx"));

const UNAUTHENTICATED = 401;
const ENDED = "Your session has ended. Sign in again.";

/** Undefined until it is known; null without one. */
type SessionState = Session | null | undefined;

/** A client that tells when a reply says that nobody is signed in. */
function watchedClient(onUnauthenticated: () => void): BrowserClient {
  return new BrowserClient({
    origin: location.origin,
    fetch: async (...request) => {
      const reply = await fetch(...request);
      if (reply.status === UNAUTHENTICATED) onUnauthenticated();
      return reply;
    },
  });
}

/** The whole page. */
export function Dashboard() {
  // Outside of the session: someone who rotates the token that it ends with still has to see the new one.
  const [made, setMade] = useState<NewToken>();
  return (
    <>
      <Sessions showToken={setMade} />
      {made !== undefined && <NewTokenValue key={made.id} token={made} onClose={() => setMade(undefined)} />}
    </>
  );
}

/** Someone's pages, or the page to sign in. */
function Sessions({ showToken }: Pick<Services, "showToken">) {
  const [session, setSession] = useState<SessionState>();
  const leave = (why?: string) => {
    setNotice(why);
    setSession(null);
  };
  // The session can end at any request: it was too long without use, or its token was revoked.
  const ended = useRef(() => {});
  ended.current = () => {
    if (session) leave(ENDED);
  };
  const api = useMemo(() => watchedClient(() => ended.current()), []);
  const [error, setError] = useState<unknown>();
  const [turn, setTurn] = useState(0);
  const [notice, setNotice] = useState<string>();
  const route = useRoute();
  useEffect(() => {
    setError(undefined);
    api.getSession().then(setSession, (cause: unknown) => {
      if (cause instanceof ApiError && cause.code === "unauthenticated") setSession(null);
      else setError(cause);
    });
  }, [turn]);
  if (session === undefined)
    return (
      <main class="sign-in" id="main">
        {error === undefined ? (
          <Loading what="the dashboard" />
        ) : (
          <Page title="Hibernaut">
            <ErrorNote error={error} onRetry={() => setTurn(turn + 1)} />
          </Page>
        )}
      </main>
    );
  if (session === null)
    return (
      <SignIn
        api={api}
        notice={notice}
        onSignedIn={(signedIn) => {
          // Someone who was sent here from another page returns to it: its address has stayed.
          if (route.page === "sign-in") navigate({ page: "overview" }, { replace: true });
          setNotice(undefined);
          setSession(signedIn);
        }}
      />
    );
  return (
    <SignedIn
      key={session.token.id}
      api={api}
      session={session}
      route={route}
      showToken={showToken}
      onSignedOut={leave}
    />
  );
}

interface SignedInProps {
  api: BrowserClient;
  session: Session;
  route: Route;
  showToken: Services["showToken"];
  onSignedOut(why?: string): void;
}

function SignedIn({ api, session, route, showToken, onSignedOut }: SignedInProps) {
  const services = useMemo<Services>(
    () => ({
      api,
      session,
      store: new Store(pacedFrames(requestAnimationFrame, setTimeout, () => performance.now())),
      signOut: async () => {
        await api.endSession();
        onSignedOut();
      },
      showToken,
    }),
    [],
  );
  useEffect(() => {
    const live = new Live({ api, store: services.store, window, document, onSignedOut: () => onSignedOut(ENDED) });
    live.start();
    return () => live.stop();
  }, []);
  return (
    <ServicesProvider value={services}>
      <Shell route={route}>
        <CurrentPage route={route} session={session} />
      </Shell>
    </ServicesProvider>
  );
}

function CurrentPage({ route, session }: { route: Route; session: Session }) {
  switch (route.page) {
    case "sign-in":
    case "overview":
      return <Overview />;
    case "app":
      return <AppPage key={route.app} app={route.app} />;
    case "machine":
      return <MachinePage key={route.machine} app={route.app} machine={route.machine} />;
    case "missing":
      return (
        <Page title="Page not found">
          <Empty title="There is nothing at this address.">The navigation has every page.</Empty>
        </Page>
      );
    case "networks":
      return <NetworksPage />;
    case "backups":
      return isUnlimited(session) ? <BackupsPage /> : <NotAllowed needs="a token for all apps" session={session} />;
    case "host":
    case "tokens":
    case "audit":
      if (!isAdmin(session)) return <NotAllowed needs="a token with the scope admin for all apps" session={session} />;
      if (route.page === "host") return <HostPage />;
      return route.page === "tokens" ? <TokensPage /> : <AuditPage />;
  }
}

function NotAllowed({ needs, session }: { needs: string; session: Session }) {
  const { token, scopes, apps } = session;
  return (
    <Page title="Not allowed">
      <Empty title={`This page needs ${needs}.`}>
        You are signed in as {token.name}, with {scopes.join(", ")}
        {apps !== null && `, for ${count(apps.length, "app")}`}.
      </Empty>
    </Page>
  );
}
