import { expect, test } from "vitest";
import { execFileSync } from "node:child_process";
import { ask, askUntilAnswered } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";
test("vertical", async () => {
  const place = await Place.open({  });
  try {
    console.log(await place.client.health());
    const machine = await place.machine();
    console.log(machine.private_address, machine.state, machine.state_reason);
    console.log(execFileSync("sh", ["-c", "ip -br link; ip -br addr; ip neigh; nft list tables; bridge fdb show | grep hib"]).toString());
    if (machine.state === "running") {
      console.log(await askUntilAnswered(machine.private_address));
      for (let i = 0; i < 8; i++) {
        await place.suspend(machine.machine_id);
        const t = performance.now();
        await place.start(machine.machine_id);
        console.log("running", performance.now() - t);
        const a = await askUntilAnswered(machine.private_address);
        console.log("resume", performance.now() - t, a);
      }
    }
  } finally {
    console.log(await place.close());
  }
});
