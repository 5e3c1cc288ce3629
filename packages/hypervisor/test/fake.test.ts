import { copyFile, link, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GuestConfig } from "@hibernaut/guest";
import { newMachineId } from "../../machines/src/identity.ts";
import { UserNetwork } from "../../network/src/user.ts";
import { FakeHost, FakeHypervisor } from "../src/fake/index.ts";
import { describeHypervisor, describeTimeOfDay, type Harness } from "./conformance.ts";

async function openFake(): Promise<Harness> {
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-fake-"));
  const host = new FakeHost();
  const network = new UserNetwork();
  const newSpec = async () => {
    const machineId = newMachineId();
    const runDir = join(folder, machineId);
    await mkdir(runDir);
    return {
      machineId,
      cpus: 1,
      memoryMb: 16,
      bundle: { version: "1", protocol: 1, kernel: "", initrd: "" },
      image: "",
      layer: "",
      volumes: [],
      memory: join(runDir, "memory"),
      runDir,
      consoleLog: "",
      network: await network.attach({ id: machineId, app: "app", address: "127.20.0.1" }, [8080]),
    };
  };
  return {
    hypervisor: () => new FakeHypervisor(host),
    newSpec,
    heirOf: async ({ memory }) => {
      const heir = await newSpec();
      await copyFile(memory, heir.memory);
      return heir;
    },
    borrowerOf: async ({ memory }) => {
      const heir = await newSpec();
      await link(memory, heir.memory);
      return { ...heir, borrowed: true };
    },
    guestConfig: (): GuestConfig => ({
      hostname: "m",
      args: ["app"],
      env: {},
      user: "",
      workdir: "/",
      network: { address: "10.0.2.15/24", gateway: "10.0.2.2", dns: "10.0.2.3", hosts: [] },
      ports: [8080],
      volumes: [],
    }),
    request: async (spec) => {
      const guest = host.guest(spec.machineId);
      const answer = guest?.request();
      if (guest === undefined || answer === undefined) throw new Error("no answer");
      return { ...answer, now: Date.now() + guest.state.clockOffsetMs };
    },
    murder: (ref) => host.end(ref),
    dispose: () => rm(folder, { recursive: true, force: true }),
  };
}

describeHypervisor("the fake", openFake);
describeTimeOfDay("the fake", openFake);
