/** Holds apps to their quotas. Counts what is stored, so that there is nothing that could be counted wrong. */
import { guestSize, type MachineConfig } from "@hibernaut/domain/config";
import type { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isPreviewOf } from "@hibernaut/domain/preview";
import { overQuota, QUOTA_NAMES, type Quota, type QuotaOverrides } from "@hibernaut/domain/quota";
import type { AppStore, Store } from "@hibernaut/store";
import { occupies } from "./decide/occupies.ts";

interface QuotasOptions {
  store: Pick<Store, "apps" | "machines" | "volumes" | "hostnames" | "certificates">;
  /** The limits of apps that have none of their own. */
  defaults: Quota;
}

/** Knows what apps may have, and what they have. */
export class Quotas {
  readonly #options: QuotasOptions;

  constructor(options: QuotasOptions) {
    this.#options = options;
  }

  /** Returns the same rules over other records of apps. */
  over(apps: AppStore): Quotas {
    const { store, defaults } = this.#options;
    return new Quotas({ defaults, store: { ...store, apps } });
  }

  /** The limits of an app. 0 means that there is none. */
  limitsOf(app: string): Quota {
    const { store, defaults } = this.#options;
    return { ...defaults, ...store.apps.get(app)?.quota };
  }

  /** What an app has. */
  usedBy(app: string): Quota {
    const { store } = this.#options;
    const volumeGb = store.volumes.list(app).reduce((sum, { sizeGb }) => sum + sizeGb, 0);
    const count = (all: readonly { app: string }[]) => all.filter((each) => each.app === app).length;
    const [hostnames, certificates] = [count(store.hostnames.list()), count(store.certificates.list())];
    const production = store.apps.get(app);
    const previews = production && store.apps.list().filter((each) => isPreviewOf(each, production));
    const others = { volumeGb, hostnames, certificates, previews: previews?.length ?? 0 };
    return usedQuota(store.machines.list(app), others);
  }

  /** Replaces the app's own limits. The app must exist. */
  set(app: string, quota: QuotaOverrides): void {
    this.#options.store.apps.setQuota(app, quota);
  }

  /**
   * Throws `failed_precondition` if the app may not have `count` more machines like this, by default one, which are started if
   * `starts`.
   */
  requireMachine(app: string, config: MachineConfig, { starts, count = 1 }: { starts: boolean; count?: number }): void {
    const { cpus, memoryMb } = guestSize(config);
    const running = starts ? count : 0;
    this.#require(app, { machines: count, running, cpus: count * cpus, memory_mb: count * memoryMb });
  }

  /** Throws `failed_precondition` if the machine may not become as large as `config` says. */
  requireChange({ app, config: before }: MachineRecord, config: MachineConfig): void {
    const [from, to] = [guestSize(before), guestSize(config)];
    this.#require(app, { cpus: to.cpus - from.cpus, memory_mb: to.memoryMb - from.memoryMb });
  }

  /** Throws `failed_precondition` if the app may not have that many more GB of volumes. */
  requireVolume(app: string, gb: number): void {
    this.#require(app, { volume_gb: gb });
  }

  /** Throws `failed_precondition` if the app may not have one more hostname. */
  requireHostname(app: string): void {
    this.#require(app, { hostnames: 1 });
  }

  /** Throws `failed_precondition` if the app may not have one more certificate. */
  requireCertificate(app: string): void {
    this.#require(app, { certificates: 1 });
  }

  /** Throws `failed_precondition` if the app may not have one more preview. */
  requirePreview(app: string): void {
    this.#require(app, { previews: 1 });
  }

  /** Why one more machine of the app may not run; undefined if it may. */
  startRefusal(app: string): HibernautError | undefined {
    return this.#refusal(app, { running: 1 });
  }

  #require(app: string, wanted: Partial<Quota>): void {
    const refusal = this.#refusal(app, wanted);
    if (refusal !== undefined) throw refusal;
  }

  #refusal(app: string, wanted: Partial<Quota>): HibernautError | undefined {
    const limits = this.limitsOf(app);
    // Without limits, nothing is counted.
    if (QUOTA_NAMES.every((name) => limits[name] === 0 || (wanted[name] ?? 0) <= 0)) return undefined;
    return overQuota({ app, limits, used: this.usedBy(app), wanted });
  }
}

/** What an app has in addition to its machines. */
interface OtherUse {
  volumeGb: number;
  hostnames: number;
  certificates: number;
  previews: number;
}

/** Adds up what an app has: its machines that are not destroyed, and the rest. */
export function usedQuota(machines: readonly MachineRecord[], { volumeGb, ...rest }: OtherUse): Quota {
  const sizes = machines.map(({ config }) => guestSize(config));
  return {
    machines: machines.length,
    running: machines.filter(occupies).length,
    cpus: sizes.reduce((sum, { cpus }) => sum + cpus, 0),
    memory_mb: sizes.reduce((sum, { memoryMb }) => sum + memoryMb, 0),
    volume_gb: volumeGb,
    ...rest,
  };
}
