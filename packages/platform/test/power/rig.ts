/** One disk through many power cuts: boot, check, work, cut, boot again. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { makeDisk, Outer } from "../outer/outer.ts";
import type { OuterFiles } from "../outer/outer-disk.ts";
import { Breeder, isBirth } from "./breeder.ts";
import { Clerk } from "./clerk.ts";
import { type After, type Entry, Journal } from "./journal.ts";
import { findLosses } from "./losses.ts";
import type { Random } from "./random.ts";
import { howFound, situation } from "./report.ts";
import { Runner, type Site } from "./runner.ts";
import { survey } from "./survey.ts";

/**
 * A cut comes a moment after a random number of entries of the journal. Counted in entries and not in seconds, because
 * a busy host does in minutes what a quiet one does in seconds.
 */
const ENTRIES = { least: 3, most: 60 } as const;
/** A first start has fewer entries, of which each takes longer: the import of an image, cold starts. */
const FIRST_ENTRIES = { least: 0, most: 30 } as const;
/** A suspend takes 2 s in there, a resume 4 s, a cold start 20 s and more. */
const LONGEST_MOMENT_MS = 4000;
/**
 * What a cut comes after. Mostly an order to a machine, because a suspend or a start is what can be torn. A birth takes so
 * long that few would be over by then.
 */
const MOMENTS: readonly [Moment, ...Moment[]] = [
  () => true,
  ({ kind }) => kind === "ordered",
  ({ kind }) => kind === "ordered",
  (entry) => entry.kind === "wrote" && entry.value !== null && isBirth(entry.key),
];
type Moment = (entry: Entry) => boolean;
/** One cut in this number falls into the check, where machines start. */
const EARLY = 5;
const CHECK_ENTRIES = { least: 0, most: 8 } as const;
/** How much of the journal is shown with a loss. */
const LAST_ENTRIES = 60;
/** Only a bound for work that has stopped. */
const LONGEST_WORK_MS = 10 * 60_000;

/** Something that the platform had promised is gone. */
class Lost extends Error {
  override name = "Lost";
}

/** Cuts the power of one disk again and again, and checks after each cut. */
export class Rig {
  readonly #files: OuterFiles;
  readonly #folder: string;
  readonly #random: Random;
  readonly #journal = new Journal();
  readonly #clerk = new Clerk();
  readonly #breeder = new Breeder();
  readonly #runners = [new Runner("keeper", "on-failure"), new Runner("sleeper", "no")];
  /** When the power failed for the first time since the last check that was finished. */
  #unchecked: Date | undefined;
  #outer: Outer | undefined;

  private constructor(files: OuterFiles, folder: string, random: Random) {
    this.#files = files;
    this.#folder = folder;
    this.#random = random;
  }

  /** Makes an empty disk in a directory of its own. */
  static async make(files: OuterFiles, folder: string, random: Random): Promise<Rig> {
    await mkdir(folder);
    await makeDisk(join(folder, "disk"));
    return new Rig(files, folder, random);
  }

  /**
   * Boots, checks what the last cut has left, works, and cuts. Rejects with what was lost. Returns a line of the report:
   * as what each machine was found, how many records there were, how many seconds it all took, and what each machine was
   * doing when the power failed.
   */
  async round(cut: number) {
    const first = this.#unchecked === undefined;
    const [outer, bootS] = await timed(() => this.#boot());
    const early = !first && this.#random.between(1, EARLY) === 1;
    const [after, checkS] = await timed(() => (early ? this.#checkUntilCut(outer) : this.#check(outer)));
    const [, workS] = await timed(async () => early || this.#workUntilCut(outer, first ? FIRST_ENTRIES : ENTRIES));
    return {
      ...{ cut, boot_s: bootS, check_s: checkS, work_s: workS },
      found: after === undefined ? {} : howFound(after),
      stored: Object.keys(after?.stored ?? {}).length,
      cut_while: situation(this.#journal.entries),
    };
  }

  /** Boots and checks once more, and returns what each machine was found as. */
  async finish(): Promise<Record<string, string>> {
    const after = await this.#check(await this.#boot());
    await this.close();
    return after === undefined ? {} : howFound(after);
  }

  /** Ends the outer machine, if there is one. Can be called twice. */
  async close(): Promise<void> {
    await this.#outer?.cut();
  }

  async #boot(): Promise<Outer> {
    this.#outer = await Outer.boot(this.#files, join(this.#folder, "disk"), this.#folder);
    return this.#outer;
  }

  async #check(outer: Outer, during = new Journal()): Promise<After | undefined> {
    if (this.#unchecked === undefined) return undefined;
    try {
      const after = await survey(
        this.#site(outer, during),
        { runners: this.#runners, breeder: this.#breeder },
        this.#unchecked,
      );
      const losses = findLosses(this.#journal.entries, after);
      if (losses.length > 0) throw new Lost(await this.#evidence(outer, losses));
      this.#journal.confirm(after.stored);
      this.#unchecked = undefined;
      return after;
    } finally {
      this.#journal.entries.push(...during.entries);
    }
  }

  /** What was lost, with what led to it: the end of the journal, and of what platform and kernel said. */
  async #evidence(outer: Outer, losses: readonly string[]): Promise<string> {
    const entries = this.#journal.entries.slice(-LAST_ENTRIES).map((entry) => JSON.stringify(entry));
    return [...losses, ...entries, await outer.lastLines()].join("\n");
  }

  /** Cuts during the check, which begins again after the next boot. */
  async #checkUntilCut(outer: Outer): Promise<After | undefined> {
    const during = new Journal();
    const checking = this.#check(outer, during);
    checking.catch(() => {});
    await Promise.race([checking, this.#moment(during, CHECK_ENTRIES, AbortSignal.timeout(LONGEST_WORK_MS))]);
    await this.#cut(outer);
    const after = await checking.catch((error: unknown) => {
      if (error instanceof Lost) throw error;
      return undefined;
    });
    // A check that had all answers when the power failed is finished, but this cut has yet to be checked.
    this.#unchecked ??= new Date();
    return after;
  }

  /** Has everything work, and cuts in the middle of it. */
  async #workUntilCut(outer: Outer, entries: { least: number; most: number }): Promise<void> {
    const ending = new AbortController();
    const site = this.#site(outer, this.#journal);
    const moment = this.#moment(this.#journal, entries, AbortSignal.timeout(LONGEST_WORK_MS));
    const working = [this.#clerk, this.#breeder, ...this.#runners].map((worker) => worker.work(site, ending.signal));
    const failed = Promise.all(working);
    failed.catch(() => {});
    await Promise.race([failed, moment]);
    await this.#cut(outer);
    ending.abort();
    await Promise.allSettled(working);
  }

  /** Resolves when the power is to fail. */
  async #moment(
    journal: Journal,
    { least, most }: { least: number; most: number },
    signal: AbortSignal,
  ): Promise<void> {
    const from = journal.entries.length + this.#random.between(least, most);
    const isIt = this.#random.pick(MOMENTS);
    const ms = this.#random.between(0, LONGEST_MOMENT_MS);
    await journal.next((entry, length) => length > from && isIt(entry), signal);
    await delay(ms);
  }

  async #cut(outer: Outer): Promise<void> {
    this.#unchecked ??= new Date();
    await outer.cut();
    this.#journal.add({ kind: "cut" });
  }

  #site({ client, proxyUrl }: Outer, journal: Journal): Site {
    return { client, proxyUrl, journal, random: this.#random };
  }
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const began = performance.now();
  const result = await work();
  return [result, Math.round((performance.now() - began) / 100) / 10];
}
