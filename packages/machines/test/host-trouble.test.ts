/** A host that has no descriptor left, or whose disk does not answer, costs no machine its memory, and none stays down for it. */
import { join } from "node:path";
import { VmmKilled } from "@hibernaut/hypervisor";
import { afterEach, describe, expect, test, vi } from "vitest";
import { beginFault, endFault } from "../../platform/test/helpers/faulty-fs.ts";
import { quietFor } from "../../platform/test/helpers/quiet.ts";
import { shopForEach } from "./shop.ts";

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

const POLL = { timeout: 5000 };

const shop = shopForEach();
afterEach(endFault);

const eventsOf = (id: string) => shop.events(id).map(({ type }) => type);

async function asleep(): Promise<{ id: string; nonce: unknown }> {
  const id = await shop.run();
  const nonce = shop.request(id)?.nonce;
  await shop.suspend(id);
  return { id, nonce };
}

describe.each(["EMFILE", "ENFILE", "EACCES", "EIO", "ENOMEM"])("%s", (code) => {
  test.each(["manifest.json", "seal.json", "devices", "memory"])(
    "while a sleeping machine's %s is read: it keeps its memory, says why, and wakes with it later",
    async (file) => {
      const { id, nonce } = await asleep();
      // A memory that was read in this boot of the host is not read as a whole again.
      beginFault(code, new RegExp(`${id}/snapshots/[^/]+/${file}$`));
      shop.machines.start("shop", id);
      await shop.reach(id, "failed");
      const stateReason = expect.stringMatching(`${code}.*Its memory is kept.*to give its memory up, stop it`);
      expect(shop.record(id)).toMatchObject({ snapshot: expect.anything(), stateReason });
      endFault();
      await shop.start(id);
      expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
      expect(shop.request(id)?.nonce).toBe(nonce);
    },
  );

  test("while the platform starts: no sleeping machine is called unfit, and none is dropped", async () => {
    const { id } = await asleep();
    beginFault(code, new RegExp(`${id}/snapshots/[^/]+/manifest`));
    expect(await shop.platform.unfitSnapshots()).toEqual([]);
    endFault();
    expect(shop.record(id).snapshot).not.toBeNull();
  });
});

test("a suspend that the host hinders costs nothing: the same guest runs on, as soon as the host lets it", async () => {
  const id = await shop.run();
  const nonce = shop.request(id)?.nonce;
  beginFault("EMFILE", new RegExp(`${id}/(snapshots|memory)`));
  shop.machines.suspend("shop", id);
  await expect.poll(() => shop.host.of(id).some(({ running }) => !running), POLL).toBe(true);
  await quietFor(200); // for a few attempts, while nothing can even be deleted
  expect(shop.host.of(id)).toHaveLength(1);
  endFault();
  await shop.reach(id, "running");
  await expect.poll(() => eventsOf(id)[0], POLL).toBe("capture_failed");
  expect(shop.request(id)?.nonce).toBe(nonce);
});

test("an app whose secrets cannot be read for want of a descriptor is started again until they can", async () => {
  const id = await shop.run();
  shop.platform.secrets.set("shop", { TOKEN: "one" });
  beginFault("EMFILE", new RegExp(join(shop.world.folder, "secrets.key")));
  shop.host.fail(id, "out of memory");
  // Far more often than a restart policy starts a crashing app.
  await expect.poll(() => eventsOf(id).filter((type) => type === "start_hindered").length, POLL).toBeGreaterThan(12);
  expect(shop.record(id)).toMatchObject({ stateReason: expect.stringContaining("EMFILE") });
  endFault();
  await shop.reach(id, "running");
});

test("a wait for the host ends when something else is requested", async () => {
  const id = await shop.run();
  shop.platform.secrets.set("shop", { TOKEN: "one" });
  await shop.stop(id);
  beginFault("EMFILE", new RegExp(join(shop.world.folder, "secrets.key")));
  shop.machines.start("shop", id);
  await expect.poll(() => eventsOf(id), POLL).toContain("start_hindered");
  await shop.stop(id);
  expect(shop.host.of(id)).toEqual([]);
});

describe("a start that fails says why in the machine, what to do, and nothing else", () => {
  const noise = () => shop.world.logged.filter(({ fields }) => "err" in fields || "stack" in fields);

  test.each([
    ["ENOSPC", /ENOSPC.*Free some disk space\.$/],
    ["EDQUOT", /EDQUOT.*Free some disk space\.$/],
    ["EIO", /EIO.*Look at the host's disks/],
    ["EROFS", /EROFS.*Let the platform's user/],
  ])("a disk that does not take its files (%s)", async (code, reason) => {
    const id = await shop.run();
    await shop.stop(id);
    shop.host.faults.boot = Object.assign(new Error(`${code}: of the test`), { code });
    shop.machines.start("shop", id);
    await shop.reach(id, "failed");
    expect(shop.record(id).stateReason).toMatch(reason);
    expect(shop.world.store.machines.events(id, 1)).toMatchObject([
      { type: "start_failed", details: { reason: shop.record(id).stateReason } },
    ]);
    expect(noise()).toEqual([]);
    await shop.start(id);
  });

  test("a QEMU that is killed at each start", async () => {
    const id = await shop.run();
    await shop.stop(id);
    let boots = 0;
    vi.spyOn(shop.host, "takeFault").mockImplementation(() => {
      boots += 1;
      throw new VmmKilled("QEMU was killed while the machine started");
    });
    shop.machines.start("shop", id);
    await shop.reach(id, "failed");
    expect(shop.record(id).stateReason).toBe("QEMU was killed while the machine started");
    expect(boots, "it is tried again, and not forever").toBe(3);
    expect(noise()).toEqual([]);
  });
});
