/**
 * Openers: machines that have a volume for as long as its files are wanted from outside and no sandbox has it. No client sees them, no
 * request reaches them, and the next platform destroys those that this one leaves.
 */
import { setTimeout as delay } from "node:timers/promises";
import { isHibernautError } from "@hibernaut/domain/errors";
import { abortable } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { VolumeView } from "@hibernaut/volumes";
import type { SandboxNeeds } from "../contract.ts";
import { Refusal } from "../failure.ts";
import { SandboxGuest } from "../inside/guest.ts";
import { GONE_TIMEOUT_MS, RUNNING_TIMEOUT_MS } from "../life/limits.ts";
import { giveToUser } from "./give-to-user.ts";
import { Use } from "./use.ts";

/** Where they have the volume: no image has anything there. */
const ROOT = "/mnt/hibernaut-volume";
/** How long one stays that nobody uses, in milliseconds: a program that reads file after file starts one, and not many. */
const IDLE_MS = 15_000;
/** How many of one app there are at once: each takes the memory of a sandbox. */
const MOST_OF_APP = 4;
/** How long a new sandbox waits for files that are being written, in milliseconds. */
const LEAVE_MS = 20_000;
/** How long the end of the platform waits for them, in milliseconds. What is left, the next platform destroys. */
const CLOSE_MS = 5_000;

interface Opened {
  app: string;
  machine: Promise<{ id: string; guest: SandboxGuest }>;
  use: Use;
  /** Settles once it is gone. Undefined while it is not about to go. */
  ending?: Promise<void>;
}

/** Where the files of a volume are reached, until it is disposed of. */
export interface OpenVolume extends Disposable {
  guest: SandboxGuest;
  root: string;
}

interface OpenersOptions {
  needs: Pick<SandboxNeeds, "resources" | "log">;
  /** The id of the template that they are born from. Throws a {@link Refusal} when the app has none. */
  templateOf(app: string): string;
  /** Default: 15 s. */
  idleMs?: number;
}

export class Openers {
  readonly #options: OpenersOptions;
  /** By volume. */
  readonly #opened = new Map<string, Opened>();
  /** Volumes that a new sandbox is about to have, or that are about to be deleted, and how often. */
  readonly #wanted = new Map<string, number>();
  readonly #closing = new AbortController();

  constructor(options: OpenersOptions) {
    this.#options = options;
  }

  /** Whether one of these has the volume. */
  has(volume: string): boolean {
    return this.#opened.has(volume);
  }

  /** Resolves once its files are there. Rejects with 409 while someone else is about to have it, and with 429 when there are many. */
  async open(volume: VolumeView, signal: AbortSignal): Promise<OpenVolume> {
    const { id, name } = volume;
    await this.#opened.get(id)?.ending;
    if (this.#wanted.has(id)) throw new Refusal(409, `Volume '${name}' is being mounted, or deleted. Try again.`);
    const one = this.#opened.get(id) ?? this.#begin(volume);
    const leave = one.use.enter();
    try {
      const machine = await abortable(one.machine, signal);
      if (this.#options.needs.resources.machines.recordOf(machine.id)?.state === "running")
        return { guest: machine.guest, root: ROOT, [Symbol.dispose]: leave };
      // Its virtual machine was lost. The next request gets another one.
      background(this.#end(id), "closing a volume");
      throw new Refusal(503, `The machine that had volume '${name}' open was lost. Try again.`);
    } catch (error) {
      leave();
      if (!isHibernautError(error, "failed_precondition")) throw error;
      throw new Refusal(409, `The files of volume '${name}' cannot be reached now. ${error.message}`);
    }
  }

  /**
   * Keeps volumes for someone else until it is disposed of, and ends those that have them. Rejects with 409 when their files are
   * in use all the time.
   */
  async keepOff(volumes: readonly string[]): Promise<Disposable> {
    for (const id of volumes) this.#wanted.set(id, (this.#wanted.get(id) ?? 0) + 1);
    const release = () => {
      for (const id of volumes) {
        const others = (this.#wanted.get(id) ?? 1) - 1;
        if (others === 0) this.#wanted.delete(id);
        else this.#wanted.set(id, others);
      }
    };
    try {
      await Promise.all(volumes.map((id) => this.#leave(id)));
      return { [Symbol.dispose]: release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Ends all, and waits a while until they are gone. */
  async close(): Promise<void> {
    this.#closing.abort(new Refusal(503, "The platform is shutting down."));
    const over = new AbortController();
    const late = delay(CLOSE_MS, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([Promise.allSettled([...this.#opened.keys()].map((id) => this.#end(id))), late]);
    over.abort();
  }

  #begin(volume: VolumeView): Opened {
    const { id, app } = volume;
    const mine = [...this.#opened.values()].filter((one) => one.app === app);
    if (mine.length >= MOST_OF_APP)
      throw new Refusal(
        429,
        `Files of ${MOST_OF_APP} volumes that no sandbox has are in use already. Wait, or mount volume '${volume.name}'.`,
      );
    const use = new Use(this.#options.idleMs ?? IDLE_MS, () => background(this.#end(id), "closing a volume"));
    const one = { app, machine: this.#bear(volume), use };
    this.#opened.set(id, one);
    one.machine.catch(() => this.#end(id));
    return one;
  }

  async #bear({ id: volume, app }: VolumeView): Promise<{ id: string; guest: SandboxGuest }> {
    const { needs, templateOf } = this.#options;
    const { machines, templates, commands } = needs.resources;
    const { signal } = this.#closing;
    const birth = { cordoned: true, temporary: true, mounts: [{ volume, path: ROOT }] } as const;
    const template = templateFor(app, templateOf);
    const { id } = (await templates.bear(app, template, { ...birth, mounts: [...birth.mounts] }, signal)).record;
    try {
      const wait = { timeoutMs: RUNNING_TIMEOUT_MS, signal };
      const { state } = await machines.wait(app, id, ["running", "failed", "stopped"], wait);
      const { record } = machines.get(app, id);
      if (state !== "running")
        throw new Refusal(503, `The volume could not be opened: ${record.stateReason ?? `its machine is ${state}`}.`);
      await giveToUser(record, needs);
      return { id, guest: new SandboxGuest((spec) => commands.run(app, id, spec), record.programs?.user) };
    } catch (error) {
      await this.#destroy(app, id);
      throw error;
    }
  }

  async #leave(volume: string): Promise<void> {
    const one = this.#opened.get(volume);
    if (one === undefined) return;
    if (one.ending === undefined && !(await one.use.over(LEAVE_MS)))
      throw new Refusal(409, "Files of the volume are being read or written from outside. Try again later.");
    await this.#end(volume);
  }

  /** Resolves once the volume is free. */
  async #end(volume: string): Promise<void> {
    const one = this.#opened.get(volume);
    if (one === undefined) return;
    one.use.close();
    one.ending ??= one.machine
      .then(
        ({ id }) => this.#destroy(one.app, id),
        () => {}, // there is none
      )
      .finally(() => this.#opened.delete(volume));
    await one.ending;
  }

  /** Never rejects: one that stays is destroyed by the next platform. */
  async #destroy(app: string, id: string): Promise<void> {
    const { resources, log } = this.#options.needs;
    try {
      resources.machines.destroy(app, id, { force: true });
      await resources.machines.wait(app, id, ["destroyed"], { timeoutMs: GONE_TIMEOUT_MS });
    } catch (error) {
      if (isHibernautError(error, "not_found")) return;
      log.warn({ machine: id, reason: messageOf(error) }, "a machine that opened a volume is not destroyed");
    }
  }
}

/** Not 404, which clients take for a file that is not there. */
function templateFor(app: string, templateOf: (app: string) => string): string {
  try {
    return templateOf(app);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal(409, `No sandbox has the volume, and nothing can open it. ${error.message}`);
  }
}
