/** Reports to the coordinator what a proxy has open on its machines. */
import type { MachineTable } from "./machine-table.ts";
import type { CoordinatorLink, FromProxy } from "./messages.ts";

/** Loads are reported together: a busy proxy changes them many times in this time, in milliseconds. */
const REPORT_MS = 20;

export class LoadReporter {
  readonly #table: MachineTable;
  readonly #link: CoordinatorLink;
  readonly #changed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(table: MachineTable, link: CoordinatorLink) {
    this.#table = table;
    this.#link = link;
  }

  /** Notes that the load of a machine changed. It is reported within {@link REPORT_MS}. */
  changed(id: string): void {
    this.#changed.add(id);
    this.#timer ??= setTimeout(() => this.flush(), REPORT_MS).unref();
  }

  /** Reports now what would be reported in a moment. */
  flush(): void {
    this.close();
    if (this.#changed.size === 0) return;
    const loads: Extract<FromProxy, { kind: "loads" }>["loads"] = {};
    for (const id of this.#changed) {
      const machine = this.#table.get(id);
      // The other host counts what its machines get from here.
      const own = machine?.row.remote === undefined ? machine : undefined;
      const requests = own === undefined ? 0 : own.open.requests - own.tunnels;
      const waits = own?.waits ?? 0;
      loads[id] = { load: own?.ownLoad ?? 0, requests, ...(waits > 0 && { waits }) };
    }
    this.#changed.clear();
    this.#link.send({ kind: "loads", loads });
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
