/** How states of machines look: by color, shape and word. */
import type { Machine } from "@hibernaut/client/browser";
import { stateLabel, type Tone, toneOf } from "../data/tone.ts";

/** The shape of a state, for people who do not see its color. */
export function StateShape({ tone, color = tone }: { tone: Tone; color?: Tone }) {
  return (
    <svg
      class="shape"
      style={{ color: `var(--${color})` }}
      viewBox="0 0 12 12"
      width="12"
      height="12"
      aria-hidden="true"
    >
      {SHAPES[tone]}
    </svg>
  );
}

const SHAPES: Readonly<Record<Tone, preact.JSX.Element>> = {
  running: <circle cx="6" cy="6" r="5" fill="currentColor" />,
  warm: (
    <>
      <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="2" />
      <circle cx="6" cy="6" r="1.5" fill="currentColor" />
    </>
  ),
  suspended: <path d="M10.5 7.500A5 5 0 1 1 4.5 1.500a4.2 4.2 0 0 0 6 6z" fill="currentColor" />,
  stopped: <rect x="2" y="2" width="8" height="8" rx="1.5" fill="none" stroke="currentColor" stroke-width="1.8" />,
  failed: <path d="M2 2l8 8M10 2l-8 8" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" />,
  busy: <circle cx="6" cy="6" r="4.5" fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="18 10" />,
};

/** A machine's state as a shape and a word. */
export function StateBadge({ machine }: { machine: Pick<Machine, "state" | "snapshot" | "host_state"> }) {
  const tone = toneOf(machine);
  return (
    <span class="badge" style={{ color: `var(--${tone === "stopped" ? "muted" : tone})` }}>
      <StateShape tone={tone} />
      {stateLabel(machine)}
    </span>
  );
}
