/** Templates: the state of a machine that is kept, from which machines are born. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { AppRecord } from "@hibernaut/domain/machine";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { given } from "@hibernaut/lib/given";
import { type Births, launch, requireName } from "../births/bear.ts";
import { bearFrom, requireTemplate } from "../births/from-template.ts";
import { requirePool } from "../births/pool-rules.ts";
import type { Pools, PoolView } from "../births/pools.ts";
import type { Preparation } from "../births/prepare.ts";
import { type ChosenTemplate, type MakerOptions, TemplateMaker } from "../births/template-maker.ts";
import type { MachineController } from "../controller.ts";
import { requireApp } from "../require-app.ts";
import type { TakenFrom } from "../template-claims.ts";
import { type MachineView, viewOf } from "../view.ts";

/** A template, and the machines that were born from it and are not destroyed. */
export interface TemplateView {
  template: TemplateRecord;
  pool: PoolView;
  machines: string[];
}

/** A `word` is a template's id, its name, or the beginning of its id. Every method throws `not_found` without such an app. */
export class Templates {
  readonly #options: MakerOptions;
  readonly #pools: Pools;
  readonly #maker: TemplateMaker;

  constructor(options: MakerOptions, pools: Pools) {
    this.#options = options;
    this.#pools = pools;
    this.#maker = new TemplateMaker(options, pools);
  }

  /** Keeps the state that a machine has now, as {@link TemplateMaker.createOf} says. */
  async createOf(
    app: string,
    chosen: { machine: string } & ChosenTemplate,
    signal: AbortSignal,
  ): Promise<TemplateView> {
    return this.#view(await this.#maker.createOf(app, chosen, signal));
  }

  /** Makes a machine for a template, as {@link TemplateMaker.createFrom} says. */
  async createFrom(app: string, chosen: Preparation & ChosenTemplate, signal: AbortSignal): Promise<TemplateView> {
    return this.#view(await this.#maker.createFrom(app, chosen, signal));
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

  /** Stores a template of another host, as {@link TemplateMaker.adopt} says. */
  adopt(template: TemplateRecord, itsApp: AppRecord, publish: () => Promise<number>): Promise<void> {
    return this.#maker.adopt(template, itsApp, publish);
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
    requirePool(size, deps);
    deps.store.templates.setPool(id, size);
    this.#pools.look(id);
    return this.get(app, id);
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
