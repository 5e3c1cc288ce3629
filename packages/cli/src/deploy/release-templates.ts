/**
 * Templates of a release: the first machine of each process group that passes is kept as one, and the others are made from
 * it, or restored from it, instead of starting from scratch.
 */
import type { Machine, MachineConfig, Template } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { toFailure } from "../failure.ts";
import { sameConfig } from "./plan.ts";

/** What a host refuses to make from a template, it can still do in the ordinary way. */
const ORDINARY = new Set(["failed_precondition", "not_found", "unavailable", "already_exists", "aborted", "host_full"]);

/** The name of a release's template. Those of earlier releases are deleted when a deploy has succeeded. */
export function templateName(release: number, group: string): string {
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

  /** Makes a machine of the group from its template. Undefined if that cannot be done. */
  create(group: string, config: MachineConfig): Promise<Machine | undefined> {
    return this.#use(group, config, async (template) => {
      const client = await this.#context.client();
      return client.createMachine(this.#context.app, { template: template.id });
    });
  }

  /** Restores a machine of the group from its template, and starts it if `running`. Undefined if that cannot be done. */
  update(group: string, machine: string, config: MachineConfig, running: boolean): Promise<Machine | undefined> {
    return this.#use(group, config, async (template) => {
      const client = await this.#context.client();
      return client.restoreMachine(this.#context.app, machine, { template: template.id, skip_launch: !running });
    });
  }

  /** Deletes the templates of earlier releases. The machines that were made from them stay. */
  async deleteEarlier(): Promise<void> {
    const { app } = this.#context;
    const client = await this.#context.client();
    const groups = [...this.#known.keys()];
    for (const { id, name } of await client.listTemplates(app)) {
      const version = Number(OF_A_RELEASE.exec(name)?.[1] ?? this.#release);
      if (version < this.#release && groups.some((group) => name === templateName(version, group)))
        await client.deleteTemplate(app, id).catch(unlessGone);
    }
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
  return ORDINARY.has(toFailure(error).error);
}

/** Another deploy may have deleted it. */
function unlessGone(error: unknown): void {
  if (toFailure(error).error !== "not_found") throw error;
}

/** The newest template of a release from which a machine like this one can be made. Undefined without one. */
export function templateLike({ image, config }: Machine, templates: readonly Template[]): Template | undefined {
  return templates
    .filter(({ name }) => OF_A_RELEASE.test(name))
    .findLast((template) => template.image.digest === image.digest && sameConfig(template.config, config));
}
