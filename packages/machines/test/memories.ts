/** What machines on a fake host remember, asleep or awake. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { MachineRecord, MachineState } from "@hibernaut/domain/machine";
import type { World } from "../../platform/test/helpers/fake-world.ts";

/** What the app of a fake guest knows: which process it is, and how many requests it has answered. Undefined without one. */
export type Memory = { nonce: string; count: number } | undefined;

/** The memory of a machine: of its snapshot if it sleeps, of its guest if it has one. */
export function memoryOf(record: MachineRecord, { folder, host }: World): Memory {
  if (record.snapshot !== null) return memoryIn(join(folder, "machines", record.id), record);
  return remembered(host.guest(record.id)?.state);
}

/** The memory in a directory that is laid out like that of a machine. */
export function memoryIn(folder: string, { snapshot }: MachineRecord): Memory {
  const text = readFileSync(join(folder, "snapshots", snapshot?.generation ?? "", "memory"), "utf8");
  return remembered(JSON.parse(text.slice(0, text.indexOf("\0"))) as Memory);
}

function remembered(state: Memory): Memory {
  return state && { nonce: state.nonce, count: state.count };
}

/** The files of a snapshot may be gone before the record says so. Nobody is born from such a machine. */
const LEAVING: ReadonlySet<MachineState> = new Set(["stopping", "updating", "destroying"]);

/** Everything that a machine has remembered since someone began to look. */
export class Watch {
  readonly memories: Memory[] = [];
  readonly #id: string;
  readonly #world: World;

  constructor(id: string, world: World) {
    this.#id = id;
    this.#world = world;
    this.look();
  }

  look(): void {
    const record = this.#world.store.machines.get(this.#id);
    if (record !== undefined && !LEAVING.has(record.state)) this.memories.push(memoryOf(record, this.#world));
  }
}
