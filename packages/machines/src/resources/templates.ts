/** Templates: the state of a machine that is kept, from which machines are born. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord, MachineRecord } from "@hibernaut/domain/machine";
import { isValidName, NAME_RULE } from "@hibernaut/domain/naming";
import type { ProgramDefaults } from "@hibernaut/domain/sandbox";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { abortable } from "@hibernaut/lib/async";
import { given } from "@hibernaut/lib/given";
import { messageOf } from "@hibernaut/lib/text";
import { type Births, launch, requireName } from "../births/bear.ts";
import { bearFrom, requireTemplate, type TemplateBirths } from "../births/from-template.ts";
import { madeOf } from "../births/made-template.ts";
import type { Pools, PoolView } from "../births/pools.ts";
import { type Preparation, prepareMachine } from "../births/prepare.ts";
import { bytesOf, generationIn, requireSeed, takeSeed } from "../births/seed.ts";
import type { MachineController } from "../controller.ts";
import { createMachine } from "../create-machine.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { newMachineId, newMachineName } from "../identity.ts";
import { requireApp, requireSame, sameApp } from "../require-app.ts";
import type { TakenFrom } from "../template-claims.ts";
import { type MachineView, viewOf } from "../view.ts";
import type { MachineCopies } from "./machine-copies.ts";

/** How long the end of the machine of a template may take: it has no volumes and no requests. */
const DESTROY_TIMEOUT_MS = 60_000;

interface TemplatesOptions extends TemplateBirths {
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

/** A template, and the machines that were born from it and are not destroyed. */
export interface TemplateView {
  template: TemplateRecord;
  pool: PoolView;
  machines: string[];
}

/** A `word` is a template's id, its name, or the beginning of its id. Every method throws `not_found` without such an app. */
export class Templates {
  readonly #options: TemplatesOptions;
  readonly #pools: Pools;

  constructor(options: TemplatesOptions, pools: Pools) {
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
  ): Promise<TemplateView> {
    const { deps, controllers } = this.#options;
    const { record } = controllers.find(app, word);
    await this.#requireName(app, chosen.name);
    this.#requirePool(chosen.warmPool ?? 0);
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
  ): Promise<TemplateView> {
    const { deps, controllers, drain } = this.#options;
    drain.refuseWork();
    requireApp(deps.store.apps, app);
    await this.#requireName(app, name);
    this.#requirePool(warmPool ?? 0);
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

  /** Destroys the machines that an earlier platform made for a while, such as for a template: nobody waits for them any more. */
  recover(): void {
    const { controllers, deps } = this.#options;
    for (const controller of controllers.all()) {
      if (controller.record.temporary !== true) continue;
      deps.log.warn({ machine: controller.record.id }, "a machine was left that was made for a while");
      controller.command({ type: "destroy", force: true });
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
  ): Promise<TemplateView> {
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
      return this.#view(template);
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

  /** Lists the templates of an app, oldest first. */
  list(app: string): TemplateView[] {
    const { store } = this.#options.deps;
    requireApp(store.apps, app);
    return store.templates.list(app).map((template) => this.#view(template));
  }

  get(app: string, word: string): TemplateView {
    return this.#view(requireTemplate(this.#options.deps, app, word));
  }

  /**
   * Makes a machine that begins where the template stopped, or with `mounts` with its disk alone, and starts it unless
   * `skipLaunch` is set. Rejects as the creation of machines does; then there is none.
   */
  async bear(
    app: string,
    word: string,
    { skipLaunch = false, ...birth }: Omit<Births, "count"> & { skipLaunch?: boolean },
    signal: AbortSignal,
  ): Promise<MachineView> {
    const { deps, controllers, counts } = this.#options;
    const template = requireTemplate(deps, app, word);
    const taken = await this.#fromPool(template, { ...birth, starts: !skipLaunch });
    const born = taken ?? (await bearFrom(this.#options, template, { ...birth, starts: !skipLaunch }, signal));
    counts.add(taken === undefined ? "template" : "pool");
    if (!skipLaunch) launch(born, deps);
    return viewOf(born.record, { ...deps, warm: controllers.warm });
  }

  /**
   * Throws `draining`, `host_full` or `resource_exhausted` when no machine of this size could be started here for the app now: before a
   * template is copied for it.
   */
  requireStart(app: string, { cpus, memory_mb }: Pick<TakenFrom, "cpus" | "memory_mb">): void {
    this.#options.drain.refuseWork();
    this.#requireStart(app, { image: "", guest: { cpus, memory_mb } });
  }

  /** Deletes a template. The machines that were born from it stay: each has files of its own. */
  async delete(app: string, word: string): Promise<void> {
    await this.#end(requireTemplate(this.#options.deps, app, word));
  }

  /** Deletes what this host has of a template that no host may use any more. */
  async drop(id: string): Promise<void> {
    const template = this.#options.deps.store.templates.get(id);
    if (template !== undefined) await this.#remove(template);
  }

  /** Deletes all templates of an app. */
  async deleteAll(app: string): Promise<void> {
    for (const template of this.#options.deps.store.templates.list(app)) await this.#end(template);
    await this.#pools.emptyApp(app);
  }

  /** Sets how many machines wait asleep, ready to be taken. They are made, or destroyed, in the background. */
  setPool(app: string, word: string, size: number): TemplateView {
    const { deps } = this.#options;
    const { id } = requireTemplate(deps, app, word);
    this.#requirePool(size);
    deps.store.templates.setPool(id, size);
    this.#pools.look(id);
    return this.get(app, id);
  }

  #requirePool(size: number): void {
    if (size === 0 || this.#options.deps.ownership === undefined) return;
    const message =
      "In a cluster, templates have no pools. Make the machines when they are needed, or leave `warm_pool` out.";
    throw new HibernautError("failed_precondition", message, { field: "warm_pool" });
  }

  /** In a cluster, all hosts are told first: a copy that one of them keeps would otherwise be the template. */
  async #end(template: TemplateRecord): Promise<void> {
    await this.#options.deps.templateClaims?.end(template);
    await this.#remove(template);
  }

  async #remove(template: TemplateRecord): Promise<void> {
    const { store, files, templateClaims } = this.#options.deps;
    store.templates.remove(template);
    await this.#pools.empty(template.id);
    await files.seeds.remove(template.id);
    templateClaims?.left(template);
  }

  /** Programs that run already cannot get another environment, or find volumes. Throws when the machine could not be started now. */
  async #fromPool(
    template: TemplateRecord,
    {
      name,
      env,
      cordoned,
      egress,
      sandbox,
      lease,
      temporary,
      mounts,
      starts,
    }: Omit<Births, "count"> & {
      starts: boolean;
    },
  ): Promise<MachineController | undefined> {
    const { deps, drain } = this.#options;
    const { app, machine } = template;
    if (env !== undefined || mounts !== undefined || temporary === true || !this.#pools.has(template)) return undefined;
    drain.refuseWork();
    if (name !== undefined) requireName(deps, app, name);
    if (starts) this.#requireStart(app, machine.config);
    return this.#pools.take(template, {
      ...given({ name, cordoned, egress, sandbox, lease }),
    });
  }

  #requireStart(app: string, config: MachineConfig): void {
    const { deps, controllers } = this.#options;
    controllers.admission.require({ id: "", config }, `a machine of app ${app}`);
    const refusal = deps.quotas?.startRefusal(app);
    if (refusal !== undefined) throw refusal;
  }

  async #requireName(app: string, name: string | undefined): Promise<void> {
    if (name === undefined) return;
    if (!isValidName(name))
      throw new HibernautError("invalid_argument", `A template's name ${NAME_RULE}.`, { field: "name", value: name });
    const { store, templateClaims } = this.#options.deps;
    requireFreeName(store, app, name);
    await templateClaims?.requireFree(app, name);
  }

  #view(template: TemplateRecord): TemplateView {
    const born = this.#options.controllers.of(template.app).map(({ record }) => record);
    const pool = this.#pools.view(template);
    return {
      template,
      pool,
      machines: born.filter(({ origin }) => origin?.template === template.id).map(({ id }) => id),
    };
  }
}

function requireFreeName(
  { templates }: Pick<MachineDependencies["store"], "templates">,
  app: string,
  name: string,
): void {
  const holder = templates.list(app).find((one) => one.name === name);
  if (holder !== undefined) throw nameTaken(app, name, holder.id);
}

/** Another template of the app has the name. */
export function nameTaken(app: string, name: string, holder: string): HibernautError {
  const message = `App ${app} already has a template named ${name} (${holder}). Choose another name, or delete it first.`;
  return new HibernautError("already_exists", message, { template: holder });
}

/** This host has another template of the name of one that would come here. */
export function nameTakenHere({ id, app, name }: Pick<TemplateRecord, "id" | "app" | "name">): HibernautError {
  const message = `This host has another template named ${name} of app ${app}, from before names were those of all hosts. Delete that one first, by its ID.`;
  return new HibernautError("failed_precondition", message, { template: id });
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
