/** Changes a machine's state as fast as it can, and prints a line for each change, until it is killed. */
import type { MachineState } from "@hibernaut/domain/machine";
import { openStore } from "@hibernaut/store/open";
import { machineEvent, machineRecord } from "../../store/test/helpers.ts";

const [file = "", round = ""] = process.argv.slice(2);
let clock = Date.now();
// Each interval has a length, however fast this is.
const store = openStore(file, () => (clock += 1000));
const machine = machineRecord({ id: round.padStart(14, "0"), name: `web-${round}` });
store.apps.insert({ name: machine.app, createdAt: machine.createdAt });
store.machines.insert(machine, machineEvent());
const states: MachineState[] = ["running", "suspended", "stopped"];
for (let count = 0; ; count += 1) {
  const state = states[count % states.length] ?? "failed";
  store.machines.update({ ...machine, state }, machineEvent({ to: state }));
  process.stdout.write(`${state}\n`);
}
