import { existsSync } from "node:fs";
import { readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Hypervisor } from "@hibernaut/hypervisor";
import { describe, expect, test } from "vitest";
import { FakeHypervisor } from "../../hypervisor/src/fake/index.ts";
import { identityOf, PRESENT_HARDWARE } from "../../hypervisor/src/qemu/hardware.ts";
import { UserNetwork } from "../../network/src/user.ts";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { checkedJson, readCheckedJson } from "../../snapshots/src/checked-json.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();

/** The platform is upgraded: it ends, and the next one has another guest bundle. */
async function upgradeBundle(version: string): Promise<void> {
  shop.world.bundleVersion = version;
  await shop.restart();
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
class DyingOnRun extends FakeHypervisor {
  override async boot(...[spec, signal]: Parameters<Hypervisor["boot"]>) {
    const vmm = await super.boot(spec, signal);
    const run = vmm.run.bind(vmm);
    vmm.run = async () => {
      await run();
      shop.host.end(vmm.ref);
    };
    return vmm;
  }
}

describe("suspend and resume", () => {
  test("a machine resumes exactly where it left off", async () => {
    const id = await shop.run();
    const before = shop.request(id);
    await shop.suspend(id);
    expect(shop.host.guest(id)).toBeUndefined();
    expect(shop.record(id).snapshot?.size_bytes).toBeGreaterThan(0);
    await shop.start(id);
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume", reason: "snapshot" });
    expect(shop.record(id).snapshot).toBeNull();
  });

  test("fifty starts at once are one start", async () => {
    const id = await shop.sleeper();
    for (let i = 0; i < 50; i += 1) shop.machines.start("shop", id);
    await shop.reach(id, "running");
    expect(shop.host.restored).toHaveLength(1);
  });

  test("a start while suspending cancels the capture and the same guest keeps running", async () => {
    const id = await shop.run();
    const release = shop.hold("capture");
    const before = shop.request(id);
    shop.machines.suspend("shop", id);
    await expect.poll(() => shop.host.of(id)[0]?.running).toBe(false);
    shop.machines.start("shop", id);
    release();
    await shop.reach(id, "running");
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    expect(shop.host.restored).toEqual([]);
    expect(shop.record(id)).toMatchObject({ snapshot: null, capturing: null });
    expect(await readdir(join(shop.world.folder, "machines", id, "snapshots"))).toEqual([]);
  });

  test("a full disk while suspending leaves the machine running, with the reason", async () => {
    const id = await shop.run();
    const before = shop.request(id);
    shop.host.faults.capture = Object.assign(new Error("write ENOSPC: no space left on device"), { code: "ENOSPC" });
    shop.machines.suspend("shop", id);
    await shop.reach(id, "running");
    await expect
      .poll(() => shop.record(id).stateReason)
      .toBe("the last suspend failed: write ENOSPC: no space left on device");
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    await shop.suspend(id);
    expect(shop.record(id).stateReason).toBeNull();
  });

  test("a suspended machine that is updated stays suspended without its snapshot, and cold starts with the new code", async () => {
    const id = await shop.run();
    const before = shop.request(id);
    const { version } = shop.record(id);
    await shop.suspend(id);
    await shop.update(id, { image: "app:2" });
    await shop.reach(id, "suspended");
    expect(shop.record(id)).toMatchObject({ state: "suspended", snapshot: null });
    expect(shop.record(id).version).not.toBe(version);
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "cold", reason: "updated" });
    expect(shop.request(id)?.nonce).not.toBe(before?.nonce);
  });

  test("stop discards the snapshot", async () => {
    const id = await shop.sleeper();
    await shop.stop(id);
    expect(shop.record(id).snapshot).toBeNull();
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "cold", reason: "stopped" });
  });
});

describe("a snapshot that does not fit is refused with its reason, and the start is cold", () => {
  const generation = (id: string, file: string) =>
    join(shop.world.folder, "machines", id, "snapshots", shop.record(id).snapshot?.generation ?? "", file);

  async function coldReason(spoil: (id: string) => Promise<unknown>): Promise<string> {
    const id = await shop.sleeper();
    await spoil(id);
    await shop.start(id);
    expect(shop.record(id).lastBoot?.kind).toBe("cold");
    expect(shop.host.restored).toEqual([]);
    return shop.record(id).lastBoot?.reason ?? "";
  }

  test.each([
    ["version", { version: "2" }, "hypervisor_version_changed: hypervisor version was 1, is 2"],
    ["CPU model", { cpu_model: "other" }, "cpu_model_changed: CPU model was none, is other"],
    ["accelerator", { accelerator: "kvm" }, "accelerator_changed: accelerator was fake, is kvm"],
    ["machine type", { machine_type: "pc" }, "machine_type_changed: machine type was none, is pc"],
  ] as const)("another %s of the hypervisor", async (_what, identity, reason) => {
    const found = await coldReason(async () => {
      shop.world.identity = identity;
      await shop.restart();
    });
    expect(found).toBe(reason);
  });

  test("an agent whose protocol is no longer spoken", async () => {
    const found = await coldReason((id) => editManifest(generation(id, "manifest.json"), { agent_protocol: 0 }));
    expect(found).toBe(
      "guest_bundle_changed: its agent speaks protocol 0, and this version of Hibernaut speaks 1 to 6",
    );
  });

  test("another network: the machine gets a new address", async () => {
    let id = "";
    const found = await coldReason(async (machine) => {
      id = machine;
      await shop.restart({ wrap: (deps) => ({ ...deps, network: new OtherNetwork() }) });
    });
    expect(found).toMatch(/^network_changed: 127\.\d+\.\d+\.\d+ is not an address of the present network$/);
    expect(shop.record(id).address).toBe("127.1.0.1");
  });

  test.each<[string, string, (file: string) => Promise<void>, RegExp]>([
    ["a missing memory", "memory", rm, /^snapshot_missing: there is no memory file$/],
    ["a short memory", "memory", (file) => truncate(file, 4096), /^snapshot_corrupt: the memory file has 4096 bytes/],
    [
      "a changed device state",
      "devices",
      (file) => writeFile(file, `devices of ${"x".repeat(14)}`),
      /^snapshot_corrupt: the devices file has changed$/,
    ],
    ["an invalid manifest", "manifest.json", (file) => writeFile(file, "{"), /^snapshot_corrupt/],
  ])("%s", async (_what, file, spoil, reason) => {
    expect(await coldReason((id) => spoil(generation(id, file)))).toMatch(reason);
  });

  test("a missing snapshot directory", async () => {
    const spoil = async (id: string) => {
      // The snapshot is sealed in the background: a file that is written meanwhile would keep its directory.
      await expect.poll(() => existsSync(generation(id, "seal.json")), { timeout: 10_000 }).toBe(true);
      await rm(join(shop.world.folder, "machines", id, "snapshots"), { recursive: true });
    };
    expect(await coldReason(spoil)).toMatch(/^snapshot_missing/);
  });

  test("a hypervisor that fails to load it", async () => {
    const found = await coldReason(async () => {
      shop.host.faults.restore = new Error("bad state");
    });
    expect(found).toBe("resume_failed: bad state");
  });
});

describe("a host that is short of resources", () => {
  test("a resume for which QEMU cannot be started keeps the snapshot for the next start", async () => {
    const id = await shop.run();
    const before = shop.request(id);
    await shop.suspend(id);
    shop.host.faults.restore = new HibernautError("unavailable", "QEMU did not start: no memory");
    shop.machines.start("shop", id);
    await shop.reach(id, "failed");
    expect(shop.record(id)).toMatchObject({
      stateReason: "QEMU did not start: no memory",
      snapshot: { size_bytes: expect.any(Number) },
    });
    await shop.restart();
    await shop.start(id);
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
  });

  test("machines that start together boot a few at a time, and a stop does not wait for its turn", async () => {
    await shop.restart({ bootSlots: 2 });
    const release = shop.hold("boot");
    const ids = await Promise.all(Array.from({ length: 5 }, () => shop.launch()));
    await expect.poll(() => shop.host.processes.size).toBe(2);
    const waiting = ids.find((id) => shop.host.of(id).length === 0) ?? "";
    await shop.stop(waiting);
    expect(shop.host.processes.size).toBe(2);
    release();
    await Promise.all(ids.filter((id) => id !== waiting).map((id) => shop.reach(id, "running")));
  });
});

test("a machine with swap asks its agent for it, and can be suspended", async () => {
  const id = await shop.run({ init: { swap_size_mb: 512 } });
  expect(shop.host.guest(id)?.swapMb).toBe(512);
  expect(shop.machines.get("shop", id).suspend).toEqual({ eligible: true, reasons: [] });
  await shop.suspend(id);
});

describe("a machine that cannot be suspended gives every reason at once", () => {
  test("memory and agent together", async () => {
    const id = await shop.run({ guest: { memory_mb: 4096 } });
    shop.world.protocols.set("bundle-1", 0);
    const view = shop.machines.get("shop", id);
    expect(view.suspend.eligible).toBe(false);
    expect(view.suspend.reasons).toHaveLength(2);
    expect(() => shop.machines.suspend("shop", id)).toThrowError(/memory is 4096 MB.*its agent speaks protocol 0/);
    expect(shop.record(id).state).toBe("running");
  });

  test("an agent whose protocol is no longer spoken, until the machine is updated", async () => {
    const id = await shop.run();
    const { imageDigest, config } = shop.record(id);
    shop.world.protocols.set("bundle-1", 0);
    await upgradeBundle("bundle-2");
    expect(() => shop.machines.suspend("shop", id)).toThrowError(/its agent speaks protocol 0.*machine update/);
    await shop.machines.update("shop", id);
    await shop.reach(id, "running");
    expect(shop.record(id)).toMatchObject({ bundleVersion: "bundle-2", imageDigest, config });
    await shop.suspend(id);
  });
});

describe("a newer guest bundle", () => {
  const upgraded = async () => {
    const id = await shop.run();
    const before = { ...shop.record(id), answer: shop.request(id) };
    await shop.suspend(id);
    await upgradeBundle("bundle-2");
    return { id, before };
  };

  test("does not end a sleep, nor does it keep a machine from the next one", async () => {
    const { id, before } = await upgraded();
    for (const count of [2, 3]) {
      await shop.start(id);
      expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
      expect(shop.request(id)).toEqual({ nonce: before.answer?.nonce, count });
      expect(shop.machines.get("shop", id)).toMatchObject({
        suspend: { eligible: true },
        guestBundle: { version: "bundle-1", current: false },
      });
      await shop.suspend(id);
    }
    expect(shop.record(id)).toMatchObject({ version: before.version, bundleVersion: "bundle-1" });
  });

  test("is not worth a snapshot: a suspended machine that is updated to it gets it at its next cold start", async () => {
    const { id, before } = await upgraded();
    await shop.machines.update("shop", id);
    await shop.machines.update("shop", id);
    expect(shop.machines.events("shop", id, 2).map(({ type }) => type)).toEqual(["update", "captured"]);
    await shop.start(id);
    expect(shop.request(id)).toMatchObject({ nonce: before.answer?.nonce });
    expect(shop.record(id)).toMatchObject({ version: before.version, bundleVersion: "bundle-1" });
    await shop.stop(id);
    await upgradeBundle("bundle-3");
    await shop.start(id);
    const { version, bundleVersion, bundleMove, config } = shop.record(id);
    expect({ bundleVersion, bundleMove, config }).toEqual({
      bundleVersion: "bundle-3",
      bundleMove: null,
      config: before.config,
    });
    expect(version).not.toBe(before.version);
    expect(shop.host.guest(id)?.env).toMatchObject({ HIBERNAUT_MACHINE_VERSION: version });
  });

  test("is what an update of a running machine without changes brings, once", async () => {
    const id = await shop.run();
    await upgradeBundle("bundle-2");
    await shop.machines.update("shop", id);
    await shop.reach(id, "running");
    const moved = shop.record(id);
    expect(moved).toMatchObject({ bundleVersion: "bundle-2", lastBoot: { kind: "cold", reason: "updated" } });
    await shop.machines.update("shop", id);
    expect(shop.record(id)).toEqual(moved);
  });
});

describe("a security update of QEMU", () => {
  const qemu = (version: string) => identityOf({ version, accelerator: "tcg" }, PRESENT_HARDWARE);
  const withQemu = async (version: string) => {
    shop.world.identity = qemu(version);
    await shop.restart();
  };

  test("does not end a sleep", async () => {
    await withQemu("7.2.18");
    const id = await shop.run();
    const before = shop.request(id);
    await shop.suspend(id);
    await withQemu("7.2.22");
    await shop.start(id);
    expect(shop.request(id)).toEqual({ nonce: before?.nonce, count: 2 });
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
  });

  test("after which a resume fails costs one machine its memory, and the others are not tried", async () => {
    await withQemu("7.2.18");
    const [first, other] = [await shop.sleeper(), await shop.sleeper()];
    await withQemu("7.2.22");
    shop.host.faults.restore = new Error("Unknown savevm section");
    await shop.start(first);
    expect(shop.record(first).lastBoot).toMatchObject({
      kind: "cold",
      reason: "resume_failed: Unknown savevm section",
    });
    const event = shop.events(first, "carry_over_failed")[0];
    expect(event).toMatchObject({
      from: "starting",
      to: "starting",
      details: { reason: "resume_failed: Unknown savevm section", from: "7.2.18", to: "7.2.22" },
    });
    await withQemu("7.2.22");
    await shop.start(other);
    expect(shop.record(other).lastBoot?.reason).toBe(
      "hypervisor_version_changed: hypervisor version was 7.2.18, is 7.2.22 (this version could not resume a snapshot of 7.2.18)",
    );
    await shop.suspend(other);
    await withQemu("7.2.23");
    await shop.start(other);
    expect(shop.record(other).lastBoot).toMatchObject({ kind: "resume" });
  });

  test("that is of another series makes starts cold, with the reason", async () => {
    await withQemu("7.2.22");
    const id = await shop.sleeper();
    await withQemu("10.0.2");
    await shop.start(id);
    expect(shop.record(id).lastBoot?.reason).toMatch(/^hypervisor_version_changed: .* \(another series of QEMU\)$/);
  });
});

describe("wrong states and wrong names", () => {
  test("are refused with a code and a sentence", async () => {
    const id = await shop.create();
    const created = shop.record(id);
    expect(created.state).toBe("created");
    expect(() => shop.machines.suspend("shop", id)).toThrowError(
      expect.objectContaining({ code: "failed_precondition" }),
    );
    expect(() => shop.machines.stop("shop", id)).toThrowError(expect.objectContaining({ code: "failed_precondition" }));
    expect(() => shop.machines.get("nowhere", id)).toThrowError(expect.objectContaining({ code: "not_found" }));
    expect(() => shop.machines.get("shop", "0".repeat(14))).toThrowError(
      expect.objectContaining({ code: "not_found" }),
    );
    expect(() => shop.platform.apps.create("shop")).toThrowError(expect.objectContaining({ code: "already_exists" }));
    expect(() => shop.platform.apps.create("Not A Name")).toThrowError(
      expect.objectContaining({ code: "invalid_argument" }),
    );
    const again = shop.machines.create("shop", { name: created.name, config: SMALL });
    await expect(again).rejects.toMatchObject({ code: "already_exists" });
    await expect(shop.platform.apps.delete("shop")).rejects.toMatchObject({ code: "failed_precondition" });
    await expect(shop.machines.wait("shop", id, ["running"], { timeoutMs: 10 })).rejects.toMatchObject({
      code: "deadline_exceeded",
      message: "machine failed to reach desired state, running, currently created",
    });
    const signal = shop.machines.create("shop", { config: { ...SMALL, stop_config: { signal: "SIGNOTHING" } } });
    await expect(signal).rejects.toMatchObject({
      code: "invalid_argument",
      details: { field: "config.stop_config.signal" },
    });
    const volume = shop.machines.create("shop", { config: { ...SMALL, mounts: [{ path: "/data" }] } });
    await expect(volume).rejects.toMatchObject({ code: "invalid_argument", details: { field: "config.mounts[0]" } });
    await shop.platform.apps.delete("shop", { force: true });
    expect(shop.platform.apps.list()).toEqual([]);
    shop.platform.apps.create("shop");
    expect(() => shop.machines.get("shop", id), "a machine does not outlive its app").toThrowError(/no machine/);
  });
});

describe("when the app or its virtual machine ends", () => {
  test("an app that fails is restarted with a cold start", async () => {
    const id = await shop.run();
    const first = shop.request(id);
    shop.host.guest(id)?.exit(3);
    await expect.poll(() => shop.record(id).restarts).toBe(1);
    await shop.reach(id, "running");
    expect(shop.request(id)?.nonce).not.toBe(first?.nonce);
  });

  test("a virtual machine that disappears is restarted, with its writable layer", async () => {
    const id = await shop.run();
    shop.lose(id);
    await expect.poll(() => shop.record(id).restarts).toBe(1);
    await shop.reach(id, "running");
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "cold", reason: "vmm_lost" });
  });

  describe("a guest that the hypervisor cannot continue", () => {
    const WHY = "QEMU cannot continue the guest (internal-error): KVM internal error. Suberror: 1";
    const latest = (id: string) => shop.machines.events("shop", id, 3).find(({ type }) => type.startsWith("lost"));

    test("is a crash: it starts again as its restart policy says, and its history says why", async () => {
      const id = await shop.run();
      shop.host.fail(id, WHY);
      await expect.poll(() => shop.record(id).restarts).toBe(1);
      await shop.reach(id, "running");
      expect(latest(id)).toMatchObject({ type: "lost_restarts", details: { reason: WHY, attempt: 1 } });
      expect(shop.record(id).lastBoot).toMatchObject({ kind: "cold", reason: "vmm_lost" });
    });

    test("is noticed by the next platform if that happened in between", async () => {
      const id = await shop.run({ restart: { policy: "no" } });
      await shop.platform.close();
      shop.host.fail(id, WHY, "when adopted");
      await shop.open();
      await shop.reach(id, "failed");
      expect(shop.record(id).stateReason).toBe(WHY);
      expect(shop.host.of(id)).toEqual([]);
    });

    test("in the middle of a start is started again within it, and after three times the start fails with the reason", async () => {
      class Failing extends FakeHypervisor {
        override async boot(...[spec, signal]: Parameters<Hypervisor["boot"]>) {
          const vmm = await super.boot(spec, signal);
          shop.host.fail(spec.machineId, WHY);
          return vmm;
        }
      }
      await shop.restart({ hypervisor: new Failing(shop.host) });
      const id = await shop.launch();
      await shop.reach(id, "failed");
      expect(shop.record(id).stateReason).toBe(WHY);
    });
  });

  test("a virtual machine that disappears while a failed suspend is undone is noticed", async () => {
    await shop.restart({ hypervisor: new DyingOnRun(shop.host) });
    const id = await shop.run({ restart: { policy: "no" } });
    shop.host.faults.capture = new Error("no room");
    shop.machines.suspend("shop", id);
    await shop.reach(id, "failed");
    expect(shop.record(id)).toMatchObject({ coldReason: "vmm_lost", stateReason: "the virtual machine ended" });
    expect(
      shop
        .events(id)
        .map(({ type }) => type)
        .slice(0, 2),
    ).toEqual(["lost", "capture_failed"]);
  });

  test("a start that fails says why, and the next one works", async () => {
    shop.host.faults.boot = new Error("no kernel");
    const id = await shop.launch();
    await shop.reach(id, "failed");
    expect(shop.record(id).stateReason).toBe("no kernel");
    await shop.start(id);
  });

  test("a forced destroy ends a running machine and leaves no file", async () => {
    const id = await shop.run();
    expect(() => shop.machines.destroy("shop", id)).toThrowError(/force/);
    shop.machines.destroy("shop", id, { force: true });
    await shop.reach(id, "destroyed");
    expect(shop.host.processes.size).toBe(0);
    expect(await readdir(join(shop.world.folder, "machines"))).toEqual([]);
    expect(await readdir(join(shop.world.folder, "run"))).toEqual([]);
    expect(() => shop.machines.start("shop", id)).toThrowError(/destroyed/);
  });
});
