/** Templates that go to other hosts of a cluster, or come from them. What carries their files is not known here. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { UNRECORDED_PROTOCOL } from "@hibernaut/domain/agent-protocol";
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord } from "@hibernaut/domain/machine";
import type { TemplateRecord } from "@hibernaut/domain/template";
import type { HypervisorIdentity } from "@hibernaut/hypervisor";
import { lackOfRoom } from "@hibernaut/lib/disk-files";
import { madeOf } from "../births/made-template.ts";
import { generationIn } from "../births/seed.ts";
import { nameTakenHere } from "../births/template-names.ts";
import type { MachineDependencies } from "../dependencies.ts";
import type { MadeTemplate, TakenFrom } from "../template-claims.ts";
import type { Arrivals } from "./arrivals.ts";
import type { Papers } from "./departures.ts";
import type { Templates } from "./templates.ts";

/** What another host has to know of a template to say whether it can use it. */
export interface TemplatePapers extends Omit<Papers, "record"> {
  template: TemplateRecord;
}

interface TravelParts {
  deps: MachineDependencies;
  arrivals: Arrivals;
  templates: Templates;
}

export class TemplateTravel {
  readonly #parts: TravelParts;

  constructor(parts: TravelParts) {
    this.#parts = parts;
  }

  /** The templates that this host has. */
  list(): TemplateRecord[] {
    return this.#parts.deps.store.templates.list();
  }

  /** The template with exactly this id. */
  get(id: string): TemplateRecord | undefined {
    return this.#parts.deps.store.templates.get(id);
  }

  /** An app as this host knows it. */
  app(name: string): AppRecord | undefined {
    return this.#parts.deps.store.apps.get(name);
  }

  /** The directory of a template's files. */
  folder(id: string): string {
    return this.#parts.deps.files.seeds.folder(id);
  }

  /** The file in which it may be kept what a template consists of. */
  contents(id: string): string {
    return this.#parts.deps.files.seeds.contents(id);
  }

  /** Where templates of other hosts are put together, each in a directory named by its id. */
  get arrivals(): string {
    return this.#parts.deps.files.seeds.arrivals;
  }

  /** A template of this host as it was made. Rejects with `failed_precondition` when its memory cannot be used any more. */
  made(template: TemplateRecord): Promise<MadeTemplate> {
    return madeOf(template, this.#parts.deps);
  }

  /** What another host is told of a template of this one. Rejects as {@link made} does. */
  async papers(template: TemplateRecord): Promise<TemplatePapers> {
    const { taken } = await this.made(template);
    const rootfs = await this.#parts.deps.images.fingerprint(template.machine.imageDigest);
    return { template, taken, rootfs };
  }

  /**
   * Why no machine could begin with the template here: a stable word, a colon and what differs. Imports its image if that is
   * not here; rejects as the image store does.
   */
  unfit({ template, ...papers }: TemplatePapers): Promise<string | undefined> {
    return this.#parts.arrivals.unfitState({ ...papers, record: template.machine });
  }

  /** Why a host with this hypervisor could not wake what was taken from this. Undefined when it could. */
  refusalOn(taken: TakenFrom, hypervisor: HypervisorIdentity): string | undefined {
    const same = {
      ...{ machineId: taken.machine_id, machineVersion: taken.machine_version, imageDigest: taken.image_digest },
      ...{ bundleVersion: taken.bundle_version, agentProtocol: taken.agent_protocol ?? UNRECORDED_PROTOCOL },
      ...{ cpus: taken.cpus, memoryMb: taken.memory_mb },
    };
    return this.#parts.deps.snapshots.refusal(taken, { ...same, hypervisor });
  }

  /** Throws `failed_precondition` when this host has another template of that name, from before names were those of all hosts. */
  requireFree(template: Pick<TemplateRecord, "id" | "app" | "name">): void {
    const { id, app, name } = template;
    const own = this.#parts.deps.store.templates.list(app);
    if (own.some((each) => each.name === name && each.id !== id)) throw nameTakenHere(template);
  }

  /** Rejects with `over_quota` or `unavailable` when the app may not have, or the disk has no room for, this many bytes more. */
  async requireRoom(app: string, bytes: number): Promise<void> {
    this.#parts.deps.diskQuota?.require(app, bytes);
    await mkdir(this.arrivals, { recursive: true, mode: 0o700 });
    const lack = await lackOfRoom(this.arrivals, bytes);
    if (lack === undefined) return;
    const message = `The disk of ${this.arrivals} has ${lack.free} MB free, and the template needs ${lack.needed} MB. Free some space there, or choose another host.`;
    throw new HibernautError("unavailable", message);
  }

  /**
   * Stores a template whose files are whole in the directory for arrivals. Rejects with `failed_precondition` when they are
   * damaged, or this host has another one of its name, and with `aborted` when its name is no longer this app's; then there is
   * none.
   */
  async takeIn(template: TemplateRecord, app: AppRecord, signal: AbortSignal): Promise<void> {
    const { deps, templates } = this.#parts;
    const { id, machine } = template;
    const folder = join(this.arrivals, id);
    await deps.snapshots.sealIn(generationIn(folder, machine), machine.id, signal);
    await templates.adopt(template, app, () => deps.files.seeds.publish(id, folder));
    deps.log.info({ template: id, app: app.name }, "a template has come from another host");
  }

  /** Deletes what this host has of a template that was ended. Machines that were born from it stay. */
  drop(id: string): Promise<void> {
    return this.#parts.templates.drop(id);
  }
}
