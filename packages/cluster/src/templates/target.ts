/**
 * Brings templates of other hosts to this one, when a machine is to begin from them here. A copy that was cut short, or whose
 * platform ended, is continued by the next request; what nobody continues is deleted after a while.
 */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { abortable } from "@hibernaut/lib/async";
import { Semaphore } from "@hibernaut/lib/semaphore";
import type { SharedTemplate } from "../keys.ts";
import { type CopyOptions, copyTemplate } from "./copy.ts";

/**
 * How many templates are received at a time, of all apps: some may wait for slow hosts, and more would share one disk and one
 * network, so that each of them came later.
 */
const ARRIVALS_AT_ONCE = 4;
/** How long the part of a template is kept that nobody continues, in milliseconds: a deploy, or a client, tries again within minutes. */
const KEPT_MS = 60 * 60_000;

interface TargetOptions extends Omit<CopyOptions, "arriving"> {
  closing: AbortSignal;
}

/** A copy that is under way, and how many requests wait for it. */
interface Copy {
  done: Promise<void>;
  waiting: number;
  end: AbortController;
}

export class TemplateTarget {
  readonly #options: TargetOptions;
  readonly #copies = new Map<string, Copy>();
  /** What still touches the files of a template that arrives: also copies that nobody waits for any more. */
  readonly #atWork = new Map<string, Promise<void>>();
  readonly #arriving = new Semaphore(ARRIVALS_AT_ONCE);

  constructor(options: TargetOptions) {
    this.#options = options;
  }

  /**
   * Resolves once this host has the template. Requests for the same one wait for one copy, which ends with the last of them.
   * Rejects with `failed_precondition` when it does not fit here, and as the disk, the other hosts and the directory do; then
   * this host does not have it. Rejects with the signal's reason.
   */
  async bring(template: SharedTemplate, signal: AbortSignal): Promise<void> {
    const { id } = template;
    if (this.#options.travel.get(id) !== undefined) return;
    const copy = this.#copies.get(id) ?? this.#begin(template);
    copy.waiting += 1;
    try {
      await abortable(copy.done, signal);
    } finally {
      copy.waiting -= 1;
      if (copy.waiting === 0) copy.end.abort(new Error("nobody waits for the template any more"));
    }
  }

  /** Deletes what came of templates that nobody has continued for a while, or that were ended. */
  async tidy(isKnown: (id: string) => boolean, now = Date.now()): Promise<void> {
    const { arrivals } = this.#options.travel;
    for (const id of await readdir(arrivals).catch((): string[] => [])) {
      if (this.#atWork.has(id)) continue;
      const folder = join(arrivals, id);
      const removeOld = async () => {
        const since = (await stat(folder).catch(() => undefined))?.mtimeMs ?? 0;
        if (!isKnown(id) || now - since > KEPT_MS) await rm(folder, { recursive: true, force: true });
      };
      const removed = removeOld();
      this.#hold(id, removed);
      await removed;
    }
  }

  /** A copy that begins waits for what touches the files of its template. */
  #hold(id: string, work: Promise<void>): void {
    const settled = work
      .catch(() => {}) // who waits for it hears of that
      .finally(() => {
        if (this.#atWork.get(id) === settled) this.#atWork.delete(id);
      });
    this.#atWork.set(id, settled);
  }

  #begin(template: SharedTemplate): Copy {
    const { id } = template;
    const end = new AbortController();
    const signal = AbortSignal.any([end.signal, this.#options.closing]);
    // One that nobody waits for any more may still be at its files.
    const before = this.#atWork.get(id) ?? Promise.resolve();
    const done = before.then(() => copyTemplate(template, { ...this.#options, arriving: this.#arriving }, signal));
    const copy: Copy = { done, waiting: 0, end };
    const over = () => {
      if (this.#copies.get(id) === copy) this.#copies.delete(id);
    };
    this.#copies.set(id, copy);
    end.signal.addEventListener("abort", over);
    this.#hold(id, done.finally(over));
    return copy;
  }
}
