/** QEMU with the small app, for the suites that every hypervisor must pass. */
import { link, mkdir } from "node:fs/promises";
import type { GuestConfig } from "@hibernaut/guest";
import { readBundle } from "@hibernaut/guest/bundles";
import { openImageStore } from "@hibernaut/images/open";
import { copySparse } from "@hibernaut/lib/disk-files";
import { MachineFiles } from "@hibernaut/machines/files";
import { readSettings } from "@hibernaut/settings";
import { newMachineId } from "../../machines/src/identity.ts";
import { UserNetwork } from "../../network/src/user.ts";
import { ACCELERATOR, askUntilAnswered, BUNDLE, dataFolder } from "../../platform/test/helpers/qemu-world.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import type { VmmSpec } from "../src/contract.ts";
import { qemuVersion } from "../src/qemu/accelerator.ts";
import { readHostCpu } from "../src/qemu/host-cpu.ts";
import { QemuHypervisor } from "../src/qemu/index.ts";
import { findJail } from "../src/qemu/jail/find.ts";
import { qemuLimits } from "../src/qemu/limits.ts";
import type { Harness } from "./conformance.ts";

/** Only a bound: a small memory and a layer that is nearly empty. */
const COPY_TIMEOUT_MS = 60_000;

/** Makes a data directory with what a guest needs; {@link Harness.dispose} deletes it. */
export async function openQemu(): Promise<Harness> {
  const folder = await dataFolder();
  const files = new MachineFiles(folder.path, 256);
  await mkdir(files.machineRoot);
  const image = await (await openImageStore({ dataDir: folder.path })).ensure(SMALL_APP);
  const bundle = await readBundle(BUNDLE);
  const version = await qemuVersion("qemu-system-x86_64");
  const limits = qemuLimits(readSettings(process.env));
  const host = ACCELERATOR === "kvm" ? await readHostCpu("qemu-system-x86_64", "kvm", { limits }) : undefined;
  const { jail } = await findJail({ ...readSettings(process.env), accelerator: ACCELERATOR });
  const network = new UserNetwork();
  const newSpec = async (): Promise<VmmSpec> => {
    const machineId = newMachineId();
    await files.prepare(machineId);
    await files.freshLayer(machineId);
    const { layer, memory, run, console } = files.paths(machineId);
    const plug = await network.attach({ id: machineId, app: "app", address: network.allocate(new Set()) }, [8080]);
    return {
      machineId,
      cpus: 1,
      memoryMb: 256,
      bundle,
      image: image.rootfs,
      layer,
      volumes: [],
      memory,
      runDir: run,
      consoleLog: console,
      network: plug,
    };
  };
  return {
    hypervisor: () =>
      new QemuHypervisor({
        program: "qemu-system-x86_64",
        version,
        accelerator: ACCELERATOR,
        host,
        limits,
        jail,
        runRoot: files.runRoot,
        machineRoot: files.machineRoot,
      }),
    newSpec,
    heirOf: async ({ layer, memory }) => {
      const heir = await newSpec();
      await copySparse(layer, heir.layer, { timeoutMs: COPY_TIMEOUT_MS });
      await copySparse(memory, heir.memory, { timeoutMs: COPY_TIMEOUT_MS });
      return heir;
    },
    borrowerOf: async ({ layer, memory }) => {
      const heir = await newSpec();
      await copySparse(layer, heir.layer, { timeoutMs: COPY_TIMEOUT_MS });
      await link(memory, heir.memory);
      return { ...heir, borrowed: true };
    },
    guestConfig: (spec): GuestConfig => ({
      hostname: spec.machineId,
      args: [...image.config.entrypoint, ...image.config.cmd],
      env: Object.fromEntries(image.config.env.map((line) => line.split("=", 2) as [string, string])),
      user: image.config.user,
      workdir: image.config.workingDir,
      network: spec.network.guest,
      ports: [8080],
      volumes: [],
    }),
    request: async (spec) => {
      if (spec.network.mode !== "user") throw new Error("not a user network");
      const { nonce, count, now } = await askUntilAnswered(spec.network.address);
      return { nonce, count, now: Date.parse(now) };
    },
    writesOnLoad: ACCELERATOR === "kvm" ? 1 : 0,
    murder: (ref) => process.kill(ref.pid, "SIGKILL"),
    dispose: () => folder.dispose(),
  };
}
