/** Restores: a machine gets the memory and the disk of a template in the place of its own, and stays who it is. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { abortable } from "@hibernaut/lib/async";
import { launch } from "../births/bear.ts";
import { fillCradle } from "../births/cradle.ts";
import { requireSameSecrets, requireTemplate, seedOf, type TemplateBirths } from "../births/from-template.ts";
import { bytesOf, requireWhole } from "../births/seed.ts";
import type { MachineController } from "../controller.ts";
import { newUlid } from "../identity.ts";
import { requireFreePorts } from "../tcp-ports.ts";
import { type MachineView, viewOf } from "../view.ts";

/** How long what is being done to the machine may take: as long as its app may take to stop, and some time for the disk. */
const SETTLE_TIMEOUT_MS = 330_000;

export class Restores {
  readonly #births: TemplateBirths;
  /** Machines that are being restored: their files are put together at one place. */
  readonly #busy = new Set<string>();

  constructor(births: TemplateBirths) {
    this.#births = births;
  }

  /**
   * Lets the machine continue where the template stopped, with the template's configuration; it is started unless
   * `skipLaunch` is set. The memory and the disk that it had are gone; a guest ends as if its power was cut. It happens at
   * once, or not at all. Rejects with `failed_precondition` when it has volumes, or the template is damaged, with `aborted` when
   * something else happens to it at the same time, and as an update does, with what `requireStill` throws once its files are
   * copied.
   */
  async restore(
    app: string,
    word: string,
    {
      template: chosen,
      skipLaunch = false,
      requireStill = () => {},
    }: { template: string; skipLaunch?: boolean; requireStill?(): void },
    signal: AbortSignal,
  ): Promise<MachineView> {
    const { deps, controllers, drain } = this.#births;
    drain.refuseWork();
    const controller = controllers.find(app, word);
    const template = requireTemplate(deps, app, chosen);
    const { id, version } = controller.record;
    if (this.#busy.has(id))
      throw new HibernautError("aborted", `Machine ${id} is being restored already. Wait until that is done.`, {
        machine_id: id,
      });
    this.#busy.add(id);
    try {
      await this.#replace(controller, template, requireStill, signal);
    } catch (error) {
      // Says that the template was deleted, if that is why. A machine that was restored needs it no more.
      if (controller.record.version === version) requireTemplate(deps, app, template.id);
      throw error;
    } finally {
      this.#busy.delete(id);
    }
    if (!skipLaunch) launch(controller, deps);
    return viewOf(controller.record, { ...deps, warm: controllers.warm });
  }

  async #replace(
    controller: MachineController,
    template: TemplateRecord,
    requireStill: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { deps, controllers, copying } = this.#births;
    const { machine } = template;
    const { id, snapshot: present } = controller.record;
    if (await deps.files.seeds.isPending(id, present?.generation))
      throw new HibernautError(
        "unavailable",
        `The files of machine ${id} could not be put in their place when it was restored before. Start it first, which tries that again.`,
        { machine_id: id },
      );
    const seed = seedOf(template, deps);
    const bytes = await bytesOf(seed.folder, machine);
    this.#requireAllowed(controller, template, bytes);
    await deps.files.seeds.requireRoom(bytes);
    await requireWhole(seed, deps, signal);
    const [generation, version] = [newUlid(), newUlid()];
    const isRestored = () => controller.record.snapshot?.generation === generation;
    let resume: (() => void) | undefined;
    try {
      await copying.run(() => fillCradle({ deps }, seed, { id, version, generation }, signal), signal);
      await controllers.wait(controller, ["settled"], { timeoutMs: SETTLE_TIMEOUT_MS, signal });
      // New requests wait from now on, and those that are open end first.
      resume = deps.holdBack?.(id);
      if (controller.record.state === "running")
        await abortable(deps.finishRequests?.(id) ?? Promise.resolve(), signal);
      // Others may have changed meanwhile.
      this.#requireAllowed(controller, template, 0);
      requireStill();
      const { config, imageDigest, bundleVersion, snapshot } = machine;
      const born = { config, imageDigest, bundleVersion, version, origin: seed.origin };
      await controller.restore({ ...born, snapshot: snapshot && { ...snapshot, generation } }, async () => {
        await deps.files.seeds.replace(id, generation);
        await deps.snapshots.discardOthers(id, generation);
        await deps.files.forgetMemory(id);
      });
    } catch (error) {
      // From the moment in which the record says so, these files are the machine: the next start puts them in their place.
      if (!isRestored()) await deps.files.seeds.abandon(id);
      throw error;
    } finally {
      resume?.();
    }
  }

  #requireAllowed(controller: MachineController, template: TemplateRecord, bytes: number): void {
    const { deps, drain } = this.#births;
    const { app, id, machine } = template;
    drain.refuseWork();
    requireTemplate(deps, app, id);
    const { record } = controller;
    if ((record.config.mounts ?? []).length > 0)
      throw new HibernautError(
        "failed_precondition",
        `Machine ${record.id} has volumes, whose content would not be what the memory of the template expects. Make a new machine from the template.`,
        { machine_id: record.id },
      );
    // It would start by itself in the middle of it.
    if (record.state === "restarting")
      throw new HibernautError(
        "failed_precondition",
        `Machine ${record.id} crashes, and is about to be started again. Stop it first: \`hibernaut machine stop ${record.id} --app ${app}\`.`,
        { machine_id: record.id },
      );
    requireSameSecrets(template, deps);
    requireFreePorts(deps, app, machine.config);
    deps.quotas?.requireChange(record, machine.config);
    if (bytes > 0) deps.diskQuota?.require(app, bytes);
  }
}
