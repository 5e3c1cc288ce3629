/** Release commands: what runs once with the new version, before any machine gets it. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { ControllerSet } from "../controller-set.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { type CommandOutput, startReleaseCommand } from "../release-command/run.ts";
import type { Logs } from "./logs.ts";
import type { Machines } from "./machines.ts";
import type { Releases } from "./releases.ts";

interface ReleaseCommandsOptions {
  releases: Pick<Releases, "renew">;
  machines: Machines;
  logs: Logs;
  controllers: ControllerSet;
  log: MachineDependencies["log"];
}

/** Runs the commands of releases. */
export class ReleaseCommands {
  readonly #options: ReleaseCommandsOptions;

  constructor(options: ReleaseCommandsOptions) {
    this.#options = options;
  }

  /**
   * Runs the command of a pending release in a temporary machine, which is destroyed before the output ends. Rejects with
   * `not_found`, with `failed_precondition` when the release is not pending, with `already_exists` while its command
   * runs, and with what the creation of a machine refuses.
   *
   * @param request `timeoutMs` counts from the creation of the machine; `signal` cancels the command
   */
  async start(
    app: string,
    version: number,
    request: { config: MachineConfig; timeoutMs: number; signal: AbortSignal },
  ): Promise<CommandOutput> {
    const release = this.#options.releases.renew(app, version);
    if (release.status !== "pending")
      throw new HibernautError(
        "failed_precondition",
        `Release ${version} is ${release.status}. Its command runs before its machines change: begin a new release.`,
        { release: version, status: release.status },
      );
    return startReleaseCommand({ app, release, ...request }, this.#options);
  }

  /** Destroys the machines of commands that an earlier platform ran: nobody waits for them any more. */
  recover(): void {
    const { controllers, log } = this.#options;
    for (const controller of controllers.all()) {
      const { id, app, releaseCommand } = controller.record;
      if (releaseCommand === undefined) continue;
      try {
        log.warn({ machine: id, app, release: releaseCommand }, "a release command was interrupted");
        controller.command({ type: "destroy", force: true });
      } catch (error) {
        log.error({ machine: id, app, err: error }, "the machine of a release command cannot be destroyed");
      }
    }
  }
}
