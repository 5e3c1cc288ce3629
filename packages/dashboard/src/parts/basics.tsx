/** Small parts of pages: headings, errors, empty states, buttons. */
import { ApiError } from "@hibernaut/client/browser";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { hasNavigated } from "../router.tsx";

interface PageProps {
  /** The heading, and the window's title. */
  title: string;
  /** Shown next to the heading. */
  aside?: ComponentChildren;
  /** Shown above the heading, such as a link to what it belongs to. */
  above?: ComponentChildren;
  children: ComponentChildren;
}

/** A page. After a navigation, its heading has the focus, so that screen readers read it. */
export function Page({ title, aside, above, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Hibernaut`;
  }, [title]);
  // Before anyone can see the page: someone who is fast would lose the focus that they have set.
  useLayoutEffect(() => {
    if (hasNavigated()) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div class="page">
      {above}
      <header class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {aside}
      </header>
      {children}
    </div>
  );
}

interface SectionProps {
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
  /** Without a frame around it. */
  plain?: boolean;
}

let sections = 0;

/** A part of a page with a heading of its own. */
export function Section({ title, aside, children, plain = false }: SectionProps) {
  const [id] = useState(() => `section-${++sections}`);
  return (
    <section class={plain ? "section" : "section panel"} aria-labelledby={id}>
      <header class="section-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** A sentence of the platform. What it has in backticks is code. */
export function Words({ text }: { text: string }) {
  return (
    <>{text.split(/`([^`]+)`/).map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))}</>
  );
}

/** An error in the API's words: what happened, why, and what to do next. */
export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }) {
  if (error === undefined || error === null) return null;
  const message = error instanceof Error ? error.message : "Something failed for an unknown reason.";
  const { code, requestId } = error instanceof ApiError ? error : { code: "", requestId: "" };
  return (
    <div class="note note-error" role="alert">
      <p>
        <Words text={message} />
      </p>
      {(code !== "" || onRetry !== undefined) && (
        <p class="note-foot line muted">
          {code !== "" && <code>{code}</code>}
          {requestId !== "" && (
            <span>
              request <code>{requestId}</code>
            </span>
          )}
          {onRetry !== undefined && (
            <button type="button" class="button small" onClick={onRetry}>
              Try again
            </button>
          )}
        </p>
      )}
    </div>
  );
}

/** What is shown where nothing is yet, with the first command. */
export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children !== undefined && <p>{children}</p>}
      {command !== undefined && <Command text={command} />}
    </div>
  );
}

/** A link to an address of an app, if browsers can open it. */
export function AppAddress({ url }: { url: string }) {
  if (!/^https?:/.test(url)) return null;
  return (
    <a class="app-url" href={url} target="_blank" rel="noreferrer">
      {url.replace(/^https?:\/\//, "").replace(/\/$/, "")}
    </a>
  );
}

/** A command to copy. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <CopyButton text={text} what="command" />
    </div>
  );
}

/** How long "Copied" is shown, in milliseconds. */
const COPIED_MS = 2_000;

/** Copies a text. Where the browser refuses, as it does without TLS, the text can still be selected. */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const [outcome, setOutcome] = useState<"copied" | "refused">();
  useEffect(() => {
    if (outcome === undefined) return undefined;
    const timer = setTimeout(() => setOutcome(undefined), COPIED_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = () => {
    const { clipboard } = navigator as { clipboard?: Clipboard };
    if (clipboard === undefined) return setOutcome("refused");
    clipboard.writeText(text).then(
      () => setOutcome("copied"),
      () => setOutcome("refused"),
    );
  };
  return (
    <button type="button" class="button small quiet" onClick={copy} aria-label={`Copy the ${what}`}>
      <span aria-live="polite">{{ copied: "Copied", refused: "Select it" }[outcome as string] ?? "Copy"}</span>
    </button>
  );
}

/** Gray lines while something is read. */
export function Loading({ lines = 3, what }: { lines?: number; what: string }) {
  return (
    <div class="loading" role="status">
      <span class="hidden">Loading {what}</span>
      {Array.from({ length: lines }, (_one, index) => (
        <span key={index} class="loading-line" aria-hidden="true" />
      ))}
    </div>
  );
}

/** What may be wider than the page. The keyboard can scroll it. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- without it, the keyboard cannot scroll
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}

/** What is shown instead of an amount of money. */
export function NoPrices({ label }: { label: string }) {
  return (
    <Figure
      label={label}
      value="–"
      note={
        <>
          Name a file with prices in <code>HIBERNAUT_PRICE_FILE</code>.
        </>
      }
    />
  );
}

/** A number with what it is. */
export function Figure({ label, value, note }: { label: string; value: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>
        <span class="figure-value">{value}</span>
        {note !== undefined && <span class="figure-note">{note}</span>}
      </dd>
    </div>
  );
}
