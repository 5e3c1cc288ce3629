/** Forks: machines that continue from where another one is. */
import { type BirthContext, type Births, bear, launch, requireBirths } from "../births/bear.ts";
import { requireSeed, takeSeed } from "../births/seed.ts";
import { newMachineId } from "../identity.ts";
import { sameApp } from "../require-app.ts";
import { type MachineView, viewOf } from "../view.ts";
import type { Drain } from "./drain.ts";
import type { MachineCopies } from "./machine-copies.ts";

interface ForksOptions extends Omit<BirthContext, "requireStill"> {
  copies: Pick<MachineCopies, "copy">;
  drain: Pick<Drain, "refuseWork">;
}

export class Forks {
  readonly #options: ForksOptions;

  constructor(options: ForksOptions) {
    this.#options = options;
  }

  /**
   * Makes machines with the memory and the disk that a running or sleeping machine has now, all as of the same moment, and
   * starts them unless `skipLaunch` is set. The machine itself continues; a running one is paused meanwhile. Rejects with
   * `failed_precondition` when it cannot be forked, and otherwise as the creation of machines does; then there is no fork.
   */
  async fork(
    app: string,
    word: string,
    { skipLaunch = false, ...births }: Births & { skipLaunch?: boolean },
    signal: AbortSignal,
  ): Promise<MachineView[]> {
    const { deps, controllers, copies, copying, counts, drain } = this.#options;
    const same = sameApp(deps.store.apps, app);
    const requireStill = () => {
      drain.refuseWork();
      same();
      controllers.deletions.requireLasting(app);
    };
    const context = { deps, controllers, copying, counts, requireStill };
    const { record } = controllers.find(app, word);
    requireSeed(record, deps);
    const { folder } = deps.files.paths(record.id);
    await requireBirths(context, { folder, record }, births, { starts: !skipLaunch, drafts: 1 });
    const id = newMachineId();
    const origin = { kind: "fork", machine: record.id } as const;
    const seed = await takeSeed({ machineId: record.id, id, origin }, { copies, copying, ports: deps }, signal);
    try {
      const born = await bear(context, seed, births, signal);
      counts.add("fork", born.length);
      if (!skipLaunch) for (const each of born) launch(each, deps);
      return born.map((each) => viewOf(each.record, { ...deps, warm: controllers.warm }));
    } finally {
      await deps.files.seeds.removeDraft(id);
    }
  }
}
