/** One machine's row of the sleep chart. */
import { useState } from "preact/hooks";
import { useServices, useStore } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import type { Track, Wake } from "../../data/track.ts";
import { count, duration, share, timeOfDay } from "../../format.ts";
import { Link } from "../../router.tsx";
import { type Area, nearestWake, pathsOf, piecesOf, STRIP_HEIGHT, timesOf, xOf } from "./strip-layout.ts";
import type { Tip } from "./tip.ts";

/** How far from a mark a pointer still means it, in pixels. */
const REACH = 7;
const KIND_NAMES = { warm: "warm", resume: "resume", cold: "cold start" } as const;

/** Shows the states and wakes of one machine. */
export function Strip({ id, area: usual, tip }: { id: string; area: Area; tip: Tip }) {
  const { store: known } = useServices();
  const machine = useStore(TOPIC.machine(id), ({ machines }) => machines.get(id));
  const track = useStore(TOPIC.track(id), (store) => store.track(id));
  if (machine === undefined) return null;
  // The chart moves on now and then. What happens meanwhile is shown at once.
  const area = { ...usual, until: Math.max(usual.until, known.now()) };
  const name = `${machine.app_name} / ${machine.name}`;
  const times = timesOf(track.spans, area);
  const asleep = times.suspended + times.warm + times.stopped;
  const whole = asleep + times.running + times.failed;
  return (
    <li class="strip-row" data-machine={id}>
      <Link class="strip-name" to={{ page: "machine", app: machine.app_name, machine: id }}>
        <span class="muted">{machine.app_name} /</span> {machine.name}
      </Link>
      <StripPlot name={name} track={track} area={area} tip={tip} label={`${name}: ${summary(asleep, whole, track)}`} />
      <span class="strip-share" aria-hidden="true">
        {share(asleep, whole)}
      </span>
    </li>
  );
}

function summary(asleep: number, whole: number, { wakes, wakesLeftOut }: Track): string {
  return `asleep ${share(asleep, whole)} of ${duration(whole)}, ${count(wakes.length + wakesLeftOut, "wake")}`;
}

interface PlotProps {
  name: string;
  label: string;
  track: Track;
  area: Area;
  tip: Tip;
}

function StripPlot({ name, label, track, area, tip }: PlotProps) {
  const { store } = useServices();
  const [active, setActive] = useState<number>();
  const wakes = track.wakes.filter(({ at }) => at >= area.from);
  const choose = (index: number | undefined, element: HTMLElement) => {
    setActive(index);
    const wake = index === undefined ? undefined : wakes[index];
    if (wake === undefined) return tip.show(undefined);
    tip.show({ ...placeOf(element, xOf(wake.at, area)), lines: linesOf(wake, store.now()) });
  };
  const hover = (event: PointerEvent) => {
    const element = event.currentTarget as HTMLElement;
    const x = event.clientX - element.getBoundingClientRect().left;
    choose(nearestWake(wakes, area, x, REACH), element);
  };
  const leave = (event: Event) => choose(undefined, event.currentTarget as HTMLElement);
  const mark = active === undefined ? undefined : wakes[active];
  return (
    <div class="strip" onPointerMove={hover} onPointerDown={hover} onPointerLeave={leave}>
      <svg width={area.width} height={STRIP_HEIGHT} role="img" aria-label={label}>
        {[...pathsOf(piecesOf(track.spans, area))].map(([state, path]) => (
          <path key={state} class={`span-${state}`} d={path} />
        ))}
        {[...marksOf(wakes, area)].map(([kind, path]) => (
          <path key={`wake-${kind}`} class={`wake wake-${kind}`} d={path} />
        ))}
        {mark !== undefined && <circle class="wake-active" cx={xOf(mark.at, area)} cy={3} r={5} />}
      </svg>
      {wakes.length > 0 && (
        <WakeSlider name={name} wakes={wakes} active={active} onChoose={choose} onLeave={leave} now={store.now()} />
      )}
    </div>
  );
}

interface SliderProps {
  name: string;
  wakes: readonly Wake[];
  active: number | undefined;
  now: number;
  onChoose(index: number | undefined, element: HTMLElement): void;
  onLeave(event: Event): void;
}

/** Lets the keyboard move from wake to wake; screen readers read each. */
function WakeSlider({ name, wakes, active, now, onChoose, onLeave }: SliderProps) {
  const last = wakes.length - 1;
  const at = active ?? last;
  const wake = wakes[at];
  const onKeyDown = (event: KeyboardEvent) => {
    const element = event.currentTarget as HTMLElement;
    const next = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, Home: 0, End: last }[
      event.key
    ];
    if (event.key === "Escape") onChoose(undefined, element);
    if (next === undefined) return;
    event.preventDefault();
    onChoose(Math.min(last, Math.max(0, next)), element);
  };
  return (
    <div
      class="strip-slider"
      role="slider"
      tabIndex={0}
      aria-label={`Wakes of ${name}`}
      aria-valuemin={1}
      aria-valuemax={wakes.length}
      aria-valuenow={at + 1}
      aria-valuetext={wake === undefined ? undefined : linesOf(wake, now).join(", ")}
      onKeyDown={onKeyDown}
      onFocus={(event) => onChoose(at, event.currentTarget)}
      onBlur={onLeave}
    />
  );
}

/** A mark at the top of the strip for each wake, its shape by kind. */
function marksOf(wakes: readonly Wake[], area: Area): Map<Wake["kind"], string> {
  const paths = new Map<Wake["kind"], string>();
  for (const { at, kind } of wakes) {
    const x = xOf(at, area);
    const shape = {
      warm: `M${x - 2.5} 3a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0z`,
      resume: `M${x - 3} 0.500h6l-3 5.500z`,
      cold: `M${x - 2.5} 0.500h5v5h-5z`,
    }[kind];
    paths.set(kind, `${paths.get(kind) ?? ""}${shape}`);
  }
  return paths;
}

function placeOf(element: HTMLElement, x: number): { left: number; top: number } {
  const chart = element.closest(".chart")?.getBoundingClientRect();
  const strip = (element.closest(".strip") ?? element).getBoundingClientRect();
  return { left: strip.left - (chart?.left ?? 0) + x, top: strip.top - (chart?.top ?? 0) };
}

/** What is said about a wake: when, how, how long it took, and why that way. */
function linesOf({ at, kind, took, reason }: Wake, now: number): string[] {
  const why = reason === "" || reason === "snapshot" ? [] : [reason];
  return [
    `${timeOfDay(at)}, ${duration(Math.max(0, now - at))} ago`,
    `${KIND_NAMES[kind]} in ${duration(took)}`,
    ...why,
  ];
}
