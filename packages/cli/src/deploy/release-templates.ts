/**
 * Templates of a release: the first machine of each process group that passes is kept as one, and the others are made from
 * it, or restored from it, instead of starting from scratch.
 */
import type { Machine, MachineConfig, Template } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { toFailure } from "../failure.ts";
import { given } from "../option-values.ts";
import { sameConfig } from "./plan.ts";

/** What a host refuses to make from a template, it can still do in the ordinary way. */
const ORDINARY = new Set(["failed_precondition", "not_found", "unavailable", "already_exists", "aborted", "host_full"]);

/** The name of a release's template. Those of earlier releases are deleted when a deploy has succeeded. */
function templateName(release: number, group: string): string {
  return `release-${release}-${group}`.slice(0, 60);
}

const OF_A_RELEASE = /^release-(\d+)-/;

export class ReleaseTemplates {
  readonly #context: Context;
  readonly #release: number;
  readonly #say: (text: string) => void;
  /** By process group. Undefined for a group that has none, and gets none. */
  readonly #known = new Map<string, Template | undefined>();

  constructor(context: Context, release: number, say: (text: string) => void) {
    this.#context = context;
    this.#release = release;
    this.#say = say;
  }

  /** Keeps a machine that has passed, unless its group has a template. Never rejects: a deploy does without. */
  async keep(group: string, machine: string): Promise<void> {
    if (this.#known.has(group)) return;
    this.#known.set(group, undefined);
    const { app } = this.#context;
    const name = templateName(this.#release, group);
    try {
      const template = await (await this.#context.client()).createTemplate(app, { from: machine, name });
      this.#known.set(group, template);
      this.#say(`Machine ${machine} is kept as template ${name}.`);
    } catch (error) {
      this.#say(`There is no template of process group ${group}: ${toFailure(error).message}`);
    }
  }

  /** Makes a machine of the group from its template, in a cluster on this host. Undefined if that cannot be done. */
  create(group: string, config: MachineConfig, host?: string): Promise<Machine | undefined> {
    return this.#use(group, config, async (template) => {
      const client = await this.#context.client();
      return client.createMachine(this.#context.app, { template: template.id, ...given({ host }) });
    });
  }

  /** Restores a machine of the group from its template, and starts it if `running`. Undefined if that cannot be done. */
  update(group: string, machine: string, config: MachineConfig, running: boolean): Promise<Machine | undefined> {
    return this.#use(group, config, async (template) => {
      const client = await this.#context.client();
      return client.restoreMachine(this.#context.app, machine, { template: template.id, skip_launch: !running });
    });
  }

  /**
   * Deletes the templates of these process groups that earlier releases kept. If this one kept none, because no machine had to
   * start, the template stays of which the machines still are. Those that were made from a template stay.
   */
  async deleteEarlier(groups: Iterable<string>): Promise<void> {
    const { app } = this.#context;
    const client = await this.#context.client();
    const names = [...groups];
    const earlier = (await client.listTemplates(app)).flatMap((template) => {
      const version = Number(OF_A_RELEASE.exec(template.name)?.[1] ?? this.#release);
      const group = names.find((one) => template.name === templateName(version, one));
      return version < this.#release && group !== undefined ? [{ template, group }] : [];
    });
    if (earlier.length === 0) return;
    const machines = await client.listMachines(app);
    for (const { template, group } of earlier)
      if (this.#known.has(group) || !machines.some((machine) => isLike(machine, template)))
        await client.deleteTemplate(app, template.id).catch(unlessGone);
  }

  async #use(
    group: string,
    config: MachineConfig,
    work: (template: Template) => Promise<Machine>,
  ): Promise<Machine | undefined> {
    const template = this.#known.get(group);
    if (template === undefined || !sameConfig(template.config, config)) return undefined;
    try {
      return await work(template);
    } catch (error) {
      if (!isUnusable(error)) throw error;
      this.#say(`Template ${template.name} cannot be used: ${toFailure(error).message}`);
      return undefined;
    }
  }
}

/** Whether what was refused can still be done without a template. */
export function isUnusable(error: unknown): boolean {
  const { error: code, details } = toFailure(error);
  // The hosts that have it are away, and nothing was made.
  return ORDINARY.has(code) || (code === "host_unreachable" && details?.template !== undefined);
}

/** Another deploy may have deleted it. */
function unlessGone(error: unknown): void {
  if (toFailure(error).error !== "not_found") throw error;
}

/** The newest template of a release from which a machine like this one can be made. Undefined without one. */
export function templateLike(machine: Machine, templates: readonly Template[]): Template | undefined {
  return templates.filter(({ name }) => OF_A_RELEASE.test(name)).findLast((template) => isLike(machine, template));
}

/** Whether the template makes machines of the same image and configuration. */
function isLike({ image, config }: Machine, template: Template): boolean {
  return template.image.digest === image.digest && sameConfig(template.config, config);
}
