/** Buttons that do something on the platform, and say why when they cannot. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Something that is done when a user asks for it. */
interface Action {
  busy: boolean;
  /** Why it failed the last time. */
  error: unknown;
  /** Does it, unless something is being done already. */
  run(work: () => Promise<unknown>): void;
}

/** Does one thing at a time, and keeps the error of the last one. */
export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const run = (work: () => Promise<unknown>) => {
    if (busy) return;
    setBusy(true);
    setError(undefined);
    work()
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return { busy, error, run };
}

/** Between the reason and the edge of the window, in pixels. */
const MARGIN_PX = 8;
/** Between the reason and its button, in pixels. */
const GAP_PX = 4;

interface ActionButtonProps {
  type?: "button" | "submit";
  /** What a click does. A button that submits leaves it to its form. */
  onClick?(): void;
  /** Why it is not possible. The button stays in the order of the keyboard, so that everyone finds the reason. */
  refusal?: string | undefined;
  busy?: boolean;
  class?: string;
  label?: string | undefined;
  children: ComponentChildren;
}

/**
 * Shows the reason when the mouse or the keyboard is on the button, or when it is tapped. Screen readers read it as the
 * button's description. Escape hides it.
 */
export function ActionButton({
  type = "button",
  onClick,
  refusal,
  busy = false,
  class: kind = "",
  label,
  children,
}: ActionButtonProps) {
  const id = useId();
  const [isShown, setShown] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const disabled = refusal !== undefined || busy;
  return (
    <span class="reasoned">
      <button
        ref={button}
        type={type}
        class={`button ${kind}`}
        aria-disabled={disabled}
        aria-label={label}
        aria-describedby={refusal === undefined ? undefined : id}
        onClick={(event) => {
          if (refusal !== undefined) setShown(true);
          if (disabled) event.preventDefault();
          else onClick?.();
        }}
        onMouseEnter={() => setShown(true)}
        onMouseLeave={() => setShown(false)}
        onFocus={(event) => setShown(event.currentTarget.matches(":focus-visible"))}
        onBlur={() => setShown(false)}
        onKeyDown={(event) => {
          if (event.key === "Escape") setShown(false);
        }}
      >
        {children}
      </button>
      {refusal !== undefined && (
        <Reason id={id} text={refusal} isShown={isShown} of={() => button.current} onHide={() => setShown(false)} />
      )}
    </span>
  );
}

interface ReasonProps {
  id: string;
  text: string;
  isShown: boolean;
  of(): HTMLElement | null;
  onHide(): void;
}

function Reason({ id, text, isShown, of, onHide }: ReasonProps) {
  const element = useRef<HTMLSpanElement>(null);
  // Placed in the window, because a table or a dialog that scrolls would cut it.
  useLayoutEffect(() => {
    const [place, tip] = [of()?.getBoundingClientRect(), element.current];
    if (!isShown || place === undefined || tip === null) return;
    const { width, height } = tip.getBoundingClientRect();
    const below = place.bottom + GAP_PX;
    const fits = below + height + MARGIN_PX <= innerHeight;
    tip.style.left = `${Math.max(MARGIN_PX, Math.min(place.left, innerWidth - width - MARGIN_PX))}px`;
    tip.style.top = `${fits ? below : place.top - GAP_PX - height}px`;
  }, [isShown, text]);
  useEffect(() => {
    if (!isShown) return undefined;
    addEventListener("scroll", onHide, { capture: true });
    return () => removeEventListener("scroll", onHide, { capture: true });
  }, [isShown]);
  return (
    <span ref={element} id={id} class="reason" role="tooltip" hidden={!isShown}>
      {text}
    </span>
  );
}
