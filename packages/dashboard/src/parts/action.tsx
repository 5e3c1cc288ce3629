/** Buttons that do something on the platform. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ReasonedButton } from "./reasoned-button.tsx";

/** Something that is done when a user asks for it. */
export interface Action {
  busy: boolean;
  /** Why it failed the last time. */
  error: unknown;
  /** Does it, unless something is being done already. */
  run(work: () => Promise<unknown>): void;
  /** Forgets the error. */
  clear(): void;
}

/** Does one thing at a time, and keeps the error of the last one. */
export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const there = useRef(true);
  useEffect(() => {
    there.current = true;
    return () => {
      there.current = false;
    };
  }, []);
  const run = (work: () => Promise<unknown>) => {
    if (busy) return;
    setBusy(true);
    setError(undefined);
    work()
      .catch((cause: unknown) => there.current && setError(cause))
      .finally(() => there.current && setBusy(false));
  };
  return { busy, error, run, clear: () => setError(undefined) };
}

interface ActionButtonProps {
  onClick(): void;
  /** Why it is not possible. The button stays in the order of the keyboard, so that everyone finds the reason. */
  refusal?: string | undefined;
  busy?: boolean;
  class?: string;
  label?: string;
  children: ComponentChildren;
}

/** A button that does something, and says why when it cannot. */
export function ActionButton(props: ActionButtonProps) {
  return <ReasonedButton {...props} />;
}
