/** The suite that every hypervisor must pass, the fake and QEMU alike. */
import { readFile, stat, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { crc32 } from "node:zlib";
import { GuestAgent, type GuestConfig } from "@hibernaut/guest";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { slowed } from "../../platform/test/helpers/slow.ts";
import type { DeviceState, Hypervisor, Vmm, VmmRef, VmmSpec } from "../src/contract.ts";

export interface Harness {
  /** Makes a hypervisor as a newly started platform does. All of them share one host. */
  hypervisor(): Hypervisor;
  /** A machine that does not exist yet. */
  newSpec(): Promise<VmmSpec>;
  /** Another machine that does not exist yet, with copies of this one's memory and disk. */
  heirOf(spec: VmmSpec): Promise<VmmSpec>;
  /** Likewise, with the same memory file. */
  borrowerOf(spec: VmmSpec): Promise<VmmSpec>;
  guestConfig(spec: VmmSpec): GuestConfig;
  /** Sends one request to the app. Returns its nonce and the requests it has seen. Rejects while the guest is paused. */
  request(spec: VmmSpec): Promise<{ nonce: string; count: number; now: number }>;
  /** Kills the process from outside, as the kernel might. */
  murder(ref: VmmRef): void;
  /** To how many pages of the memory file a load may write before the guest runs. Default: none. KVM writes to one. */
  writesOnLoad?: number;
  dispose(): Promise<void>;
}

/** For each step, on a host of the usual speed. */
const LIMIT_MS = slowed(60_000);
/** A capture is cancelled at this many moments, evenly spread over the time that it takes. */
const MOMENTS = 60;
const PAGE_BYTES = 4096;
const limit = () => AbortSignal.timeout(LIMIT_MS);

interface Guest {
  vmm: Vmm;
  agent: GuestAgent;
  spec: VmmSpec;
  nonce: string;
}

async function boot(harness: Harness): Promise<Guest> {
  const spec = await harness.newSpec();
  const vmm = await harness.hypervisor().boot(spec, limit());
  const agent = new GuestAgent(await vmm.openChannel(limit()));
  await agent.hello(limit());
  await agent.run(harness.guestConfig(spec), limit());
  await agent.ready(limit());
  const { nonce } = await harness.request(spec);
  return { vmm, agent, spec, nonce };
}

async function suspend(
  { vmm, agent, spec }: Omit<Guest, "nonce">,
  file = "devices",
): Promise<{ devices: DeviceState; clockMs: number }> {
  const devices = { file: join(dirname(spec.memory), file), takenBy: vmm.identity };
  const clockMs = Date.now() + (await agent.quiesce(limit()));
  await vmm.pause();
  await vmm.capture(devices.file, limit());
  return { devices, clockMs };
}

export function describeHypervisor(name: string, open: () => Promise<Harness>, { moments = MOMENTS } = {}): void {
  describe(`${name} as a hypervisor`, () => {
    let harness: Harness;
    const alive = new Set<Vmm>();

    beforeAll(async () => {
      harness = await open();
    });
    afterEach(async () => {
      for (const vmm of alive) await vmm.kill();
      alive.clear();
    });
    afterAll(async () => {
      expect(await harness.hypervisor().find()).toEqual([]);
      await harness.dispose();
    });

    const keep = <T extends Vmm>(vmm: T): T => {
      alive.add(vmm);
      return vmm;
    };

    async function running(): Promise<Guest> {
      const guest = await boot(harness);
      keep(guest.vmm);
      return guest;
    }

    async function suspended() {
      const guest = await running();
      return { ...guest, ...(await suspend(guest)) };
    }

    // These leave the guest running, so that all of them use the same one.
    describe("a guest whose capture does not end it", () => {
      let guest: Guest;
      let count: number;
      beforeAll(async () => {
        guest = await boot(harness);
        count = 1;
      });
      afterAll(() => guest.vmm.kill());

      async function pause(): Promise<string> {
        await guest.agent.quiesce(limit());
        await guest.vmm.pause();
        return join(dirname(guest.spec.memory), "devices");
      }
      async function continues(): Promise<void> {
        await guest.vmm.run();
        await guest.agent.awake(limit());
        expect(await harness.request(guest.spec)).toMatchObject({ nonce: guest.nonce, count: (count += 1) });
      }

      test("says what it takes of the host", async () => {
        const usage = await guest.vmm.usage();
        expect(usage?.cpuMs).toBeGreaterThan(0);
        expect(usage?.residentBytes).toBeGreaterThan(1024 * 1024);
        const threads = [...((await guest.vmm.threadTimes())?.values() ?? [])];
        expect(threads.reduce((sum, { ranMs }) => sum + ranMs, 0)).toBeGreaterThan(0);
      });

      test("is captured again and again", async () => {
        for (let round = 0; round < 4; round += 1) {
          await guest.vmm.capture(`${await pause()}-${round}`, limit());
          expect(await guest.vmm.state()).toBe("paused");
          await continues();
        }
      });

      test("continues after an aborted capture, which rejects", async () => {
        const gaveUp = AbortSignal.abort(new Error("never mind"));
        await expect(guest.vmm.capture(await pause(), gaveUp)).rejects.toThrow();
        await continues();
      });

      test("continues at once when a capture is cancelled, at any moment", async () => {
        const devices = await pause();
        const began = performance.now();
        await guest.vmm.capture(devices, limit());
        const wholeMs = performance.now() - began;
        await continues();
        for (let moment = 0; moment <= moments; moment += 1) {
          await guest.vmm.pause();
          const giveUp = new AbortController();
          const timer = setTimeout(() => giveUp.abort(new Error("never mind")), (moment / moments) * wholeMs);
          await guest.vmm.capture(devices, giveUp.signal).catch(() => {});
          clearTimeout(timer);
          await guest.vmm.run();
          expect(await guest.vmm.state()).toBe("running");
        }
        expect(await harness.request(guest.spec)).toMatchObject({ nonce: guest.nonce, count: (count += 1) });
      });

      test("continues after a capture that cannot be written, which rejects with the reason", async () => {
        const nowhere = join(dirname(await pause()), "nowhere", "devices");
        await expect(guest.vmm.capture(nowhere, limit())).rejects.toThrow(/ENOENT/);
        await continues();
      });

      test("is neither adopted nor killed by the pid of another process", async () => {
        const stranger = { ...guest.vmm.ref, startTicks: "0" };
        await expect(harness.hypervisor().adopt(stranger, limit())).rejects.toThrow();
        await harness.hypervisor().end(stranger);
        expect(await harness.request(guest.spec)).toMatchObject({ nonce: guest.nonce, count: (count += 1) });
      });
    });

    test("a guest boots, says hello, runs its app and answers", async () => {
      const { vmm, spec } = await running();
      expect(await vmm.state()).toBe("running");
      expect(vmm.identity, "what runs it is what the platform says it would run").toEqual(
        harness.hypervisor().identity(),
      );
      expect(await harness.request(spec)).toMatchObject({ count: 2 });
      expect((await harness.hypervisor().find()).map((ref) => ref.machineId)).toEqual([spec.machineId]);
    });

    test("another process resumes a captured guest exactly where it left off, at the right time of day", async () => {
      const { vmm, spec, nonce, devices } = await suspended();
      await vmm.kill();
      const before = await pagesOf(spec.memory);
      let late = before;
      const checked = pagesOf(spec.memory).then((now) => void (late = now));
      const resumed = keep(await harness.hypervisor().restore(spec, devices, limit(), checked));
      expect(resumed.identity, "it runs on what it was suspended on").toEqual(vmm.identity);
      expect(await resumed.state()).toBe("paused");
      expect(changed(before, late), "nothing is written before the memory was checked").toEqual([]);
      const written = changed(before, await pagesOf(spec.memory));
      expect(written.length <= (harness.writesOnLoad ?? 0), `a load wrote to the pages ${written.join(", ")}`).toBe(
        true,
      );
      const agent = new GuestAgent(await resumed.openChannel(limit()));
      await resumed.run();
      await agent.awake(limit());
      const answer = await harness.request(spec);
      expect(answer).toMatchObject({ nonce, count: 2 });
      expect(Math.abs(answer.now - Date.now())).toBeLessThan(500);
    });

    test("another machine begins with copies of a guest's files, frozen until it is told who it is; then both run", async () => {
      const { vmm, agent, spec, nonce, devices } = await suspended();
      const heir = await harness.heirOf(spec);
      await vmm.run();
      await agent.awake(limit());
      const born = keep(await harness.hypervisor().restore(heir, devices, limit()));
      expect(born.ref.machineId).toBe(heir.machineId);
      const newborn = new GuestAgent(await born.openChannel(limit()));
      const refusal = Promise.withResolvers<string>();
      newborn.onError = refusal.resolve;
      await born.run();
      const early = new AbortController();
      const awake = newborn.awake(early.signal);
      expect(await refusal.promise).toMatch(/memory of another/);
      early.abort(new Error("never mind"));
      await expect(awake).rejects.toThrow(/never mind/);
      const { hostname, env, network } = harness.guestConfig(heir);
      await newborn.become({ hostname, env, network, mac: heir.network.mac }, limit());
      await newborn.awake(limit());
      expect(await harness.request(heir)).toMatchObject({ nonce, count: 2 });
      expect(await harness.request(spec)).toMatchObject({ nonce, count: 2 });
    });

    test("other machines begin with one memory file that nobody changes, and are suspended with one of their own", async () => {
      const { vmm, spec, nonce, devices } = await suspended();
      await vmm.kill();
      expect(await harness.hypervisor().borrows()).toBe(true);
      const before = await pagesOf(spec.memory);
      const heir = await harness.borrowerOf(spec);
      const born = keep(await harness.hypervisor().restore(heir, devices, limit()));
      let agent = new GuestAgent(await born.openChannel(limit()));
      await born.run();
      const { hostname, env, network } = harness.guestConfig(heir);
      await agent.become({ hostname, env, network, mac: heir.network.mac }, limit());
      await agent.awake(limit());
      expect(await harness.request(heir)).toMatchObject({ nonce, count: 2 });
      // The next platform knows which kind of memory it has.
      born.release();
      const [ref] = await harness.hypervisor().find();
      if (ref === undefined) throw new Error("nothing was found");
      const adopted = keep(await harness.hypervisor().adopt(ref, limit()));
      agent = new GuestAgent(await adopted.openChannel(limit()));
      await agent.hello(limit(), { resync: true });
      const early = new AbortController();
      await agent.quiesce(limit());
      await adopted.pause();
      early.abort(new Error("never mind"));
      await expect(adopted.capture(join(dirname(heir.memory), "early"), early.signal)).rejects.toThrow(/never mind/);
      await adopted.run();
      await agent.awake(limit());
      // What takes longest is done while it runs.
      for (let time = 0; time < 2; time += 1) await adopted.prepareCapture(limit());
      expect(await harness.request(heir)).toMatchObject({ nonce, count: 3 });
      expect((await stat(heir.memory)).ino).toBe((await stat(spec.memory)).ino);
      const alone = await adopted.ownMemory();
      expect(alone, "some of it was written to").toBeGreaterThan(0);
      expect(alone, "and most is still common").toBeLessThan((heir.memoryMb * 1024 * 1024) / 2);
      const asleep = await suspend({ vmm: adopted, agent, spec: heir });
      expect((await stat(heir.memory)).ino).not.toBe((await stat(spec.memory)).ino);
      await adopted.run();
      await agent.awake(limit());
      expect(await harness.request(heir)).toMatchObject({ nonce, count: 4 });
      const again = await suspend({ vmm: adopted, agent, spec: heir }, "devices of later");
      await adopted.kill();
      expect(asleep.devices.takenBy).toEqual(again.devices.takenBy);
      expect(changed(before, await pagesOf(spec.memory)), "nobody writes to what others begin with").toEqual([]);
      const { borrowed: _, ...own } = heir;
      const resumed = keep(await harness.hypervisor().restore(own, again.devices, limit()));
      agent = new GuestAgent(await resumed.openChannel(limit()));
      await resumed.run();
      await agent.awake(limit());
      expect(await harness.request(heir)).toMatchObject({ nonce, count: 5 });
    });

    test("a new platform finds and adopts a guest of the old one", async () => {
      const { vmm, spec, nonce } = await running();
      vmm.release();
      const other = harness.hypervisor();
      const [ref] = await other.find();
      if (ref === undefined) throw new Error("nothing was found");
      const adopted = keep(await other.adopt(ref, limit()));
      expect(await adopted.state()).toBe("running");
      expect(adopted.identity).toEqual(vmm.identity);
      const agent = new GuestAgent(await adopted.openChannel(limit()));
      expect(await agent.hello(limit(), { resync: true })).toMatchObject({ phase: "running", ready: true });
      expect(await harness.request(spec)).toMatchObject({ nonce, count: 2 });
      await adopted.kill();
      alive.delete(vmm);
    });

    test("the end of the process is noticed, no matter what caused it, and killing it again is harmless", async () => {
      const { vmm } = await running();
      harness.murder(vmm.ref);
      await vmm.exited;
      await vmm.kill();
      await vmm.kill();
      await expect(vmm.state()).rejects.toThrow();
      expect(await vmm.usage()).toBeUndefined();
      expect(await vmm.threadTimes()).toBeUndefined();
      expect(vmm.failure, "its guest did not crash").toBeUndefined();
    });

    test("a guest lets others come before it, and no longer, and after its end nobody minds", async () => {
      const { vmm } = await running();
      const asked = [await vmm.comeLast(true), await vmm.comeLast(false)];
      expect(asked[1], "the host lets the platform, or not").toBe(asked[0]);
      expect(await vmm.state()).toBe("running");
      await vmm.kill();
      expect(await vmm.comeLast(true)).toBe(asked[0]);
    });

    test("a guest that is told to stop powers itself off, as it is told last", async () => {
      const { vmm, agent } = await running();
      const exit = new Promise((resolve) => {
        agent.onExit = resolve;
      });
      // Of which programs take no notice.
      agent.stop(constants.signals.SIGWINCH, LIMIT_MS);
      agent.stop(constants.signals.SIGTERM, 5000);
      expect(await exit).toMatchObject({ code: 0, oom: false });
      await vmm.exited;
      expect(vmm.failure).toBeUndefined();
    });

    test("an aborted start leaves nothing behind", async () => {
      const spec = await harness.newSpec();
      await expect(harness.hypervisor().boot(spec, AbortSignal.abort(new Error("stop")))).rejects.toThrow();
      expect(await harness.hypervisor().find()).toEqual([]);
    });

    test("a damaged memory and an invalid device state are refused, and nothing is left behind", async () => {
      const { vmm, spec, devices } = await suspended();
      await vmm.kill();
      const before = await pagesOf(spec.memory);
      const checked = Promise.reject<void>(new Error("it is damaged"));
      checked.catch(() => {});
      await expect(harness.hypervisor().restore(spec, devices, limit(), checked)).rejects.toThrow(/it is damaged/);
      expect(await harness.hypervisor().find()).toEqual([]);
      expect(changed(before, await pagesOf(spec.memory)), "what is damaged is not loaded").toEqual([]);
      await writeFile(devices.file, "this is not the state of a machine");
      const { size } = await stat(spec.memory);
      await expect(harness.hypervisor().restore(spec, devices, limit())).rejects.toThrow();
      expect(await harness.hypervisor().find()).toEqual([]);
      expect((await stat(spec.memory)).size).toBe(size);
    });
  });
}

/** The clock of a resumed guest. Its own suite, because a busy host makes it late. */
export function describeTimeOfDay(name: string, open: () => Promise<Harness>): void {
  describe(`after a resume by ${name} the time of day is right`, () => {
    let harness: Harness;
    let spec: VmmSpec;
    let asleep: { devices: DeviceState; clockMs: number };
    beforeAll(async () => {
      harness = await open();
      const guest = await boot(harness);
      ({ spec } = guest);
      asleep = await suspend(guest);
      await guest.vmm.kill();
    });
    afterAll(async () => {
      expect(await harness.hypervisor().find()).toEqual([]);
      await harness.dispose();
    });

    for (const [what, wrongByMs] of [
      ["how long it slept", 0],
      ["nothing", undefined],
      ["a little too much", 300],
      ["nonsense", 3_600_000],
    ] as const)
      test(`when the guest is told ${what}`, async () => {
        const vmm = await harness.hypervisor().restore(spec, asleep.devices, limit());
        try {
          const agent = new GuestAgent(await vmm.openChannel(limit()));
          const stoodMs = wrongByMs === undefined ? undefined : Date.now() - asleep.clockMs + wrongByMs;
          await vmm.run();
          const { clockOffMs } = await agent.awake(limit(), { stoodMs });
          expect(Math.abs(clockOffMs)).toBeLessThan(100);
          const asked = Date.now();
          const { now } = await harness.request(spec);
          expect(now).toBeGreaterThan(asked - 100);
          expect(now).toBeLessThan(Date.now() + 100);
          asleep = await suspend({ vmm, agent, spec }, `devices after ${what}`);
        } finally {
          await vmm.kill();
        }
      });
  });
}

/** A checksum of each page of a memory file. */
async function pagesOf(path: string): Promise<number[]> {
  const memory = await readFile(path);
  const count = Math.ceil(memory.length / PAGE_BYTES);
  return Array.from({ length: count }, (_, page) => crc32(memory.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)));
}

/** The pages in which two states of a memory file differ. */
function changed(before: readonly number[], after: readonly number[]): number[] {
  return before.flatMap((sum, page) => (sum === after[page] ? [] : [page]));
}
