/** Logs: what apps print, and what happens to their machines. */
import type { MachineController } from "../controller.ts";
import type { ControllerSet } from "../controller-set.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { type LogBlocks, type LogSource, readLogs } from "../logs/follow.ts";
import type { LogQuery } from "../logs/merge.ts";
import { requireApp } from "../require-app.ts";
import type { Apps } from "./apps.ts";

/** What to read, and for how long. */
interface ReadLogs extends LogQuery {
  /** Ids, names or prefixes of ids of machines; all machines of the app, also those created later, when absent. */
  machines?: readonly string[] | undefined;
  /** Ends the reading, without an error. */
  signal: AbortSignal;
}

/** Reads and follows the logs of machines. */
export class Logs {
  readonly #deps: Pick<MachineDependencies, "store">;
  readonly #controllers: ControllerSet;
  readonly #apps: Apps;

  constructor(deps: Pick<MachineDependencies, "store">, controllers: ControllerSet, apps: Apps) {
    this.#deps = deps;
    this.#controllers = controllers;
    this.#apps = apps;
  }

  /** Returns the logs of machines of an app, oldest entry first, in blocks. Throws `not_found` before it reads. */
  read(app: string, { machines, signal, ...query }: ReadLogs): LogBlocks {
    requireApp(this.#deps.store.apps, app);
    const source =
      machines === undefined ? this.#ofApp(app) : fixed(machines.map((id) => this.#controllers.find(app, id)));
    return readLogs(source, query, signal);
  }

  #ofApp(app: string): LogSource {
    return {
      list: () => this.#controllers.of(app).map(({ machineLog }) => machineLog),
      complete: () => this.#deps.store.apps.get(app) === undefined,
      subscribe: (listener) => {
        const stops = [
          this.#controllers.changes.subscribe("waiting", (record) => record.app === app && listener()),
          this.#apps.subscribe(listener),
        ];
        return () => {
          for (const stop of stops) stop();
        };
      },
    };
  }
}

function fixed(controllers: readonly MachineController[]): LogSource {
  const logs = [...new Set(controllers.map(({ machineLog }) => machineLog))];
  return { list: () => logs, complete: () => true, subscribe: () => () => {} };
}
