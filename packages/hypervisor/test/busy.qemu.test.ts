/**
 * A host whose CPUs are all taken: guests must still boot, every time.
 *
 * @module-tag again
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { cpus } from "node:os";
import { GuestAgent } from "@hibernaut/guest";
import { readBundle } from "@hibernaut/guest/bundles";
import { openImageStore } from "@hibernaut/images/open";
import { MachineFiles } from "@hibernaut/machines/files";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newMachineId } from "../../machines/src/identity.ts";
import { UserNetwork } from "../../network/src/user.ts";
import { longOr } from "../../platform/test/helpers/long.ts";
import { BUNDLE, dataFolder } from "../../platform/test/helpers/qemu-world.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { qemuVersion } from "../src/qemu/accelerator.ts";
import { QemuHypervisor } from "../src/qemu/index.ts";

const BOOTS = longOr(20, 2);
/** A boot takes 3 s on a quiet host. This is not a goal but the line beyond which it hangs. */
const HUNG_MS = 60_000;

let folder: Awaited<ReturnType<typeof dataFolder>>;
const loops: ChildProcess[] = [];

beforeAll(async () => {
  folder = await dataFolder();
  // In sessions of their own, as QEMU is: the kernel shares the CPUs among sessions first.
  for (const _ of cpus()) loops.push(spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore", detached: true }));
});
afterAll(async () => {
  for (const loop of loops) loop.kill("SIGKILL");
  await folder.dispose();
});

test(`${BOOTS} cold boots in a row while every CPU is busy: none hangs`, { timeout: BOOTS * HUNG_MS }, async () => {
  const files = new MachineFiles(folder.path, 64);
  await mkdir(files.machineRoot);
  const image = await (await openImageStore({ dataDir: folder.path })).ensure(SMALL_APP);
  const bundle = await readBundle(BUNDLE);
  const version = await qemuVersion("qemu-system-x86_64");
  const network = new UserNetwork();
  const hypervisor = new QemuHypervisor({
    program: "qemu-system-x86_64",
    version,
    accelerator: "tcg",
    runRoot: files.runRoot,
    machineRoot: files.machineRoot,
  });
  const durations: number[] = [];
  for (let boot = 0; boot < BOOTS; boot += 1) {
    const machineId = newMachineId();
    await files.prepare(machineId);
    await files.freshLayer(machineId);
    const { layer, memory, run, console: consoleLog } = files.paths(machineId);
    const plug = await network.attach({ id: machineId, app: "app", address: network.allocate(new Set()) }, []);
    const began = performance.now();
    const limit = AbortSignal.timeout(HUNG_MS);
    const vmm = await hypervisor.boot(
      {
        machineId,
        cpus: 1,
        memoryMb: 256,
        bundle,
        image: image.rootfs,
        layer,
        volumes: [],
        memory,
        runDir: run,
        consoleLog,
        network: plug,
      },
      limit,
    );
    try {
      const agent = new GuestAgent(await vmm.openChannel(limit));
      expect((await agent.hello(limit)).phase).toBe("waiting");
      expect((await agent.ping(limit, Buffer.from("alive"))).toString()).toBe("alive");
      durations.push(Math.round(performance.now() - began));
    } finally {
      await vmm.kill();
    }
    await files.remove(machineId);
  }
  expect(durations).toHaveLength(BOOTS);
  console.log(`boots to the agent's first answer, all CPUs busy, ms: ${durations.join(" ")}`);
});
