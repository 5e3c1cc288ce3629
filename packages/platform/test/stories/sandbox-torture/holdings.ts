/** The sandboxes of one program: those that it was told of, and those that must be gone. */
import { Sandbox, type SandboxInfo } from "e2b";
import { Kept, look } from "./kept.ts";
import { kill } from "./life.ts";
import type { World } from "./world.ts";

export class Holdings {
  readonly kept: Kept[] = [];
  readonly #world: World;
  /** Killed, acknowledged. */
  readonly #dead = new Set<string>();
  /** The platform was killed while it made some: there may be some that nobody was told of. */
  #maybeOthers = false;

  constructor(world: World) {
    this.#world = world;
  }

  /** A virtual machine is killed. */
  strike(machineId: string): void {
    for (const kept of this.kept) if (kept.id === machineId) kept.strike();
  }

  async take(children: Kept[]): Promise<void> {
    this.kept.push(...children);
    for (const child of children) {
      this.#world.unique(`sandbox ${child.id}`);
      if (this.#dead.has(child.id)) this.#world.wrong(`${child.id} is born again`);
    }
    for (const child of children) await look(this.#world, child);
  }

  async kill(kept: Kept): Promise<void> {
    if (!(await kill(this.#world, kept))) return;
    this.#dead.add(kept.id);
    const at = this.kept.indexOf(kept);
    if (at >= 0) this.kept.splice(at, 1); // one that nobody was told of is not among them
  }

  /** A call that makes some has failed. Nothing is left of it, unless the platform could not clear up. */
  suspect(began: number): void {
    if (this.#world.faults.away(began)) this.#maybeOthers = true;
  }

  async all(): Promise<SandboxInfo[] | undefined> {
    const all = async () => {
      const found: SandboxInfo[] = [];
      const pages = Sandbox.list({
        ...this.#world.options,
        query: { metadata: { program: this.#world.name } },
        limit: 2,
      });
      while (pages.hasNext) found.push(...(await pages.nextItems()));
      return found;
    };
    return (await this.#world.attempt("list", all, "none"))?.value;
  }

  /** Compares the list with what was acknowledged, and throws away what nobody was told of. */
  async compare(): Promise<void> {
    const all = await this.all();
    if (all === undefined) return;
    for (const kept of this.kept) {
      const state = all.find(({ sandboxId }) => sandboxId === kept.id)?.state;
      if (state === undefined && !kept.mayBeGone) this.#world.wrong(`${kept.id} is not in the list`);
      if (state !== undefined && kept.state !== "unsure" && state !== kept.state)
        this.#world.wrong(`${kept.id} is ${state} in the list, and not ${kept.state}`);
    }
    for (const { sandboxId } of all) {
      if (this.#dead.has(sandboxId)) this.#world.wrong(`${sandboxId} was killed, and is in the list`);
      if (this.kept.some(({ id }) => id === sandboxId)) continue;
      if (!this.#maybeOthers) this.#world.wrong(`nobody made ${sandboxId}`);
      // It is whole: it runs, or can be woken, and killed.
      const done = await this.#world.attempt("adopt", () => Sandbox.connect(sandboxId, this.#world.options), sandboxId);
      if (done === undefined) return;
      const kept = new Kept(done.value);
      await look(this.#world, kept);
      await this.kill(kept);
    }
    this.#maybeOthers = false;
  }
}
