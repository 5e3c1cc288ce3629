/** What machines did over time, for charts. */
import { setImmediate } from "node:timers/promises";
import { BOOT_KINDS, type BootKind, type MachineRecord } from "@hibernaut/domain/machine";
import {
  coarser,
  type Interval,
  KEPT_CHANGES,
  likelyBefore,
  type Span,
  type StoredState,
  spansOf,
  storedStateOf,
  summaryOf,
  type Wake,
  type WakeSummary,
} from "@hibernaut/domain/timeline";
import type { TimelineStore } from "@hibernaut/store";
import type { ControllerSet } from "../controller-set.ts";

/** Spans of one machine in a chart: more are narrower than what screens show. */
const MAX_SPANS = 200;
/** Wakes of one machine in a chart: more are marks on top of each other. */
const MAX_WAKES = 100;
/** From this number of machines on, each gets less of both: a reply has a few megabytes at most. */
const MANY = 250;
/** The least share that each gets. */
const LEAST = 0.1;
/** A chart of many machines is made in turns of this many milliseconds, so that requests in between do not wait for it. */
const TURN_MS = 10;
/** Wakes read at a time. */
const PAGE = 2_000;
const HOUR_MS = 3_600_000;

/** The chart of one machine. */
export interface Timeline {
  machine: MachineRecord;
  spans: readonly Span[];
  wakes: readonly Wake[];
  /** How many older wakes there are. */
  wakesLeftOut: number;
}

/** An hour, and how machines woke in it: those kinds that there were. */
export interface HourOfWakes {
  from: number;
  kinds: Partial<Record<BootKind, WakeSummary>>;
  /** Of each wake, in milliseconds. */
  durationsMs: Partial<Record<BootKind, readonly number[]>>;
}

/** Whose machines are meant. */
type Wanted = (app: string) => boolean;

/** Reads what the store kept. */
export class Timelines {
  readonly #store: TimelineStore;
  readonly #controllers: ControllerSet;
  readonly #now: () => number;

  constructor(store: TimelineStore, controllers: ControllerSet, now: () => number) {
    this.#store = store;
    this.#controllers = controllers;
    this.#now = now;
  }

  /** Returns the charts of the machines of some apps, oldest machine first, for the last `hours`. */
  async read(wanted: Wanted, hours: number): Promise<Interval & { machines: Timeline[] }> {
    this.#controllers.warmHistory.write();
    const until = this.#now();
    const from = until - hours * HOUR_MS;
    const machines: Timeline[] = [];
    const turns = new Turns();
    const records = this.#controllers
      .all()
      .flatMap(({ record }) => (wanted(record.app) && record.pooled !== true ? [record] : []));
    const share = Math.max(LEAST, Math.min(1, MANY / records.length));
    for (const record of records) {
      machines.push(this.#timeline(record, { from, until }, share));
      await turns.pause();
    }
    return { from, until, machines };
  }

  /** Returns how the machines of some apps woke, hour by hour up to now, those that are destroyed included. */
  async wakes(wanted: Wanted, hours: number): Promise<Interval & { hours: HourOfWakes[] }> {
    const until = this.#now();
    const from = Math.floor(until / HOUR_MS) * HOUR_MS - (hours - 1) * HOUR_MS;
    const durations = Array.from({ length: hours }, () => new Map<BootKind, number[]>());
    const turns = new Turns();
    // Newest first, until a whole page is too old: a clock that was set back mixes neighbours at most.
    for (let before = Number.MAX_SAFE_INTEGER; ; ) {
      const page = this.#store.wakesBefore(before, PAGE);
      for (const { at, app, kind, durationMs } of page) {
        const hour = durations[Math.floor((at - from) / HOUR_MS)];
        if (hour === undefined || !wanted(app)) continue;
        const known = hour.get(kind) ?? [];
        known.push(durationMs);
        hour.set(kind, known);
      }
      const last = page.at(-1);
      if (last === undefined || page.every(({ at }) => at < from)) break;
      before = last.seq;
      await turns.pause();
    }
    return {
      from,
      until,
      hours: durations.map((hour, index) => {
        const durationsMs = Object.fromEntries(hour) as HourOfWakes["durationsMs"];
        return { from: from + index * HOUR_MS, kinds: kindsOf(durationsMs), durationsMs };
      }),
    };
  }

  #timeline(machine: MachineRecord, { from, until }: Interval, share: number): Timeline {
    const { id, createdAt } = machine;
    const begin = Math.min(Math.max(from, Date.parse(createdAt)), until);
    const changes = this.#store.states(id, begin);
    const kept = this.#controllers.warm.since(id);
    const warm = [...this.#store.warm(id, begin), ...(kept === undefined ? [] : [{ from: kept, until }])];
    const now = changes.at(-1)?.state ?? this.#allAlong(machine);
    const spans = spansOf({ changes, warm, now }, { from: this.#known(changes, begin), until });
    const wakes = this.#store.wakes(id, begin, Math.floor(MAX_WAKES * share));
    return {
      machine,
      spans: coarser(spans, Math.floor(MAX_SPANS * share)),
      wakes,
      wakesLeftOut: this.#store.countWakes(id, begin) - wakes.length,
    };
  }

  /** What a machine does that did not change in the whole chart. In a passing state, its last change before that says it. */
  #allAlong({ id, state }: MachineRecord): StoredState {
    const before = this.#store.lastState(id) ?? likelyBefore(state);
    return storedStateOf(state, before) ?? before;
  }

  /** From when on it is known what a machine did: of one that changes all the time, the oldest changes are dropped. */
  #known(changes: readonly { at: number }[], begin: number): number {
    const [oldest] = changes;
    return oldest !== undefined && changes.length >= KEPT_CHANGES ? oldest.at : begin;
  }
}

/** Summarizes the wakes of an hour. */
export function kindsOf(durationsMs: HourOfWakes["durationsMs"]): HourOfWakes["kinds"] {
  const kinds = BOOT_KINDS.map((kind) => [kind, summaryOf(durationsMs[kind] ?? [])] as const);
  return Object.fromEntries(kinds.filter(([, summary]) => summary !== undefined));
}

/** Lets other work happen now and then. */
class Turns {
  #since = performance.now();

  async pause(): Promise<void> {
    if (performance.now() - this.#since < TURN_MS) return;
    await setImmediate();
    this.#since = performance.now();
  }
}
