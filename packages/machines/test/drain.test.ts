/** The platform is drained before its host goes down, and what ran is there again afterwards. */
import { describe, expect, test, vi } from "vitest";
import { FakeHypervisor } from "../../hypervisor/src/fake/index.ts";
import { type PlatformParts, SMALL } from "../../platform/test/helpers/fake-world.ts";
import { shopForEach } from "./shop.ts";

/** Only a fault reaches it. */
const PATIENT_MS = 10_000;
/** Too large to be suspended. */
const LARGE = { guest: { memory_mb: 4096 } };

const shop = shopForEach();
const nonceOf = (id: string) => shop.request(id)?.nonce;

/** Suspends every machine, and waits until nothing is left to do. */
async function drain(request: { timeoutS?: number } = {}): Promise<void> {
  shop.platform.drain.begin({ suspend: true, ...request });
  await drained();
}

async function drained(): Promise<void> {
  await vi.waitFor(() => expect(shop.platform.drain.get()?.drain.completedAt).toEqual(expect.any(String)), PATIENT_MS);
}

const results = () =>
  Object.fromEntries(shop.platform.drain.get()?.machines.map(({ id, result }) => [id, result]) ?? []);

/** The host is restarted: everything that ran on it is gone. */
async function reboot(parts: PlatformParts = {}): Promise<void> {
  await shop.platform.close();
  for (const { ref } of shop.host.processes.values()) shop.host.end(ref);
  shop.world.bootId = "boot-2";
  await shop.open(parts);
}

describe("a reboot", () => {
  test("costs no memory: what ran before resumes, and what slept sleeps on", async () => {
    const ids = await Promise.all([shop.run(), shop.run(), shop.run()]);
    const asleep = await shop.sleeper();
    const nonces = ids.map(nonceOf);
    await drain();
    expect(results()).toEqual(Object.fromEntries(ids.map((id) => [id, "suspended"])));
    expect(shop.host.processes.size).toBe(0);
    await reboot();
    await Promise.all(ids.map((id) => shop.reach(id, "running")));
    expect(ids.map(nonceOf)).toEqual(nonces);
    expect(ids.map((id) => shop.record(id).lastBoot?.kind)).toEqual(["resume", "resume", "resume"]);
    expect(shop.record(asleep).state).toBe("suspended");
    expect(shop.platform.drain.get(), "a platform that starts again takes work").toBeUndefined();
    expect(shop.events(ids[0] ?? "", "start")[0]?.details).toEqual({ by: "drain" });
  });

  test("leaves machines asleep until something wakes them where the setting says so, and does not come back to it", async () => {
    const id = await shop.run();
    await drain();
    await reboot({ settings: { resumeOnBoot: "off" } });
    await vi.waitFor(() => expect(shop.record(id).drained).toBe(false), PATIENT_MS);
    await shop.restart();
    expect(shop.record(id).state).toBe("suspended");
  });

  test("whose resumes a second end of the platform interrupts forgets no machine", async () => {
    const ids = await Promise.all([shop.run(), shop.run(), shop.run(), shop.run()]);
    const nonces = ids.map(nonceOf);
    await drain();
    const release = shop.hold("restore");
    await reboot();
    await vi.waitFor(
      () => expect(ids.filter((id) => shop.record(id).state === "starting")).toHaveLength(2),
      PATIENT_MS,
    );
    release();
    await shop.restart();
    await Promise.all(ids.map((id) => shop.reach(id, "running")));
    expect(ids.map(nonceOf)).toEqual(nonces);
  });

  test("that comes too early is a power cut for the machines that were left, and their events say so", async () => {
    const [slow, large] = [await shop.run(), await shop.run(LARGE)];
    const release = shop.hold("capture");
    await drain({ timeoutS: 1 });
    expect(results()).toEqual({ [slow]: "suspending", [large]: "left" });
    expect(shop.events(slow, "not_suspended")[0]?.details).toEqual({
      by: "drain",
      reason: "the drain ran out of time",
    });
    expect(shop.events(large, "not_suspended")[0]?.details.reason).toMatch(
      /^it cannot be suspended: memory is 4096 MB/,
    );
    shop.host.faults.capture = new Error("the power is gone");
    release();
    await shop.reach(slow, "running");
    await reboot();
    await Promise.all([slow, large].map((id) => shop.reach(id, "running")));
    expect(shop.events(large, "lost_restarts")[0]?.details.reason).toMatch(
      /^the VMM ended while the platform was away; a drain had left it running: it cannot be suspended: memory/,
    );
    expect(shop.record(large).lastBoot).toMatchObject({ kind: "cold", reason: "vmm_lost" });
  });
});

describe("while the platform drains", () => {
  test("nothing is started or created, and the refusal says why and when to try again", async () => {
    const [runs, sleeps] = [await shop.run(), await shop.sleeper()];
    shop.platform.drain.begin({});
    const refusal = { code: "draining", status: 503, details: { retry_after_s: 30 } };
    const refused = (act: () => unknown) => expect(async () => act()).rejects.toMatchObject(refusal);
    await refused(() => shop.machines.create("shop", { config: SMALL }));
    await refused(() => shop.machines.create("shop", { config: SMALL, skipLaunch: true }));
    await refused(() => shop.machines.start("shop", sleeps));
    await refused(() => shop.machines.restart("shop", runs));
    await refused(() => shop.machines.update("shop", runs, SMALL));
    expect(shop.machines.start("shop", runs), "it runs already").toEqual({ previousState: "running" });
    expect(shop.record(runs).state, "a drain without suspend leaves machines as they are").toBe("running");
    shop.platform.drain.end();
    await shop.start(sleeps);
  });

  test("an image that takes long does not slip a machine in", async () => {
    const image = Promise.withResolvers<void>();
    const hold = shop.world.images.hold.bind(shop.world.images);
    shop.world.images.hold = (reference) => image.promise.then(() => hold(reference));
    const creating = shop.machines.create("shop", { config: SMALL });
    shop.platform.drain.begin({});
    image.resolve();
    await expect(creating).rejects.toMatchObject({ code: "draining" });
    expect(shop.machines.list("shop")).toEqual([]);
  });

  test("a machine that is still starting is waited for, and suspended", async () => {
    const release = shop.world.holdBoots();
    const id = await shop.launch();
    shop.platform.drain.begin({ suspend: true });
    expect(results()).toEqual({ [id]: "waiting" });
    release();
    await drained();
    expect(shop.record(id).state).toBe("suspended");
  });

  test("a few machines are suspended at a time", async () => {
    const ids = await Promise.all([shop.run(), shop.run(), shop.run(), shop.run(), shop.run()]);
    const release = shop.hold("capture");
    shop.platform.drain.begin({ suspend: true });
    await vi.waitFor(
      () => expect(Object.values(results()).filter((result) => result === "suspending")).toHaveLength(2),
      PATIENT_MS,
    );
    expect(Object.values(results()).filter((result) => result === "waiting")).toHaveLength(3);
    release();
    await drained();
    expect(ids.map((id) => shop.record(id).state)).toEqual(ids.map(() => "suspended"));
  });

  test("open requests get their time before a machine is suspended, all machines' at the same time", async () => {
    const asked: string[] = [];
    const requests = Promise.withResolvers<void>();
    const finishRequests = (id: string) => {
      asked.push(id);
      return requests.promise;
    };
    await shop.restart({ wrap: (deps) => ({ ...deps, finishRequests }) });
    const ids = await Promise.all([shop.run(), shop.run(), shop.run()]);
    shop.platform.drain.begin({ suspend: true });
    await vi.waitFor(() => expect(asked.toSorted()).toEqual(ids.toSorted()), PATIENT_MS);
    expect(Object.values(results())).toEqual(["waiting", "waiting", "waiting"]);
    requests.resolve();
    await drained();
    expect(Object.values(results())).toEqual(["suspended", "suspended", "suspended"]);
  });

  test("a suspend that fails once is tried again", async () => {
    const id = await shop.run();
    shop.host.faults.capture = new Error("a hiccup");
    await drain();
    expect(shop.record(id).state).toBe("suspended");
    expect(shop.events(id, "capture_failed")).toHaveLength(1);
  });

  test("a machine whose suspends keep failing is left running, with the reason", async () => {
    const id = await shop.run();
    const broken = new FakeHypervisor(shop.host);
    const adopt = broken.adopt.bind(broken);
    broken.adopt = async (ref) => {
      const vmm = await adopt(ref);
      vmm.capture = () => Promise.reject(new Error("the disk is full"));
      return vmm;
    };
    await shop.restart({ hypervisor: broken });
    await drain();
    expect(results()).toEqual({ [id]: "left" });
    expect(shop.events(id, "not_suspended")[0]?.details.reason).toBe("the last suspend failed: the disk is full");
    expect(nonceOf(id)).toBeDefined();
  });
});

describe("a drain", () => {
  test("continues after a restart of the platform, and is over after the next one", async () => {
    const [one, two] = [await shop.run(), await shop.run(LARGE)];
    const release = shop.hold("capture");
    shop.platform.drain.begin({ suspend: true });
    await vi.waitFor(() => expect(shop.record(one).state).toBe("suspending"), PATIENT_MS);
    const closing = shop.platform.close();
    release();
    await closing;
    await shop.open();
    expect(() => shop.machines.start("shop", one)).toThrow(expect.objectContaining({ code: "draining" }));
    await drained();
    expect(results()).toEqual({ [one]: "suspended", [two]: "left" });
    await shop.restart();
    await shop.reach(one, "running");
    expect(shop.record(two)).toMatchObject({ state: "running", notSuspended: null });
  });

  test("without suspend lasts through restarts of the platform, until the host's or its end", async () => {
    shop.platform.drain.begin({});
    await shop.restart();
    expect(shop.platform.drain.active).toBe(true);
    await reboot();
    expect(shop.platform.drain.active).toBe(false);
  });

  test("that is ended lets everything run again, also what was just being suspended", async () => {
    const ids = await Promise.all([shop.run(), shop.run(), shop.run()]);
    const nonces = ids.map(nonceOf);
    const release = shop.hold("capture");
    shop.platform.drain.begin({ suspend: true });
    await vi.waitFor(() => expect(Object.values(results())).toContain("suspending"), PATIENT_MS);
    shop.platform.drain.end();
    release();
    await Promise.all(ids.map((id) => shop.reach(id, "running")));
    expect(ids.map(nonceOf)).toEqual(nonces);
    shop.platform.drain.end();
    expect(shop.platform.drain.get(), "once more does no harm").toBeUndefined();
  });

  test("that is asked for twice stays the same, can begin to suspend, but not cease to", async () => {
    const id = await shop.run(LARGE);
    const plain = shop.platform.drain.begin({});
    expect(shop.platform.drain.begin({})).toEqual(plain);
    const suspending = shop.platform.drain.begin({ suspend: true });
    expect(suspending.drain).toMatchObject({ suspend: true, startedAt: plain.drain.startedAt });
    expect(() => shop.platform.drain.begin({})).toThrow(/draining already, and suspends.*`hibernaut undrain`/);
    await drained();
    expect(results()).toEqual({ [id]: "left" });
    await drain();
    expect(() => shop.platform.drain.begin({ timeoutS: 5 })).toThrow(
      /Only a drain that suspends machines has a time limit/,
    );
  });

  test("forgets a machine about which someone decides meanwhile", async () => {
    const id = await shop.run();
    await drain();
    await shop.stop(id);
    await reboot();
    expect(shop.record(id).state).toBe("stopped");
  });
});
