/** How templates are made: of a machine, from an image, or with the files of one that was made on another host. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord, MachineRecord } from "@hibernaut/domain/machine";
import type { ProgramDefaults } from "@hibernaut/domain/sandbox";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { abortable } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { MachineController } from "../controller.ts";
import { createMachine } from "../create-machine.ts";
import { newMachineId, newMachineName } from "../identity.ts";
import { requireApp, requireSame, sameApp } from "../require-app.ts";
import type { MachineCopies } from "../resources/machine-copies.ts";
import { DESTROY_TIMEOUT_MS } from "../waiting.ts";
import type { TemplateBirths } from "./from-template.ts";
import { madeOf } from "./made-template.ts";
import { requirePool } from "./pool-rules.ts";
import type { Pools } from "./pools.ts";
import { type Preparation, prepareMachine } from "./prepare.ts";
import { bytesOf, generationIn, requireSeed, takeSeed } from "./seed.ts";
import { nameTakenHere, requireFreeName, requireTemplateName } from "./template-names.ts";

export interface MakerOptions extends TemplateBirths {
  copies: Pick<MachineCopies, "copy">;
}

/** What is chosen for a template. */
export interface ChosenTemplate {
  /** By default, a random one. */
  name?: string | undefined;
  /** How many machines wait asleep, ready to be taken. Default: 0. */
  warmPool?: number | undefined;
  /** How programs of sandboxes begin in what is born from it. By default, as in the machine. */
  programs?: ProgramDefaults | undefined;
}

export class TemplateMaker {
  readonly #options: MakerOptions;
  readonly #pools: Pick<Pools, "look">;

  constructor(options: MakerOptions, pools: Pick<Pools, "look">) {
    this.#options = options;
    this.#pools = pools;
  }

  /**
   * Keeps the state that a running or sleeping machine has now. The machine continues; a running one finishes its open
   * requests first, while new ones wait, and is paused for the copy. They continue once it is copied.
   * Rejects with `failed_precondition` when nothing can be born from it, with `already_exists` when the name is taken, and as
   * {@link takeSeed} does; then there is no template.
   */
  async createOf(
    app: string,
    { machine: word, ...chosen }: { machine: string } & ChosenTemplate,
    signal: AbortSignal,
  ): Promise<TemplateRecord> {
    const { deps, controllers } = this.#options;
    const { record } = controllers.find(app, word);
    await requireTemplateName(deps, app, chosen.name);
    requirePool(chosen.warmPool ?? 0, deps);
    requireSeed(record, deps);
    // A request in the memory would continue in every machine that is born from it.
    let resume = record.state === "running" ? deps.holdBack?.(record.id) : undefined;
    const goOn = () => {
      resume?.();
      resume = undefined;
    };
    try {
      if (record.state === "running") await abortable(deps.finishRequests?.(record.id) ?? Promise.resolve(), signal);
      return await this.#keep(record, { ...chosen, onCopied: goOn }, signal);
    } finally {
      goOn();
    }
  }

  /**
   * Makes a machine, prepares it, keeps its state and destroys it. Rejects as the creation of machines, and
   * {@link prepareMachine}, do; then there is no template.
   */
  async createFrom(
    app: string,
    { name, warmPool, ...preparation }: Preparation & ChosenTemplate,
    signal: AbortSignal,
  ): Promise<TemplateRecord> {
    const { deps, controllers, drain } = this.#options;
    drain.refuseWork();
    requireApp(deps.store.apps, app);
    await requireTemplateName(deps, app, name);
    requirePool(warmPool ?? 0, deps);
    if ((preparation.config.mounts ?? []).length > 0)
      throw new HibernautError(
        "failed_precondition",
        "No template can have volumes, because a volume belongs to one machine. Leave `mounts` out.",
        { field: "mounts" },
      );
    const context = { deps, controllers, refuseWork: () => drain.refuseWork() };
    const { config } = preparation;
    // It gets no requests, and the proxy does not put it to sleep.
    const controller = await createMachine(context, app, { config, cordoned: true, temporary: true });
    try {
      await prepareMachine(controller, preparation, controllers, signal);
      requireSeed(controller.record, deps);
      return await this.#keep(controller.record, { name, warmPool }, signal);
    } finally {
      await this.#destroy(controller);
    }
  }

  /** Never rejects: the template is made, or the reason why not is better known than this one. */
  async #destroy(controller: MachineController): Promise<void> {
    const { controllers, deps } = this.#options;
    try {
      controller.command({ type: "destroy", force: true });
      await controllers.wait(controller, ["destroyed"], { timeoutMs: DESTROY_TIMEOUT_MS });
    } catch (error) {
      const { id: machine } = controller.record;
      deps.log.warn({ machine, reason: messageOf(error) }, "the machine of a template is destroyed at the next start");
    }
  }

  async #keep(
    record: MachineRecord,
    {
      name = newMachineName(),
      warmPool = 0,
      programs,
      onCopied,
    }: ChosenTemplate & {
      /** Called once the machine is not needed any more. */
      onCopied?(): void;
    },
    signal: AbortSignal,
  ): Promise<TemplateRecord> {
    const { deps, copies, copying, controllers } = this.#options;
    const files = deps.files.seeds;
    const { app } = record;
    const stillThere = sameApp(deps.store.apps, app);
    deps.diskQuota?.require(app, await bytesOf(deps.files.paths(record.id).folder, record));
    const id = newMachineId();
    const origin = { kind: "template", machine: record.id, template: id } as const;
    const seed = await takeSeed({ machineId: record.id, id, origin }, { copies, copying, ports: deps }, signal);
    onCopied?.();
    try {
      await deps.snapshots.sealIn(generationIn(seed.folder, seed.record), record.id, signal);
      const sizeBytes = await files.publish(id);
      const createdAt = (deps.clock?.() ?? new Date()).toISOString();
      const machine = { ...keptOf(seed.record), ...(programs !== undefined && { programs }) };
      const template = { id, app, name, createdAt, sizeBytes, warmPool, machine };
      const store = () => {
        stillThere();
        controllers.deletions.requireLasting(app);
        // Others may have been made meanwhile. Its files count from when it is stored.
        deps.diskQuota?.require(app, sizeBytes);
        if (deps.store.templates.insert(template)) return;
        requireApp(deps.store.apps, app);
        requireFreeName(deps.store, app, name);
      };
      if (deps.templateClaims === undefined) store();
      else await deps.templateClaims.claim(await madeOf(template, deps), store, signal);
      if (warmPool > 0) this.#pools.look(id);
      return template;
    } catch (error) {
      await files.remove(id);
      throw error;
    }
  }

  /**
   * Stores a template that was made on another host, whose files `publish` puts in their place. Rejects with
   * `failed_precondition` when another template of this host has its name, and with `aborted` when its app is not this one any
   * more; then nothing of it is left.
   */
  async adopt(template: TemplateRecord, itsApp: AppRecord, publish: () => Promise<number>): Promise<void> {
    const { deps, controllers } = this.#options;
    const { store, files } = deps;
    const { id, app } = template;
    try {
      const sizeBytes = await publish();
      // The app may have been deleted while the files came, and another one made with its name.
      requireSame(store.apps, itsApp);
      controllers.deletions.requireLasting(app);
      // Others may have come meanwhile. Its files count from when it is stored.
      deps.diskQuota?.require(app, sizeBytes);
      if (store.templates.insert({ ...template, sizeBytes, warmPool: 0, copied: true })) return;
      throw nameTakenHere(template);
    } catch (error) {
      await files.seeds.remove(id);
      throw error;
    }
  }
}

/** What is kept of the machine's record: what a birth needs, and nothing that is over with the moment. */
function keptOf({ temporary: _temporary, sandbox: _sandbox, ...record }: MachineRecord): MachineRecord {
  return {
    ...record,
    cordoned: false,
    keepAwake: null,
    lease: null,
    wakeAt: null,
    crash: null,
    prewarm: null,
    notSuspended: null,
    drained: false,
  };
}
