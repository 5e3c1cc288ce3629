/** What the dashboard knows: only what the platform said. */
import type { ApiError, App, Machine, StreamEvent, Timeline } from "@hibernaut/client/browser";
import { Topics } from "./frames.ts";
import { machineAfter } from "./machine.ts";
import { EMPTY_TRACK, type Track, trackAfter, trackOf, trackSince, trackWith } from "./track.ts";

/** Hours that the sleep chart shows. */
export const CHART_HOURS = 24;
/** The same in milliseconds: what was before is not known. */
export const CHART_MS = CHART_HOURS * 3_600_000;

/** Whether the platform is heard. */
export type Link =
  | { state: "connecting" }
  | { state: "live" }
  | { state: "lost"; since: number; error: ApiError | undefined };

/** What one reading of the platform's present state brought. */
export interface Reading {
  apps: readonly App[];
  machines: readonly Machine[];
  timeline: Timeline;
}

/**
 * Takes over a reading of some machines, and which of them were missing: `others` when all machines were read, so that
 * every other one is gone.
 */
export type TakeOver = (machines: readonly Machine[], missing: readonly string[] | "others") => void;

/** Names of what can change. */
export const TOPIC = {
  /** Which apps and machines there are. */
  world: "world",
  /** Anything about any machine. */
  machines: "machines",
  link: "link",
  /** Wakes were added. */
  wakes: "wakes",
  machine: (id: string) => `machine:${id}`,
  track: (id: string) => `track:${id}`,
  /** Which templates an app has. The store has none of them. */
  templates: (app: string) => `templates:${app}`,
  /** Something ended at a target of backups. The store has none of them. */
  backups: "backups",
} as const;

/** The store of one page. */
export class Store {
  readonly topics: Topics;
  readonly apps = new Map<string, App>();
  readonly machines = new Map<string, Machine>();
  readonly #tracks = new Map<string, Track>();
  #link: Link = { state: "connecting" };
  /** Milliseconds by which the platform's clock is ahead of the browser's. */
  #ahead = 0;
  /** Events up to then are in what was read. */
  #readAt = 0;
  /** Machines of which events said something since the present reading of some machines began. */
  #changedSince: Set<string> | undefined;

  /** @param schedule runs a function before the next frame */
  constructor(schedule: (run: () => void) => void) {
    this.topics = new Topics(schedule);
  }

  get link(): Link {
    return this.#link;
  }

  /** Whether anything was read yet. */
  get isRead(): boolean {
    return this.#readAt > 0;
  }

  /** The platform's time, in milliseconds since 1970. */
  now(): number {
    return Date.now() + this.#ahead;
  }

  /** The machines of an app. */
  machinesOf(app: string): Machine[] {
    return [...this.machines.values()].filter(({ app_name: name }) => name === app);
  }

  track(id: string): Track {
    return this.#tracks.get(id) ?? EMPTY_TRACK;
  }

  setLink(link: Link): void {
    this.#link = link;
    this.topics.change(TOPIC.link);
  }

  /** Replaces everything with what was read. */
  read({ apps, machines, timeline }: Reading): void {
    this.#changedSince = undefined;
    this.#readAt = Date.parse(timeline.until);
    this.#ahead = this.#readAt - Date.now();
    const gone = new Set(this.machines.keys());
    this.#tracks.clear();
    for (const one of timeline.machines) this.#tracks.set(one.machine_id, trackOf(one));
    for (const machine of machines) {
      gone.delete(machine.machine_id);
      this.machines.set(machine.machine_id, machine);
      this.#changed(machine.machine_id);
    }
    for (const id of gone) this.#remove(id);
    this.readApps(apps);
    this.topics.change(TOPIC.wakes);
  }

  /**
   * Begins a reading of some machines. What events say until it is taken over is newer than the reading, and stays. One
   * reading at a time: a new one, or one of everything, takes the place of the one before.
   */
  beginReading(): TakeOver {
    const changed = new Set<string>();
    this.#changedSince = changed;
    return (machines, missing) => {
      if (this.#changedSince !== changed) return;
      this.#changedSince = undefined;
      const found = new Set(machines.map(({ machine_id: id }) => id));
      const gone = missing === "others" ? [...this.machines.keys()].filter((id) => !found.has(id)) : missing;
      for (const machine of machines) if (!changed.has(machine.machine_id)) this.#readMachine(machine);
      for (const id of gone) if (!changed.has(id)) this.#forget(id);
    };
  }

  /** Takes over which apps there are. */
  readApps(apps: readonly App[]): void {
    this.apps.clear();
    for (const app of apps) this.apps.set(app.name, app);
    this.topics.change(TOPIC.world);
  }

  /** Takes over what an event says. Returns the id of a machine about which more is to be read. */
  apply(event: StreamEvent): string | undefined {
    const { machine_id: id, type, app_name: app, data } = event;
    if (type === "app.deleted" && app !== null) this.#removeApp(app);
    if (type.startsWith("template.") && app !== null) this.topics.change(TOPIC.templates(app));
    if (type.startsWith("backup.")) this.topics.change(TOPIC.backups);
    if (id === null) return undefined;
    this.#changedSince?.add(id);
    const machine = this.machines.get(id);
    if (data.to === "destroyed") {
      // In a cluster, it may have moved: whether it is gone, a reading says.
      if (event.host !== undefined) return id;
      this.#forget(id);
      return undefined;
    }
    if (machine !== undefined) {
      const after = machineAfter(machine, event);
      if (after !== undefined) this.machines.set(id, after);
    }
    if (Date.parse(event.at) >= this.#readAt) {
      const old = this.track(id);
      this.#tracks.set(id, trackSince(trackAfter(old, event), this.now() - CHART_MS));
      if (this.track(id).wakes !== old.wakes) this.topics.change(TOPIC.wakes);
    }
    this.#changed(id);
    return id;
  }

  #readMachine(machine: Machine): void {
    const { machine_id: id } = machine;
    const before = this.machines.get(id);
    // Most of a long list is as it was. Drawing it again would cost far more than to compare it.
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(machine)) return;
    this.machines.set(id, machine);
    this.#tracks.set(id, trackWith(this.track(id), machine, this.now(), before));
    this.#changed(id);
    if (before === undefined) this.topics.change(TOPIC.world);
  }

  /** Forgets a machine that is gone. */
  #forget(id: string): void {
    this.#remove(id);
    this.topics.change(TOPIC.world);
  }

  #changed(id: string): void {
    this.topics.change(TOPIC.machine(id));
    this.topics.change(TOPIC.track(id));
    this.topics.change(TOPIC.machines);
  }

  #remove(id: string): void {
    this.machines.delete(id);
    this.#tracks.delete(id);
    this.#changed(id);
  }

  #removeApp(name: string): void {
    this.apps.delete(name);
    for (const { app_name: app, machine_id: id } of this.machines.values()) {
      if (app !== name) continue;
      this.#changedSince?.add(id);
      this.#remove(id);
    }
    this.topics.change(TOPIC.world);
  }
}
