/** A host that has no descriptor left, or whose disk does not answer, costs no machine its memory, and none stays down for it. */
import { join } from "node:path";
import { VmmKilled } from "@hibernaut/hypervisor";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type FakePlatform,
  newWorld,
  runningMachine,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";
import { beginFault, endFault } from "../../platform/test/helpers/faulty-fs.ts";
import { quietFor } from "../../platform/test/helpers/quiet.ts";

vi.mock(import("node:fs"), async (original) =>
  (await import("../../platform/test/helpers/faulty-fs.ts")).faultySync(original),
);
vi.mock(import("node:fs/promises"), async (original) =>
  (await import("../../platform/test/helpers/faulty-fs.ts")).faulty(original),
);
/** Waits of minutes are over at once, so that a machine that is tried again every few seconds is. */
vi.mock(import("node:timers/promises"), async (original) => {
  const real = await original();
  const setTimeout = ((ms = 0, ...rest: unknown[]) =>
    (real.setTimeout as (...args: unknown[]) => unknown)(Math.min(ms, 20), ...rest)) as typeof real.setTimeout;
  return { ...real, setTimeout };
});

const WAIT = { timeoutMs: 5000 };
const POLL = { timeout: 5000 };

let world: World;
let platform: FakePlatform;

beforeEach(async () => {
  world = await newWorld();
  platform = await startPlatform(world);
});
afterEach(async () => {
  endFault();
  await platform.close();
  await world.dispose();
});

const record = (id: string) => platform.machines.get("shop", id).record;
const eventsOf = (id: string) => world.store.machines.events(id, 100).map(({ type }) => type);
const reach = (id: string, ...states: ("running" | "failed" | "stopped" | "suspended" | "restarting")[]) =>
  platform.machines.wait("shop", id, states, WAIT);

async function asleep(): Promise<{ id: string; nonce: unknown }> {
  const id = await runningMachine(platform);
  const nonce = world.host.guest(id)?.request()?.nonce;
  platform.machines.suspend("shop", id);
  await reach(id, "suspended");
  return { id, nonce };
}

describe.each(["EMFILE", "ENFILE", "EACCES", "EIO", "ENOMEM"])("%s", (code) => {
  test.each(["manifest.json", "seal.json", "devices", "memory"])(
    "while a sleeping machine's %s is read: it keeps its memory, says why, and wakes with it later",
    async (file) => {
      const { id, nonce } = await asleep();
      // A memory that was read in this boot of the host is not read as a whole again.
      beginFault(code, new RegExp(`${id}/snapshots/[^/]+/${file}$`));
      platform.machines.start("shop", id);
      await reach(id, "failed");
      const stateReason = expect.stringMatching(`${code}.*Its memory is kept.*to give its memory up, stop it`);
      expect(record(id)).toMatchObject({ snapshot: expect.anything(), stateReason });
      endFault();
      platform.machines.start("shop", id);
      await reach(id, "running");
      expect(record(id).lastBoot).toMatchObject({ kind: "resume" });
      expect(world.host.guest(id)?.request()?.nonce).toBe(nonce);
    },
  );

  test("while the platform starts: no sleeping machine is called unfit, and none is dropped", async () => {
    const { id } = await asleep();
    beginFault(code, new RegExp(`${id}/snapshots/[^/]+/manifest`));
    expect(await platform.unfitSnapshots()).toEqual([]);
    endFault();
    expect(record(id).snapshot).not.toBeNull();
  });
});

test("a suspend that the host hinders costs nothing: the same guest runs on, as soon as the host lets it", async () => {
  const id = await runningMachine(platform);
  const nonce = world.host.guest(id)?.request()?.nonce;
  beginFault("EMFILE", new RegExp(`${id}/(snapshots|memory)`));
  platform.machines.suspend("shop", id);
  await expect.poll(() => world.host.of(id).some(({ running }) => !running), POLL).toBe(true);
  await quietFor(200); // for a few attempts, while nothing can even be deleted
  expect(world.host.of(id)).toHaveLength(1);
  endFault();
  await reach(id, "running");
  await expect.poll(() => eventsOf(id)[0], POLL).toBe("capture_failed");
  expect(world.host.guest(id)?.request()?.nonce).toBe(nonce);
});

test("an app whose secrets cannot be read for want of a descriptor is started again until they can", async () => {
  const id = await runningMachine(platform);
  platform.secrets.set("shop", { TOKEN: "one" });
  beginFault("EMFILE", new RegExp(join(world.folder, "secrets.key")));
  world.host.fail(id, "out of memory");
  // Far more often than a restart policy starts a crashing app.
  await expect.poll(() => eventsOf(id).filter((type) => type === "start_hindered").length, POLL).toBeGreaterThan(12);
  expect(record(id)).toMatchObject({ stateReason: expect.stringContaining("EMFILE") });
  endFault();
  await reach(id, "running");
});

test("a wait for the host ends when something else is requested", async () => {
  const id = await runningMachine(platform);
  platform.secrets.set("shop", { TOKEN: "one" });
  platform.machines.stop("shop", id);
  await reach(id, "stopped");
  beginFault("EMFILE", new RegExp(join(world.folder, "secrets.key")));
  platform.machines.start("shop", id);
  await expect.poll(() => eventsOf(id), POLL).toContain("start_hindered");
  platform.machines.stop("shop", id);
  await reach(id, "stopped");
  expect(world.host.of(id)).toEqual([]);
});

describe("a start that fails says why in the machine, what to do, and nothing else", () => {
  const noise = () => world.logged.filter(({ fields }) => "err" in fields || "stack" in fields);

  test.each([
    ["ENOSPC", /ENOSPC.*Free some disk space\.$/],
    ["EDQUOT", /EDQUOT.*Free some disk space\.$/],
    ["EIO", /EIO.*Look at the host's disks/],
    ["EROFS", /EROFS.*Let the platform's user/],
  ])("a disk that does not take its files (%s)", async (code, reason) => {
    const id = await runningMachine(platform);
    platform.machines.stop("shop", id);
    await reach(id, "stopped");
    world.host.faults.boot = Object.assign(new Error(`${code}: of the test`), { code });
    platform.machines.start("shop", id);
    await reach(id, "failed");
    expect(record(id).stateReason).toMatch(reason);
    expect(world.store.machines.events(id, 1)).toMatchObject([
      { type: "start_failed", details: { reason: record(id).stateReason } },
    ]);
    expect(noise()).toEqual([]);
    platform.machines.start("shop", id);
    await reach(id, "running");
  });

  test("a QEMU that is killed at each start", async () => {
    const id = await runningMachine(platform);
    platform.machines.stop("shop", id);
    await reach(id, "stopped");
    let boots = 0;
    vi.spyOn(world.host, "takeFault").mockImplementation(() => {
      boots += 1;
      throw new VmmKilled("QEMU was killed while the machine started");
    });
    platform.machines.start("shop", id);
    await reach(id, "failed");
    expect(record(id).stateReason).toBe("QEMU was killed while the machine started");
    expect(boots, "it is tried again, and not forever").toBe(3);
    expect(noise()).toEqual([]);
  });
});
