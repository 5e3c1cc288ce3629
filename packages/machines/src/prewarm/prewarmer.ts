/**
 * Puts machines back to sleep that were started only for the snapshot of a new version. A machine that a request needs
 * in the meantime is left to it.
 */
import type { MachineRecord, MachineState } from "@hibernaut/domain/machine";
import { messageOf } from "@hibernaut/lib/text";
import { BY_PREWARM, isPrewarming } from "../decide/prewarm.ts";
import type { MachineDependencies } from "../dependencies.ts";
import type { Machines } from "../resources/machines.ts";
import { prewarmVerdict } from "./verdict.ts";

/** What failed there needs no stop. */
const AT_REST: ReadonlySet<MachineState> = new Set(["stopped", "failed", "suspended", "created"]);

interface PrewarmerOptions {
  machines: Pick<Machines, "all" | "get" | "subscribe" | "suspend" | "stop" | "endPrewarm">;
  deps: Pick<MachineDependencies, "subscribeToChecks" | "letGo" | "log"> & {
    settings: { prewarmTimeoutMs: number; prewarmSettleMs: number };
  };
}

interface Watched {
  app: string;
  /** Fires when the time is up. */
  timer: NodeJS.Timeout;
  /** The proxies are being asked. */
  asking: boolean;
  /** Since when the machine is ready to sleep, in milliseconds of a steady clock. */
  readySince: number | undefined;
  /** Fires when it has been ready for long enough. */
  settle: NodeJS.Timeout | undefined;
}

export class Prewarmer {
  readonly #options: PrewarmerOptions;
  readonly #watched = new Map<string, Watched>();
  readonly #unsubscribes: (() => void)[] = [];
  #closed = false;

  constructor(options: PrewarmerOptions) {
    this.#options = options;
  }

  /** Begins, with the prewarms that an earlier platform left. Call it once machines are recovered. */
  start(): void {
    const { machines, deps } = this.#options;
    // After the proxies, which must know of a machine before they are asked about it.
    this.#unsubscribes.push(machines.subscribe("waiting", (record) => this.#changed(record)));
    const unsubscribe = deps.subscribeToChecks?.((id) => this.#look(id));
    if (unsubscribe !== undefined) this.#unsubscribes.push(unsubscribe);
    for (const { record } of machines.all()) this.#changed(record);
  }

  close(): void {
    this.#closed = true;
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    for (const { timer, settle } of this.#watched.values()) {
      clearTimeout(timer);
      clearTimeout(settle);
    }
    this.#watched.clear();
  }

  #changed(record: MachineRecord): void {
    const { id, app } = record;
    if (!isPrewarming(record)) {
      clearTimeout(this.#watched.get(id)?.timer);
      clearTimeout(this.#watched.get(id)?.settle);
      this.#watched.delete(id);
      return;
    }
    if (!this.#watched.has(id)) {
      const leftMs = Date.parse(record.prewarm.since) + this.#options.deps.settings.prewarmTimeoutMs - Date.now();
      const timer = setTimeout(() => this.#look(id), Math.max(0, leftMs)).unref();
      this.#watched.set(id, { app, timer, asking: false, readySince: undefined, settle: undefined });
    }
    // What a listener changes must not overtake the change that it is told of.
    setImmediate(() => this.#look(id));
  }

  #look(id: string): void {
    const watched = this.#watched.get(id);
    if (watched === undefined || watched.asking || this.#closed) return;
    void this.#judge(id, watched).catch((error: unknown) => {
      this.#options.deps.log.warn({ machine: id, reason: messageOf(error) }, "a prewarm could not be ended");
    });
  }

  async #judge(id: string, watched: Watched): Promise<void> {
    const { machines, deps } = this.#options;
    const { prewarmTimeoutMs: timeoutMs } = deps.settings;
    const { record, health, suspend } = machines.get(watched.app, id);
    if (!isPrewarming(record)) return;
    const late = Date.now() - Date.parse(record.prewarm.since) >= timeoutMs ? { afterS: timeoutMs / 1000 } : undefined;
    const verdict = prewarmVerdict(record, health, late);
    if (verdict.kind !== "sleep") watched.readySince = undefined;
    if (verdict.kind === "wait") return;
    if (verdict.kind === "ended") return machines.endPrewarm(watched.app, id, "done", "it ran, and ended");
    if (verdict.kind === "failed") {
      machines.endPrewarm(watched.app, id, "failed", verdict.reason);
      if (AT_REST.has(record.state)) return;
      return machines.stop(watched.app, id, { by: BY_PREWARM, reason: verdict.reason });
    }
    if (!suspend.eligible) {
      const reason = `it works, and cannot be suspended: ${suspend.reasons.join("; ")}`;
      machines.endPrewarm(watched.app, id, "done", reason);
      return machines.stop(watched.app, id, { by: BY_PREWARM, reason });
    }
    if (record.prewarm.prepared || this.#hasSettled(id, watched)) await this.#sleep(id, watched);
  }

  /** Whether the machine has been ready for a while. If not, it is looked at again then. */
  #hasSettled(id: string, watched: Watched): boolean {
    const { prewarmSettleMs } = this.#options.deps.settings;
    watched.readySince ??= performance.now();
    const left = watched.readySince + prewarmSettleMs - performance.now();
    if (left <= 0) return true;
    clearTimeout(watched.settle);
    watched.settle = setTimeout(() => this.#look(id), left).unref();
    return false;
  }

  async #sleep(id: string, watched: Watched): Promise<void> {
    const { machines, deps } = this.#options;
    const waits = () => {
      const { record } = machines.get(watched.app, id);
      return !this.#closed && isPrewarming(record) && record.state === "running";
    };
    const sleep = () => {
      // It may have been taken while the proxies were asked.
      if (!waits()) return false;
      machines.suspend(watched.app, id, { by: BY_PREWARM });
      return true;
    };
    watched.asking = true;
    try {
      const free = deps.letGo === undefined ? sleep() || true : await deps.letGo(id, sleep);
      if (!free && waits()) machines.endPrewarm(watched.app, id, "taken", "a request came first");
    } finally {
      watched.asking = false;
    }
  }
}
