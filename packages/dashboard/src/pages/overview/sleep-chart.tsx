/** The sleep chart: what each machine did in the last 24 hours. */
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { useNow } from "../../data/context.ts";
import { CHART_HOURS, CHART_MS } from "../../data/store.ts";
import type { SpanState } from "../../data/track.ts";
import { count } from "../../format.ts";
import { Empty, Section } from "../../parts/basics.tsx";
import { Strip } from "./strip.tsx";
import { type Area, hoursIn, STATE_HEIGHT, STRIP_HEIGHT, xOf } from "./strip-layout.ts";
import { Tip } from "./tip.ts";

/** A pixel is more than a minute. */
const TICK_MS = 30_000;
/** Rows at first. A chart of hundreds is long, and few look for all of them. */
const FIRST_ROWS = 40;
/** Where there is no room for a label every 3 hours, in pixels. */
const NARROW = 480;
const STATES: readonly SpanState[] = ["running", "warm", "suspended", "stopped", "failed"];

/** Shows a strip for each machine, in this order. */
export function SleepChart({ ids }: { ids: readonly string[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? ids : ids.slice(0, FIRST_ROWS);
  return (
    <Section title="Sleep chart" aside={ids.length > 0 && <Legend />}>
      {ids.length === 0 ? <Empty title="No machine to show." /> : <Chart ids={shown} />}
      {shown.length < ids.length && (
        <button type="button" class="button small" onClick={() => setAll(true)}>
          Show all {count(ids.length, "machine")}
        </button>
      )}
    </Section>
  );
}

function Chart({ ids }: { ids: readonly string[] }) {
  const until = useNow(TICK_MS);
  const scale = useRef<HTMLDivElement>(null);
  const width = useWidth(scale);
  const tip = useMemo(() => new Tip(), []);
  const area: Area = { from: until - CHART_MS, until, width };
  return (
    <div class="chart">
      <Patterns />
      <div class="chart-axis" aria-hidden="true">
        <span class="strip-name">Last {CHART_HOURS} hours</span>
        <div class="chart-scale" ref={scale}>
          {width > 0 &&
            hoursIn(area, width < NARROW ? 6 : 3).map((at) => (
              <span key={at} class="chart-hour" style={{ left: `${xOf(at, area)}px` }}>
                {new Date(at).getHours()}:00
              </span>
            ))}
        </div>
        <span class="strip-share">asleep</span>
      </div>
      <ul class="strips" aria-label={`States and wakes of the last ${CHART_HOURS} hours`}>
        {width > 0 && ids.map((id) => <Strip key={id} id={id} area={area} tip={tip} />)}
      </ul>
      <TipLayer tip={tip} width={width} />
    </div>
  );
}

/** The present width of an element in pixels; 0 until it is known. */
function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.floor(current.clientWidth)));
    observer.observe(current);
    setWidth(Math.floor(current.clientWidth));
    return () => observer.disconnect();
  }, []);
  return width;
}

function TipLayer({ tip, width }: { tip: Tip; width: number }) {
  const [, render] = useReducer((times: number) => times + 1, 0);
  useEffect(() => tip.listen(() => render(undefined)), [tip]);
  const { content } = tip;
  if (content === undefined) return null;
  const side = content.left > width / 2 ? "tip tip-left" : "tip";
  return (
    <div class={side} role="tooltip" style={{ left: `${content.left}px`, top: `${content.top}px` }}>
      {content.lines.map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}

/** What a color-blind person tells states apart by, besides their heights. */
function Patterns() {
  return (
    <svg class="defs" width="0" height="0" aria-hidden="true">
      <defs>
        <pattern id="stripes" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="5" height="5" class="pattern-ground" />
          <rect width="2.5" height="5" class="pattern-warm" />
        </pattern>
        <pattern id="dots" width="4" height="4" patternUnits="userSpaceOnUse">
          <rect width="4" height="4" class="pattern-suspended-ground" />
          <circle cx="2" cy="2" r="1" class="pattern-suspended" />
        </pattern>
        <pattern id="cross" width="5" height="5" patternUnits="userSpaceOnUse">
          <rect width="5" height="5" class="pattern-ground" />
          <path d="M0 0l5 5M5 0l-5 5" class="pattern-failed" />
        </pattern>
      </defs>
    </svg>
  );
}

function Legend() {
  return (
    <ul class="legend line muted">
      {STATES.map((state) => (
        <li key={state}>
          <svg width="18" height={STRIP_HEIGHT} aria-hidden="true">
            <path class={`span-${state}`} d={`M0 ${STRIP_HEIGHT}v${-STATE_HEIGHT[state]}h18v${STATE_HEIGHT[state]}z`} />
          </svg>
          {state}
        </li>
      ))}
      <li>
        <svg width="36" height="8" aria-hidden="true">
          <path class="wake" d="M1 4a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0zM13 1h6l-3 5.500zM26 1.500h5v5h-5z" />
        </svg>
        wake: warm, resume, cold
      </li>
    </ul>
  );
}
