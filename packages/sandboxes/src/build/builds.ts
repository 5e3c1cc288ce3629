/** Builds of templates: announced, started, carried out one after another, and remembered when they have ended. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { BuildFault, BuildLogEntry, BuildRecord } from "@hibernaut/domain/build";
import { background } from "@hibernaut/lib/background";
import { Semaphore } from "@hibernaut/lib/semaphore";
import { messageOf } from "@hibernaut/lib/text";
import type { SandboxNeeds } from "../contract.ts";
import { failureOf, isMissing, Refusal } from "../failure.ts";
import type { Processes } from "../inside/processes.ts";
import { builtName, type TemplateNames } from "../life/names.ts";
import { carryOut, inStep, StepFault } from "./carry-out.ts";
import {
  ANNOUNCED_MS,
  BUILD_TIMEOUT_MS,
  CLOSE_TIMEOUT_MS,
  LONGEST_LINE,
  MOST_AT_ONCE,
  MOST_KEPT,
  MOST_OF_APP,
  MOST_WAITING,
} from "./limits.ts";
import { BuildLog } from "./log.ts";
import { BuildMachine, type Parent } from "./machine.ts";
import { FINALIZE, type Readiness } from "./ready.ts";
import type { Step } from "./steps.ts";
import type { Uploads } from "./uploads.ts";

/** What is built. */
export interface BuildOrder extends Readiness {
  parent: Parent;
  steps: readonly Step[];
}

/** What a client announces. */
export type Announced = Pick<BuildRecord, "name" | "tags" | "cpus" | "memoryMb">;

interface BuildsOptions {
  needs: SandboxNeeds;
  names: TemplateNames;
  processes: Processes;
  uploads: Uploads;
}

/** The step in which the parent is made ready, as clients know it. */
const BASE = "base";
const TOO_LONG = `The build took longer than ${BUILD_TIMEOUT_MS / 60_000} minutes. Build a part of it first, and the rest from that.`;
const INTERRUPTED = "The platform ended while the template was being built. Build it again.";

export class Builds {
  readonly #options: BuildsOptions;
  readonly #turns = new Semaphore(MOST_AT_ONCE);
  /** Those that were started and have not ended. */
  readonly #live = new Map<string, { app: string; log: BuildLog; done: Promise<void> }>();
  readonly #closing = new AbortController();

  constructor(options: BuildsOptions) {
    this.#options = options;
  }

  /** Ends what an earlier platform did not end. The machines of its builds are destroyed by those who know all machines. */
  recover(): void {
    const { needs } = this.#options;
    for (const build of needs.builds.list()) {
      if (build.status !== "building" && build.status !== "waiting") continue;
      this.#fail(build, { message: INTERRUPTED }, []);
      // It was made, and nobody was told of it.
      background(this.#undo(build), "deleting the template of a build that did not end");
    }
  }

  /** Begins a build, which waits for its files and its start. Throws a {@link Refusal} when there are too many. */
  announce(app: string, chosen: Announced): BuildRecord {
    const { builds } = this.#options.needs;
    this.#prune(app);
    const createdAt = new Date().toISOString();
    const begin = { status: "waiting", fault: null, createdAt, finishedAt: null } as const;
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

  /** Whether a build of that name is there, or a template. */
  knows(app: string, name: string): boolean {
    const { builds } = this.#options.needs;
    return this.#options.names.of(app, name).length > 0 || builds.list(app).some((build) => build.name === name);
  }

  /** Starts a build that was announced. Throws 409 when it has begun already, and 429 when there are too many. */
  start(app: string, name: string, id: string, order: BuildOrder): void {
    const build = this.get(app, name, id);
    if (this.#closing.signal.aborted) throw new Refusal(503, "The platform is shutting down. Build again later.");
    if (this.#live.has(id) || build.status !== "waiting")
      throw new Refusal(409, `Build ${id} has been started already.`);
    const live = [...this.#live.values()];
    if (live.filter((one) => one.app === app).length >= MOST_OF_APP)
      throw new Refusal(429, `${MOST_OF_APP} builds of this app are not finished. Wait until one is.`);
    if (live.length >= MOST_AT_ONCE + MOST_WAITING)
      throw new Refusal(429, "Too many builds of all apps wait for their turn. Try again in some minutes.");
    const log = new BuildLog();
    const done = this.#build(build, order, log).finally(() => this.#live.delete(id));
    this.#live.set(id, { app, log, done });
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
    try {
      await this.#turns.run(async () => {
        this.#update({ ...build, status: "building" });
        const late = new AbortController();
        const timer = setTimeout(() => late.abort(new Refusal(504, TOO_LONG)), BUILD_TIMEOUT_MS);
        const signal = AbortSignal.any([this.#closing.signal, late.signal]);
        await this.#carryOut(build, order, log, signal).finally(() => clearTimeout(timer));
      }, this.#closing.signal);
    } catch (error) {
      const { step, cause = error } = error instanceof StepFault ? error : {};
      const { code, message: whole } = failureOf(cause);
      const message = whole.slice(0, LONGEST_LINE);
      if (code === 500) this.#options.needs.log.warn({ err: cause, build: build.id }, "the build of a template failed");
      log.say(step ?? BASE, "error", message);
      this.#fail(build, { message, ...(step !== undefined && { step }) }, log.entries);
    }
  }

  async #carryOut(build: BuildRecord, order: BuildOrder, log: BuildLog, signal: AbortSignal): Promise<void> {
    const { needs, names, uploads, processes } = this.#options;
    const { app: appName, id, name } = build;
    const { parent, steps } = order;
    const app = needs.resources.apps.get(appName);
    log.say(BASE, "info", `FROM ${parent.title}`);
    for (const warning of warningsOf(build, parent)) log.say(BASE, "warn", warning);
    const machine = await inStep(BASE, () => BuildMachine.open(needs, appName, parent, signal));
    try {
      const begin = await inStep(BASE, () => machine.begin(parent, { step: BASE, log, signal }));
      const programs = await carryOut(steps, order, begin, { machine, app, uploads, processes, log, signal });
      await inStep(FINALIZE, async () => {
        log.say(FINALIZE, "info", "Keeping the state of the machine as the template");
        const made = { machine: machine.id, name: builtName(name, id), programs };
        const { template } = await needs.resources.templates.createOf(appName, made, signal);
        log.say(FINALIZE, "info", `Template ${template.id} is ready`);
        const before = names.of(appName, name);
        await this.#publish(build, log, template.id);
        await names.drop(appName, before);
      });
    } finally {
      await machine.destroy();
    }
  }

  /** From now on, the name leads to the template, and the build is ready. */
  async #publish(build: BuildRecord, log: BuildLog, template: string): Promise<void> {
    const assignedAt = new Date().toISOString();
    const { app, name, id } = build;
    const tags = build.tags.map((tag) => ({ app, name, tag, build: id, template, assignedAt }));
    const ready = { ...build, status: "ready", fault: null, finishedAt: assignedAt } as const;
    if (this.#options.needs.builds.finish(ready, log.entries, tags)) return;
    await this.#undo(build);
    throw new Refusal(404, `App ${app} was deleted meanwhile.`);
  }

  #update(build: BuildRecord): void {
    if (!this.#options.needs.builds.update(build)) throw new Refusal(404, `App ${build.app} was deleted meanwhile.`);
  }

  #fail(build: BuildRecord, fault: BuildFault, log: readonly BuildLogEntry[]): void {
    const finishedAt = new Date().toISOString();
    this.#options.needs.builds.finish({ ...build, status: "error", fault, finishedAt }, log, []);
  }

  async #undo({ app, name, id }: BuildRecord): Promise<void> {
    const { templates } = this.#options.needs.resources;
    try {
      const made = templates.list(app).find(({ template }) => template.name === builtName(name, id));
      if (made !== undefined) await templates.delete(app, made.template.id);
    } catch (error) {
      if (!isMissing(error)) this.#options.needs.log.warn({ reason: messageOf(error) }, "a template of no build stays");
    }
  }

  /** Forgets what was announced and never started, and the oldest that have ended. */
  #prune(app: string): void {
    const { builds } = this.#options.needs;
    const idle = builds.list(app).filter(({ id }) => !this.#live.has(id));
    const stale = (build: BuildRecord) =>
      build.status === "waiting" && Date.now() - Date.parse(build.createdAt) > ANNOUNCED_MS;
    const old = idle.filter(stale);
    const rest = idle.filter((build) => !stale(build));
    for (const { id } of [...old, ...rest.slice(0, Math.max(0, rest.length - MOST_KEPT + 1))]) builds.remove(id);
  }
}

/** What a client asked for and does not get. */
function warningsOf({ cpus, memoryMb }: BuildRecord, parent: Parent): string[] {
  if ("image" in parent || (cpus ?? memoryMb) === undefined) return [];
  return [
    "A template has the CPUs and the memory of the one that it is built from: cpuCount and memoryMB have no effect.",
  ];
}
