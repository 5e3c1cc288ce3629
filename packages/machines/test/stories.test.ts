import { existsSync } from "node:fs";
import { readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Hypervisor } from "@hibernaut/hypervisor";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeHypervisor } from "../../hypervisor/src/fake/index.ts";
import { identityOf, PRESENT_HARDWARE } from "../../hypervisor/src/qemu/hardware.ts";
import { UserNetwork } from "../../network/src/user.ts";
import { newWorld, runningMachine, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import { checkedJson, readCheckedJson } from "../../snapshots/src/checked-json.ts";
import type { Resources } from "../src/open.ts";
import type { Machines } from "../src/resources/machines.ts";
import type { WaitTarget } from "../src/waiting.ts";

let world: World;
let platform: Resources;
let machines: Machines;

beforeEach(async () => {
  world = await newWorld();
  platform = await startPlatform(world);
  ({ machines } = platform);
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

const reach = (id: string, ...targets: WaitTarget[]) => machines.wait("shop", id, targets, { timeoutMs: 5000 });
const record = (id: string) => machines.get("shop", id).record;
const request = (id: string) => world.host.guest(id)?.request();
const suspended = async (id: string) => {
  machines.suspend("shop", id);
  await reach(id, "suspended");
};
const started = async (id: string) => {
  machines.start("shop", id);
  await reach(id, "running");
};

/** The platform is upgraded: it ends, and the next one has another guest bundle. */
async function upgradeBundle(version: string): Promise<void> {
  await platform.close();
  world.bundleVersion = version;
  platform = await startPlatform(world);
  ({ machines } = platform);
}

/** Changes a snapshot's manifest, as if another version had written it. */
async function editManifest(file: string, changes: object): Promise<void> {
  const manifest = readCheckedJson(await readFile(file, "utf8")) as object;
  await writeFile(file, checkedJson({ ...manifest, ...changes }));
}

/** A network that no machine has been on yet. */
class OtherNetwork extends UserNetwork {
  override owns(address: string): boolean {
    return address.startsWith("127.1.");
  }
  override allocate(): string {
    return "127.1.0.1";
  }
}

/** A hypervisor whose guests end as soon as they run again after a pause. */
function dyingOnRun(hypervisor: FakeHypervisor): Hypervisor {
  const boot: Hypervisor["boot"] = async (spec, signal) => {
    const vmm = await hypervisor.boot(spec, signal);
    const run = vmm.run.bind(vmm);
    vmm.run = async () => {
      await run();
      world.host.end(vmm.ref);
    };
    return vmm;
  };
  return new Proxy(hypervisor, {
    get: (target, key) => {
      if (key === "boot") return boot;
      const member = Reflect.get(target, key, target) as unknown;
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

describe("suspend and resume", () => {
  test("a machine resumes exactly where it left off", async () => {
    const id = await runningMachine(platform);
    const before = request(id);
    await suspended(id);
    expect(world.host.guest(id)).toBeUndefined();
    expect(record(id).snapshot?.size_bytes).toBeGreaterThan(0);
    await started(id);
    expect(request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    expect(record(id).lastBoot).toMatchObject({ kind: "resume", reason: "snapshot" });
    expect(record(id).snapshot).toBeNull();
  });

  test("fifty starts at once are one start", async () => {
    const id = await runningMachine(platform);
    await suspended(id);
    for (let i = 0; i < 50; i += 1) machines.start("shop", id);
    await reach(id, "running");
    expect(world.host.restored).toHaveLength(1);
    expect(world.host.mostPerMachine).toBe(1);
  });

  test("a start while suspending cancels the capture and the same guest keeps running", async () => {
    const id = await runningMachine(platform);
    const { promise, resolve } = Promise.withResolvers<void>();
    world.host.hold.capture = promise;
    const before = request(id);
    machines.suspend("shop", id);
    await expect.poll(() => world.host.of(id)[0]?.running).toBe(false);
    machines.start("shop", id);
    resolve();
    await reach(id, "running");
    expect(request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    expect(world.host.restored).toEqual([]);
    expect(record(id)).toMatchObject({ snapshot: null, capturing: null });
    expect(await readdir(join(world.folder, "machines", id, "snapshots"))).toEqual([]);
  });

  test("a full disk while suspending leaves the machine running, with the reason", async () => {
    const id = await runningMachine(platform);
    const before = request(id);
    world.host.faults.capture = Object.assign(new Error("write ENOSPC: no space left on device"), { code: "ENOSPC" });
    machines.suspend("shop", id);
    await reach(id, "running");
    await expect
      .poll(() => record(id).stateReason)
      .toBe("the last suspend failed: write ENOSPC: no space left on device");
    expect(request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    await suspended(id);
    expect(record(id).stateReason).toBeNull();
  });

  test("a suspended machine that is updated stays suspended without its snapshot, and cold starts with the new code", async () => {
    const id = await runningMachine(platform);
    const before = request(id);
    const { version } = record(id);
    await suspended(id);
    await machines.update("shop", id, { ...SMALL, image: "app:2" });
    await reach(id, "suspended");
    expect(record(id)).toMatchObject({ state: "suspended", snapshot: null });
    expect(record(id).version).not.toBe(version);
    await started(id);
    expect(record(id).lastBoot).toMatchObject({ kind: "cold", reason: "updated" });
    expect(request(id)?.nonce).not.toBe(before?.nonce);
  });

  test("stop discards the snapshot", async () => {
    const id = await runningMachine(platform);
    await suspended(id);
    machines.stop("shop", id);
    await reach(id, "stopped");
    expect(record(id).snapshot).toBeNull();
    await started(id);
    expect(record(id).lastBoot).toMatchObject({ kind: "cold", reason: "stopped" });
  });
});

describe("a snapshot that does not fit is refused with its reason, and the start is cold", () => {
  const generation = (id: string, file: string) =>
    join(world.folder, "machines", id, "snapshots", record(id).snapshot?.generation ?? "", file);

  async function coldReason(spoil: (id: string) => Promise<unknown>): Promise<string> {
    const id = await runningMachine(platform);
    await suspended(id);
    await spoil(id);
    await started(id);
    expect(record(id).lastBoot?.kind).toBe("cold");
    expect(world.host.restored).toEqual([]);
    return record(id).lastBoot?.reason ?? "";
  }

  test.each([
    ["version", { version: "2" }, "hypervisor_version_changed: hypervisor version was 1, is 2"],
    ["CPU model", { cpu_model: "other" }, "cpu_model_changed: CPU model was none, is other"],
    ["accelerator", { accelerator: "kvm" }, "accelerator_changed: accelerator was fake, is kvm"],
    ["machine type", { machine_type: "pc" }, "machine_type_changed: machine type was none, is pc"],
  ] as const)("another %s of the hypervisor", async (_what, identity, reason) => {
    const found = await coldReason(async () => {
      await platform.close();
      world.identity = identity;
      platform = await startPlatform(world);
      ({ machines } = platform);
    });
    expect(found).toBe(reason);
  });

  test("an agent whose protocol is no longer spoken", async () => {
    const found = await coldReason((id) => editManifest(generation(id, "manifest.json"), { agent_protocol: 0 }));
    expect(found).toBe(
      "guest_bundle_changed: its agent speaks protocol 0, and this version of Hibernaut speaks 1 to 4",
    );
  });

  test("another network: the machine gets a new address", async () => {
    let id = "";
    const found = await coldReason(async (machine) => {
      id = machine;
      await platform.close();
      platform = await startPlatform(world, { wrap: (deps) => ({ ...deps, network: new OtherNetwork() }) });
      ({ machines } = platform);
    });
    expect(found).toMatch(/^network_changed: 127\.\d+\.\d+\.\d+ is not an address of the present network$/);
    expect(record(id).address).toBe("127.1.0.1");
  });

  test("a missing memory file", async () => {
    expect(await coldReason((id) => rm(generation(id, "memory")))).toBe("snapshot_missing: there is no memory file");
  });

  test("a short memory file", async () => {
    expect(await coldReason((id) => truncate(generation(id, "memory"), 4096))).toMatch(
      /^snapshot_corrupt: the memory file has 4096 bytes/,
    );
  });

  test("a changed device state", async () => {
    const spoil = async (id: string) => writeFile(generation(id, "devices"), `devices of ${"x".repeat(id.length)}`);
    expect(await coldReason(spoil)).toBe("snapshot_corrupt: the devices file has changed");
  });

  test("an invalid manifest", async () => {
    expect(await coldReason((id) => writeFile(generation(id, "manifest.json"), "{"))).toMatch(/^snapshot_corrupt/);
  });

  test("a missing snapshot directory", async () => {
    const spoil = async (id: string) => {
      // The snapshot is sealed in the background: a file that is written meanwhile would keep its directory.
      await expect.poll(() => existsSync(generation(id, "seal.json")), { timeout: 10_000 }).toBe(true);
      await rm(join(world.folder, "machines", id, "snapshots"), { recursive: true });
    };
    expect(await coldReason(spoil)).toMatch(/^snapshot_missing/);
  });

  test("a hypervisor that fails to load it", async () => {
    const found = await coldReason(async () => {
      world.host.faults.restore = new Error("bad state");
    });
    expect(found).toBe("resume_failed: bad state");
  });
});

describe("a host that is short of resources", () => {
  test("a resume for which QEMU cannot be started keeps the snapshot for the next start", async () => {
    const id = await runningMachine(platform);
    const before = request(id);
    await suspended(id);
    world.host.faults.restore = new HibernautError("unavailable", "QEMU did not start: no memory");
    machines.start("shop", id);
    await reach(id, "failed");
    expect(record(id)).toMatchObject({
      stateReason: "QEMU did not start: no memory",
      snapshot: { size_bytes: expect.any(Number) },
    });
    await platform.close();
    platform = await startPlatform(world);
    ({ machines } = platform);
    await started(id);
    expect(request(id)).toEqual({ nonce: before?.nonce, count: 2 });
  });

  test("machines that start together boot a few at a time, and a stop does not wait for its turn", async () => {
    await platform.close();
    platform = await startPlatform(world, { bootSlots: 2 });
    ({ machines } = platform);
    platform.apps.create("shop");
    const { promise, resolve } = Promise.withResolvers<void>();
    world.host.hold.boot = promise;
    const made = await Promise.all(Array.from({ length: 5 }, () => machines.create("shop", { config: SMALL })));
    const ids = made.map((view) => view.record.id);
    await expect.poll(() => world.host.processes.size).toBe(2);
    const waiting = ids.find((id) => world.host.of(id).length === 0) ?? "";
    machines.stop("shop", waiting);
    await reach(waiting, "stopped");
    expect(world.host.processes.size).toBe(2);
    resolve();
    await Promise.all(ids.filter((id) => id !== waiting).map((id) => reach(id, "running")));
  });
});

test("a machine with swap asks its agent for it, and can be suspended", async () => {
  const id = await runningMachine(platform, { init: { swap_size_mb: 512 } });
  expect(world.host.guest(id)?.swapMb).toBe(512);
  expect(machines.get("shop", id).suspend).toEqual({ eligible: true, reasons: [] });
  await suspended(id);
});

describe("a machine that cannot be suspended gives every reason at once", () => {
  test("memory and agent together", async () => {
    const id = await runningMachine(platform, { guest: { memory_mb: 4096 } });
    world.protocols.set("bundle-1", 0);
    const view = machines.get("shop", id);
    expect(view.suspend.eligible).toBe(false);
    expect(view.suspend.reasons).toHaveLength(2);
    expect(() => machines.suspend("shop", id)).toThrowError(/memory is 4096 MB.*its agent speaks protocol 0/);
    expect(record(id).state).toBe("running");
  });

  test("an agent whose protocol is no longer spoken, until the machine is updated", async () => {
    const id = await runningMachine(platform);
    const { imageDigest, config } = record(id);
    world.protocols.set("bundle-1", 0);
    await upgradeBundle("bundle-2");
    expect(() => machines.suspend("shop", id)).toThrowError(/its agent speaks protocol 0.*machine update/);
    await machines.update("shop", id);
    await reach(id, "running");
    expect(record(id)).toMatchObject({ bundleVersion: "bundle-2", imageDigest, config });
    await suspended(id);
  });
});

describe("a newer guest bundle", () => {
  const upgraded = async () => {
    const id = await runningMachine(platform);
    const before = { ...record(id), answer: request(id) };
    await suspended(id);
    await upgradeBundle("bundle-2");
    return { id, before };
  };

  test("does not end a sleep, nor does it keep a machine from the next one", async () => {
    const { id, before } = await upgraded();
    for (const count of [2, 3]) {
      await started(id);
      expect(record(id).lastBoot).toMatchObject({ kind: "resume" });
      expect(request(id)).toEqual({ nonce: before.answer?.nonce, count });
      expect(machines.get("shop", id)).toMatchObject({
        suspend: { eligible: true },
        guestBundle: { version: "bundle-1", current: false },
      });
      await suspended(id);
    }
    expect(record(id)).toMatchObject({ version: before.version, bundleVersion: "bundle-1" });
  });

  test("is not worth a snapshot: a suspended machine that is updated to it gets it at its next cold start", async () => {
    const { id, before } = await upgraded();
    await machines.update("shop", id);
    await machines.update("shop", id);
    expect(machines.events("shop", id, 2).map(({ type }) => type)).toEqual(["update", "captured"]);
    await started(id);
    expect(request(id)).toMatchObject({ nonce: before.answer?.nonce });
    expect(record(id)).toMatchObject({ version: before.version, bundleVersion: "bundle-1" });
    machines.stop("shop", id);
    await reach(id, "stopped");
    await upgradeBundle("bundle-3");
    await started(id);
    const { version, bundleVersion, bundleMove, config } = record(id);
    expect({ bundleVersion, bundleMove, config }).toEqual({
      bundleVersion: "bundle-3",
      bundleMove: null,
      config: before.config,
    });
    expect(version).not.toBe(before.version);
    expect(world.host.guest(id)?.env).toMatchObject({ HIBERNAUT_MACHINE_VERSION: version });
  });

  test("is what an update of a running machine without changes brings, once", async () => {
    const id = await runningMachine(platform);
    await upgradeBundle("bundle-2");
    await machines.update("shop", id);
    await reach(id, "running");
    const moved = record(id);
    expect(moved).toMatchObject({ bundleVersion: "bundle-2", lastBoot: { kind: "cold", reason: "updated" } });
    await machines.update("shop", id);
    expect(record(id)).toEqual(moved);
  });
});

describe("a security update of QEMU", () => {
  const qemu = (version: string) => identityOf({ version, accelerator: "tcg" }, PRESENT_HARDWARE);
  const withQemu = async (version: string) => {
    await platform.close();
    world.identity = qemu(version);
    platform = await startPlatform(world);
    ({ machines } = platform);
  };

  test("does not end a sleep", async () => {
    await withQemu("7.2.18");
    const id = await runningMachine(platform);
    const before = request(id);
    await suspended(id);
    await withQemu("7.2.22");
    await started(id);
    expect(request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    expect(record(id).lastBoot).toMatchObject({ kind: "resume" });
  });

  test("after which a resume fails costs one machine its memory, and the others are not tried", async () => {
    await withQemu("7.2.18");
    const first = await runningMachine(platform);
    const { record: made } = await machines.create("shop", { config: SMALL });
    const others = [made.id];
    await reach(made.id, "running");
    for (const id of [first, ...others]) await suspended(id);
    await withQemu("7.2.22");
    world.host.faults.restore = new Error("Unknown savevm section");
    await started(first);
    expect(record(first).lastBoot).toMatchObject({ kind: "cold", reason: "resume_failed: Unknown savevm section" });
    const event = machines.events("shop", first, 9).find(({ type }) => type === "carry_over_failed");
    expect(event).toMatchObject({
      from: "starting",
      to: "starting",
      details: { reason: "resume_failed: Unknown savevm section", from: "7.2.18", to: "7.2.22" },
    });
    await withQemu("7.2.22");
    const [other = ""] = others;
    await started(other);
    expect(record(other).lastBoot?.reason).toBe(
      "hypervisor_version_changed: hypervisor version was 7.2.18, is 7.2.22 (this version could not resume a snapshot of 7.2.18)",
    );
    await suspended(other);
    await withQemu("7.2.23");
    await started(other);
    expect(record(other).lastBoot).toMatchObject({ kind: "resume" });
  });

  test("that is of another series makes starts cold, with the reason", async () => {
    await withQemu("7.2.22");
    const id = await runningMachine(platform);
    await suspended(id);
    await withQemu("10.0.2");
    await started(id);
    expect(record(id).lastBoot?.reason).toMatch(/^hypervisor_version_changed: .* \(another series of QEMU\)$/);
  });
});

describe("wrong states and wrong names", () => {
  test("are refused with a code and a sentence", async () => {
    platform.apps.create("shop");
    const { record: created } = await machines.create("shop", { config: SMALL, skipLaunch: true });
    expect(created.state).toBe("created");
    const id = created.id;
    expect(() => machines.suspend("shop", id)).toThrowError(expect.objectContaining({ code: "failed_precondition" }));
    expect(() => machines.stop("shop", id)).toThrowError(expect.objectContaining({ code: "failed_precondition" }));
    expect(() => machines.get("nowhere", id)).toThrowError(expect.objectContaining({ code: "not_found" }));
    expect(() => machines.get("shop", "0".repeat(14))).toThrowError(expect.objectContaining({ code: "not_found" }));
    expect(() => platform.apps.create("shop")).toThrowError(expect.objectContaining({ code: "already_exists" }));
    expect(() => platform.apps.create("Not A Name")).toThrowError(
      expect.objectContaining({ code: "invalid_argument" }),
    );
    const again = machines.create("shop", { name: created.name, config: SMALL });
    await expect(again).rejects.toMatchObject({ code: "already_exists" });
    await expect(platform.apps.delete("shop")).rejects.toMatchObject({ code: "failed_precondition" });
    await expect(machines.wait("shop", id, ["running"], { timeoutMs: 10 })).rejects.toMatchObject({
      code: "deadline_exceeded",
      message: "machine failed to reach desired state, running, currently created",
    });
    const signal = machines.create("shop", { config: { ...SMALL, stop_config: { signal: "SIGNOTHING" } } });
    await expect(signal).rejects.toMatchObject({
      code: "invalid_argument",
      details: { field: "config.stop_config.signal" },
    });
    const volume = machines.create("shop", { config: { ...SMALL, mounts: [{ path: "/data" }] } });
    await expect(volume).rejects.toMatchObject({ code: "invalid_argument", details: { field: "config.mounts[0]" } });
    await platform.apps.delete("shop", { force: true });
    expect(platform.apps.list()).toEqual([]);
    platform.apps.create("shop");
    expect(() => machines.get("shop", id), "a machine does not outlive its app").toThrowError(/no machine/);
  });
});

describe("when the app or its virtual machine ends", () => {
  test("an app that exits with 0 rests as stopped, with its exit code as the reason", async () => {
    const id = await runningMachine(platform);
    world.host.guest(id)?.exit(0);
    await reach(id, "stopped");
    expect(record(id).stateReason).toBe("the app exited with code 0");
    expect(world.host.guest(id)).toBeUndefined();
  });

  test("an app that fails is restarted with a cold start", async () => {
    const id = await runningMachine(platform);
    const first = request(id);
    world.host.guest(id)?.exit(3);
    await expect.poll(() => record(id).restarts).toBe(1);
    await reach(id, "running");
    expect(request(id)?.nonce).not.toBe(first?.nonce);
  });

  test("with restart policy `no` an app that fails is not restarted", async () => {
    const id = await runningMachine(platform, { restart: { policy: "no" } });
    world.host.guest(id)?.exit(3);
    await reach(id, "stopped");
    expect(record(id).stateReason).toBe("the app exited with code 3");
  });

  test("a virtual machine that disappears is restarted, with its writable layer", async () => {
    const id = await runningMachine(platform);
    const process = world.host.of(id)[0];
    if (process !== undefined) world.host.end(process.ref);
    await expect.poll(() => record(id).restarts).toBe(1);
    await reach(id, "running");
    expect(record(id).lastBoot).toMatchObject({ kind: "cold", reason: "vmm_lost" });
  });

  describe("a guest that the hypervisor cannot continue", () => {
    const WHY = "QEMU cannot continue the guest (internal-error): KVM internal error. Suberror: 1";
    const latest = (id: string) => machines.events("shop", id, 3).find(({ type }) => type.startsWith("lost"));

    test("is a crash: it starts again as its restart policy says, and its history says why", async () => {
      const id = await runningMachine(platform);
      world.host.fail(id, WHY);
      await expect.poll(() => record(id).restarts).toBe(1);
      await reach(id, "running");
      expect(latest(id)).toMatchObject({ type: "lost_restarts", details: { reason: WHY, attempt: 1 } });
      expect(record(id).lastBoot).toMatchObject({ kind: "cold", reason: "vmm_lost" });
    });

    test("stays down without a restart policy", async () => {
      const id = await runningMachine(platform, { restart: { policy: "no" } });
      world.host.fail(id, WHY);
      await reach(id, "failed");
      expect(record(id).stateReason).toBe(WHY);
    });

    test("is noticed by the next platform if that happened in between", async () => {
      const id = await runningMachine(platform, { restart: { policy: "no" } });
      await platform.close();
      world.host.fail(id, WHY, "when adopted");
      platform = await startPlatform(world);
      ({ machines } = platform);
      await reach(id, "failed");
      expect(record(id).stateReason).toBe(WHY);
      expect(world.host.of(id)).toEqual([]);
    });

    test("in the middle of a start is started again within it, and after three times the start fails with the reason", async () => {
      await platform.close();
      class Failing extends FakeHypervisor {
        override async boot(...[spec, signal]: Parameters<Hypervisor["boot"]>) {
          const vmm = await super.boot(spec, signal);
          world.host.fail(spec.machineId, WHY);
          return vmm;
        }
      }
      const hypervisor = new Failing(world.host, world.identity);
      platform = await startPlatform(world, { wrap: (deps) => ({ ...deps, hypervisor }) });
      ({ machines } = platform);
      platform.apps.create("shop");
      const { record: made } = await machines.create("shop", { config: SMALL });
      await reach(made.id, "failed");
      expect(record(made.id).stateReason).toBe(WHY);
    });
  });

  test("a virtual machine that disappears while a failed suspend is undone is noticed", async () => {
    await platform.close();
    const hypervisor = new FakeHypervisor(world.host, world.identity);
    platform = await startPlatform(world, {
      wrap: (deps) => ({ ...deps, hypervisor: dyingOnRun(hypervisor) }),
    });
    ({ machines } = platform);
    const id = await runningMachine(platform, { restart: { policy: "no" } });
    world.host.faults.capture = new Error("no room");
    machines.suspend("shop", id);
    await reach(id, "failed");
    expect(record(id)).toMatchObject({ coldReason: "vmm_lost", stateReason: "the virtual machine ended" });
    const types = machines.events("shop", id, 2).map(({ type }) => type);
    expect(types).toEqual(["lost", "capture_failed"]);
  });

  test("a start that fails says why, and the next one works", async () => {
    platform.apps.create("shop");
    world.host.faults.boot = new Error("no kernel");
    const { record: machine } = await machines.create("shop", { config: SMALL });
    await reach(machine.id, "failed");
    expect(record(machine.id).stateReason).toBe("no kernel");
    await started(machine.id);
  });

  test("a forced destroy ends a running machine and leaves no file", async () => {
    const id = await runningMachine(platform);
    expect(() => machines.destroy("shop", id)).toThrowError(/force/);
    machines.destroy("shop", id, { force: true });
    await reach(id, "destroyed");
    expect(world.host.processes.size).toBe(0);
    expect(await readdir(join(world.folder, "machines"))).toEqual([]);
    expect(await readdir(join(world.folder, "run"))).toEqual([]);
    expect(() => machines.start("shop", id)).toThrowError(/destroyed/);
  });
});
