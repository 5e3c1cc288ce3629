/**
 * Templates of this host of which the directory does not say so: it has lost them, or they have ended while this host could not
 * know of it. Each is looked at by itself, so that one that cannot be told of keeps none of the others.
 */
import { isHibernautError } from "@hibernaut/domain/errors";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { TemplateTravel } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import { KEYS, type SharedTemplate } from "../keys.ts";
import { type Log, untilDone } from "../ownership/retry.ts";
import { read } from "../stored.ts";
import { gone, type ItsApp, templateKey } from "./records.ts";

interface LostOptions {
  cluster: Cluster;
  travel: Pick<TemplateTravel, "list" | "get" | "drop" | "app">;
  /** It is being made, or arrives: what the directory says of it counts only afterwards. */
  isBusy(id: string): boolean;
  /** Tells the directory of a template of the app that was created then. */
  tell(template: TemplateRecord, createdAt: string): Promise<void>;
  log: Log;
  signal: AbortSignal;
}

export class LostTemplates {
  readonly #options: LostOptions;
  /** What is to be looked at, by id. What could not be told is looked at again. */
  readonly #waiting = new Set<string>();
  /** Those of which the log says already that they cannot be told. */
  readonly #warned = new Set<string>();
  /** One at a time goes through them: a host may have thousands, and etcd has other work. */
  #running = false;

  constructor(options: LostOptions) {
    this.#options = options;
  }

  /** Looks at all templates of this host, in the background. */
  lookAtAll(): void {
    for (const { id } of this.#options.travel.list()) this.#waiting.add(id);
    this.#run();
  }

  /** Looks at one, in the background. */
  lookAt(id: string): void {
    this.#waiting.add(id);
    this.#run();
  }

  #run(): void {
    if (this.#running || this.#waiting.size === 0) return;
    this.#running = true;
    const { log, signal } = this.#options;
    const what = "telling the cluster which templates this host has";
    background(
      untilDone(() => this.#pass(), { what, log, signal }),
      what,
    );
  }

  /** Rejects, with the first reason, while there are templates that could not be told. */
  async #pass(): Promise<void> {
    const failed = new Map<string, unknown>();
    for (const id of this.#waiting) {
      this.#waiting.delete(id);
      try {
        await this.#settle(id);
      } catch (error) {
        failed.set(id, error);
        // The directory is out of reach: that is said once, and not of each template.
        if (isHibernautError(error, "unavailable")) break;
        this.#warn(id, error);
      }
    }
    for (const id of failed.keys()) this.#waiting.add(id);
    const [first] = failed.values();
    if (this.#waiting.size > 0) throw first;
    this.#running = false;
  }

  async #settle(id: string): Promise<void> {
    const { cluster, travel, isBusy, tell, log } = this.#options;
    const template = travel.get(id);
    if (template === undefined) return;
    const shared = (await read<SharedTemplate>(cluster.directory, templateKey(template)))?.value;
    const itsApp = (await read<ItsApp>(cluster.directory, `${KEYS.apps}${template.app}`))?.value;
    // It may have been deleted here meanwhile. What is at work on it looks again when that is over.
    if (isBusy(id) || travel.get(id) === undefined || shared?.hosts.includes(cluster.host) === true) return;
    // Without any app of that name nobody knows whether it is to come back: an older copy of the directory may be in use.
    if (itsApp === undefined) throw gone(template);
    const own = travel.app(template.app)?.createdAt;
    if (shared?.ended === true || itsApp.createdAt !== own) await travel.drop(id);
    else await tell(template, own);
    log.info({ template: id }, "the cluster did not know of a template of this host");
  }

  #warn(id: string, error: unknown): void {
    if (this.#warned.has(id)) return;
    this.#warned.add(id);
    const text = "the cluster cannot be told of a template of this host";
    this.#options.log.warn({ template: id, reason: messageOf(error) }, text);
  }
}
