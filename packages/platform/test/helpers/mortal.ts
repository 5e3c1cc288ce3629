/**
 * Kills a platform at an exact step, as `kill -9` would: every call to the world outside (store,
 * hypervisor, VMM, snapshots, files) is a step; from the fatal one on, no call has any effect.
 */
import type { Vmm } from "@hibernaut/hypervisor";
import type { VolumesOptions } from "@hibernaut/volumes/open";
import type { MachineDependencies } from "../../../machines/src/dependencies.ts";

/** Thrown by synchronous calls of a dead platform, so that its code stops where it is. */
export class Killed extends Error {
  override name = "Killed";
}

export class Mortality {
  /** Names of the steps so far. */
  readonly steps: string[] = [];
  readonly death = Promise.withResolvers<void>();
  dead = false;
  readonly #fatal: number;
  /** Calls that have not returned. */
  readonly #underWay = new Set<Promise<unknown>>();
  /** Those of them that return in any case: they only move bytes. */
  readonly #copies = new Set<Promise<unknown>>();
  #when: "before" | "after";
  #armed: { name: string; times: number } | undefined;

  /** Dies before, or right after, the step with this number (from 0). */
  constructor(fatal = Number.POSITIVE_INFINITY, when: "before" | "after" = "before") {
    this.#fatal = fatal;
    this.#when = when;
  }

  /** From now on: dies at a step of this name, after `passing` more of that name. */
  arm(name: string, when: "before" | "after", { passing = 0 } = {}): void {
    this.#armed = { name, times: passing };
    this.#when = when;
  }

  #isFatal(name: string): boolean {
    if (this.#armed === undefined) return this.steps.length - 1 === this.#fatal;
    if (this.#armed.name !== name) return false;
    this.#armed.times -= 1;
    return this.#armed.times < 0;
  }

  wrap(deps: MachineDependencies): MachineDependencies {
    const { machines } = deps.store;
    const store = {
      ...deps.store,
      apps: deps.store.apps,
      tokens: deps.store.tokens,
      machines: this.#sync(machines, "store", ["insert", "update"]),
      templates: this.#sync(deps.store.templates, "templates", ["insert", "remove"]),
      drain: this.#sync(deps.store.drain, "drain", ["set", "clear"]),
    };
    const volumes = this.#async(deps.volumes, "volumes", ["hold", "disks"]);
    const files = this.#async(deps.files, "files", ["freshLayer", "remove", "forgetMemory", "forgetBeside"]);
    const seeds = this.#async(deps.files.seeds, "seeds", [
      "publish",
      "removeDraft",
      "remove",
      "deliver",
      "replace",
      "abandon",
    ]);
    const copying = new Proxy(seeds, {
      get: (target, key) =>
        key === "copierTo"
          ? (id: string) => this.#async(target.copierTo(id), "copier", [], this.#copies)
          : Reflect.get(target, key),
    });
    const travel = this.#async(deps.volumes.travel, "travel", ["place", "removeFiles"]);
    return {
      ...deps,
      store: this.#sync(store, "store", ["together"]),
      secrets: this.#sync(deps.secrets, "secrets", ["set", "unset"]),
      hypervisor: this.#async(deps.hypervisor, "hypervisor", ["boot", "restore", "end", "adopt"]),
      snapshots: this.#async(deps.snapshots, "snapshots", [
        "draft",
        "publish",
        "fitting",
        "stage",
        "discard",
        "discardOthers",
        "captureCopy",
        "describeCopy",
        "sealIn",
        "inherit",
        "arrived",
      ]),
      carryOvers: this.#async(deps.carryOvers, "carryOvers", ["failed"]),
      files: new Proxy(files, { get: (target, key) => (key === "seeds" ? copying : Reflect.get(target, key)) }),
      volumes: new Proxy(volumes, { get: (target, key) => (key === "travel" ? travel : Reflect.get(target, key)) }),
      ...(deps.ownership !== undefined && { ownership: this.#async(deps.ownership, "ownership", ["claim"]) }),
    };
  }

  /** The same for what volumes are made with. */
  wrapVolumes(options: VolumesOptions): VolumesOptions {
    const records = ["insert", "update", "remove", "insertSnapshot", "updateSnapshot", "removeSnapshot"];
    const volumes = this.#sync(options.store.volumes, "volumes", records);
    const files = this.#async(options.files, "files", ["make", "copy", "grow", "remove", "removeSnapshot"]);
    return { ...options, store: { ...options.store, volumes }, files };
  }

  /** The same for anything else. */
  guard<T extends object>(target: T, name: string, steps: { async?: string[]; sync?: string[] }): T {
    return this.#sync(this.#async(target, name, steps.async ?? []), name, steps.sync ?? []);
  }

  kill(): void {
    this.dead = true;
    this.death.resolve();
  }

  /**
   * Resolves once nothing of it touches the host's files any more: with its process, a kernel ends what it was at. Of a living
   * one, close the platform first.
   */
  async ended(): Promise<void> {
    const calls = this.dead ? this.#copies : this.#underWay;
    while (calls.size > 0) await Promise.allSettled(calls);
  }

  #sync<T extends object>(target: T, name: string, steps: string[]): T {
    return this.#proxy(target, name, steps, (call) => {
      if (this.dead) throw new Killed();
      return call();
    });
  }

  #async<T extends object>(target: T, name: string, steps: string[], calls = this.#underWay): T {
    return this.#proxy(target, name, steps, (call) => {
      if (this.dead) return new Promise(() => {});
      const result = call();
      if (!(result instanceof Promise)) return result;
      calls.add(result);
      void result.finally(() => calls.delete(result)).catch(() => {});
      return result.then(
        (value: unknown) => (this.dead ? new Promise(() => {}) : this.#mortalVmm(value)),
        (error: unknown) => (this.dead ? new Promise(() => {}) : Promise.reject(error as Error)),
      );
    });
  }

  #mortalVmm(value: unknown): unknown {
    if (typeof value !== "object" || value === null || !("openChannel" in value)) return value;
    const vmm = value as Vmm;
    void this.death.promise.then(() => vmm.release());
    return this.#async(vmm, "vmm", ["run", "pause", "prepareCapture", "capture", "openChannel", "kill"]);
  }

  #proxy<T extends object>(target: T, name: string, steps: string[], guard: (call: () => unknown) => unknown): T {
    return new Proxy(target, {
      get: (object, key) => {
        const member = Reflect.get(object, key, object) as unknown;
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          const counted = steps.includes(String(key)) && !this.dead;
          if (counted) this.steps.push(`${name}.${String(key)}`);
          const fatal = counted && this.#isFatal(`${name}.${String(key)}`);
          if (fatal && this.#when === "before") this.kill();
          const result = guard(() => {
            const value = member.apply(object, args) as unknown;
            if (!fatal) return value;
            if (value instanceof Promise) return value.finally(() => this.kill());
            this.kill();
            throw new Killed();
          });
          return result;
        };
      },
    });
  }
}
