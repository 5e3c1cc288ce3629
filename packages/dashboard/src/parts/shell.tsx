/** What is around every page: navigation, theme, the session, and what is wrong with the connection. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isAdmin, useNow, useServices, useStore } from "../data/context.ts";
import { isUnlimited } from "../data/rights.ts";
import { TOPIC } from "../data/store.ts";
import { duration } from "../format.ts";
import { Link } from "../router.tsx";
import { pathOf, type Route } from "../routes.ts";
import { chooseTheme, chosenTheme, THEMES, type Theme } from "../theme.ts";
import { useAction } from "./action.tsx";

/** Shows a page in its frame. */
export function Shell({ route, children }: { route: Route; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [pathOf(route)]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <div class="shell">
        <header class="top">
          <Brand />
          <button
            type="button"
            class="button small"
            aria-expanded={open}
            aria-controls="navigation"
            onClick={() => setOpen(!open)}
          >
            Menu
          </button>
        </header>
        <nav id="navigation" class={open ? "nav open" : "nav"} aria-label="Main">
          <Brand />
          <Navigation route={route} />
          <div class="stack">
            <ThemeChoice />
            <SignedIn />
          </div>
        </nav>
        <main id="main" class="main" tabIndex={-1}>
          <LinkBanner />
          {children}
        </main>
      </div>
    </>
  );
}

function Brand() {
  return (
    <Link to={{ page: "overview" }} class="brand">
      <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
        <path
          d="M21.5 19.500A8.5 8.5 0 0 1 12.2 8.300a8.5 8.5 0 1 0 11.4 9.9 8.5 8.5 0 0 1-2.1 1.300z"
          fill="currentColor"
        />
      </svg>
      Hibernaut
    </Link>
  );
}

function Navigation({ route }: { route: Route }) {
  const { session } = useServices();
  const apps = useStore(TOPIC.world, (store) => [...store.apps.keys()].sort());
  const item = (to: Route, label: string) => (
    <li>
      <Link to={to} class="nav-item" aria-current={pathOf(to) === pathOf(route) ? "page" : undefined}>
        {label}
      </Link>
    </li>
  );
  const active = route.page === "machine" ? pathOf({ page: "app", app: route.app }) : pathOf(route);
  return (
    <div class="nav-lists">
      <ul>
        {item({ page: "overview" }, "Overview")}
        {item({ page: "networks" }, "Networks")}
        {isUnlimited(session) && item({ page: "backups" }, "Backups")}
        {isAdmin(session) && item({ page: "host" }, "Host")}
        {isAdmin(session) && item({ page: "tokens" }, "Tokens")}
        {isAdmin(session) && item({ page: "audit" }, "Audit log")}
      </ul>
      {apps.length > 0 && (
        <>
          <h2 class="nav-title" id="nav-apps">
            Apps
          </h2>
          <ul class="nav-apps" aria-labelledby="nav-apps">
            {apps.map((app) => {
              const to: Route = { page: "app", app };
              return (
                <li key={app}>
                  <Link to={to} class="nav-item" aria-current={pathOf(to) === active ? "page" : undefined}>
                    {app}
                  </Link>
                </li>
              );
            })}
          </ul>
        </>
      )}
    </div>
  );
}

const THEME_NAMES: Readonly<Record<Theme, string>> = { system: "System", light: "Light", dark: "Dark" };

/** Which colors the page has. */
export function ThemeChoice() {
  const [theme, setTheme] = useState(chosenTheme);
  return (
    <fieldset class="segments">
      <legend class="hidden">Colors</legend>
      {THEMES.map((name) => (
        <label key={name}>
          <input
            type="radio"
            name="theme"
            checked={theme === name}
            onChange={() => {
              chooseTheme(name);
              setTheme(name);
            }}
          />
          <span>{THEME_NAMES[name]}</span>
        </label>
      ))}
    </fieldset>
  );
}

function SignedIn() {
  const { session, signOut } = useServices();
  const { error, run } = useAction();
  return (
    <div class="signed-in">
      <span class="signed-in-name" title={`Token ${session.token.id}`}>
        {session.token.name}
        <span class="muted"> · {session.scopes.join(", ")}</span>
      </span>
      <button type="button" class="button small quiet" onClick={() => run(signOut)}>
        Sign out
      </button>
      {error !== undefined && <p role="alert">{error instanceof Error ? error.message : String(error)}</p>}
    </div>
  );
}

/** Says that what the page shows is old. */
function LinkBanner() {
  const link = useStore(TOPIC.link, (store) => store.link);
  // A live region is read when it changes, so it is always there.
  return (
    <div role="status" class="banner-place">
      {link.state === "lost" && (
        <div class="banner">
          <strong>Connection lost.</strong> {link.error?.message ?? "The platform does not answer."} What you see is{" "}
          <Old since={link.since} /> old. Connecting again…
        </div>
      )}
    </div>
  );
}

const ONE_SECOND_MS = 1_000;

/** Not read aloud: it changes every second. */
function Old({ since }: { since: number }) {
  useNow(ONE_SECOND_MS);
  return <span aria-live="off">{duration(Math.max(ONE_SECOND_MS, Date.now() - since))}</span>;
}
