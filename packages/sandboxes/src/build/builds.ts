/** Builds of templates: announced, started, each in its turn, and remembered when they have ended. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { BuildFault, BuildLogEntry, BuildRecord } from "@hibernaut/domain/build";
import { background } from "@hibernaut/lib/background";
import { failureOf, Refusal } from "../failure.ts";
import { BASE, StepFault } from "./carry-out.ts";
import { ANNOUNCED_MS, BUILD_TIMEOUT_MS, CLOSE_TIMEOUT_MS, LONGEST_LINE, MOST_KEPT } from "./limits.ts";
import { BuildLog } from "./log.ts";
import { type BuildOrder, type MakeOptions, makeTemplate, unmake } from "./make.ts";
import { Turns } from "./turns.ts";

/** What a client announces. */
type Announced = Pick<BuildRecord, "name" | "tags" | "cpus" | "memoryMb">;

const TOO_LONG = `The build took longer than ${BUILD_TIMEOUT_MS / 60_000} minutes. Build a part of it first, and the rest from that.`;
const INTERRUPTED = "The platform ended while the template was being built. Build it again.";

export class Builds {
  readonly #options: MakeOptions;
  readonly #turns = new Turns();
  /** Those that were started and have not ended. */
  readonly #live = new Map<string, { log: BuildLog; done: Promise<void> }>();
  readonly #closing = new AbortController();

  constructor(options: MakeOptions) {
    this.#options = options;
  }

  /** Ends what an earlier platform did not end. The machines of its builds are destroyed by those who know all machines. */
  recover(): void {
    const { needs } = this.#options;
    for (const build of needs.builds.list()) {
      if (build.startedAt === null || build.finishedAt !== null) continue;
      this.#fail(build, { message: INTERRUPTED }, []);
      background(unmake(build, needs), "deleting the template of a build that did not end");
    }
  }

  /** Begins a build, which waits for its files and its start. Throws a {@link Refusal} when the app is gone. */
  announce(app: string, chosen: Announced): BuildRecord {
    const { builds } = this.#options.needs;
    this.#prune(app);
    const createdAt = new Date().toISOString();
    const begin = { status: "waiting", fault: null, createdAt, startedAt: null, finishedAt: null } as const;
    const build: BuildRecord = { id: randomUUID(), app, ...chosen, ...begin };
    if (!builds.insert(build)) throw new Refusal(404, `There is no app ${app} any more.`);
    return build;
  }

  /** The build as it is now. Throws 404 when the app has none of this id for that name. */
  get(app: string, name: string, id: string): BuildRecord {
    const build = this.#options.needs.builds.get(id);
    if (build === undefined || build.app !== app || build.name !== name)
      throw new Refusal(404, `There is no build '${id.slice(0, 80)}' of template '${name.slice(0, 80)}'.`);
    return build;
  }

  /** What the build has said so far. */
  log({ id }: BuildRecord): readonly BuildLogEntry[] {
    return this.#live.get(id)?.log.entries ?? this.#options.needs.builds.log(id);
  }

  /** Those of a name that are remembered, oldest first. */
  of(app: string, name: string): BuildRecord[] {
    return this.#options.needs.builds.list(app).filter((build) => build.name === name);
  }

  /** Whether a build of that name is there, or a template. */
  knows(app: string, name: string): boolean {
    return this.#options.names.of(app, name).length > 0 || this.of(app, name).length > 0;
  }

  /** Starts a build that was announced. Throws 409 when it has begun already, and 429 when there are too many. */
  start(app: string, name: string, id: string, order: BuildOrder): void {
    const build = this.get(app, name, id);
    if (this.#closing.signal.aborted) throw new Refusal(503, "The platform is shutting down. Build again later.");
    if (build.startedAt !== null) throw new Refusal(409, `Build ${id} has been started already.`);
    this.#turns.requireRoom(app);
    const started = { ...build, startedAt: new Date().toISOString() };
    this.#update(started);
    const log = new BuildLog();
    const done = this.#build(started, order, log).finally(() => this.#live.delete(id));
    this.#live.set(id, { log, done });
    background(done, "the build of a template");
  }

  /** Ends all builds, and waits a while until their machines are destroyed. */
  async close(): Promise<void> {
    this.#closing.abort(new Refusal(503, INTERRUPTED));
    const all = [...this.#live.values()].map(({ done }) => done);
    const over = new AbortController();
    const late = delay(CLOSE_TIMEOUT_MS, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([Promise.allSettled(all), late]);
    over.abort();
  }

  async #build(build: BuildRecord, order: BuildOrder, log: BuildLog): Promise<void> {
    const work = async () => {
      const begun = { ...build, status: "building" } as const;
      this.#update(begun);
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(new Refusal(504, TOO_LONG)), BUILD_TIMEOUT_MS);
      const signal = AbortSignal.any([this.#closing.signal, late.signal]);
      await makeTemplate(begun, order, this.#options, { log, signal }).finally(() => clearTimeout(timer));
    };
    try {
      await this.#turns.run(build.app, work, this.#closing.signal);
    } catch (error) {
      const { step, cause = error } = error instanceof StepFault ? error : {};
      const { code, message: whole } = failureOf(cause);
      const message = whole.slice(0, LONGEST_LINE);
      if (code === 500) this.#options.needs.log.warn({ err: cause, build: build.id }, "the build of a template failed");
      log.say(step ?? BASE, "error", message);
      this.#fail(build, { message, ...(step !== undefined && { step }) }, log.entries);
    }
  }

  #update(build: BuildRecord): void {
    if (!this.#options.needs.builds.update(build)) throw new Refusal(404, `App ${build.app} was deleted meanwhile.`);
  }

  #fail(build: BuildRecord, fault: BuildFault, log: readonly BuildLogEntry[]): void {
    const finishedAt = new Date().toISOString();
    this.#options.needs.builds.finish({ ...build, status: "error", fault, finishedAt }, log, []);
  }

  /** Forgets what was announced and never started, and the oldest that have ended. */
  #prune(app: string): void {
    const { builds } = this.#options.needs;
    const idle = builds.list(app).filter(({ id }) => !this.#live.has(id));
    const stale = ({ startedAt, createdAt }: BuildRecord) =>
      startedAt === null && Date.now() - Date.parse(createdAt) > ANNOUNCED_MS;
    const old = idle.filter(stale);
    const rest = idle.filter((build) => !stale(build));
    for (const { id } of [...old, ...rest.slice(0, Math.max(0, rest.length - MOST_KEPT + 1))]) builds.remove(id);
  }
}
