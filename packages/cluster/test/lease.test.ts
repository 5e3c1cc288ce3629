import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import type { LeaseState } from "../src/cluster.ts";
import { type HostRecord, KEYS } from "../src/keys.ts";
import { LeaseKeeper } from "../src/lease.ts";
import { LocalDirectory } from "../src/local/directory.ts";
import { deletion } from "../src/stored.ts";
import { Interrupted } from "./interrupted.ts";
import { FACTS } from "./place.ts";

const KEY = `${KEYS.hosts}a`;
const MEMBER = `${KEYS.members}a`;

/** A host whose lease is short, with a clock that the test can move. */
async function openLease({ ttlMs = 600, graceMs = 400 } = {}) {
  const directory = new LocalDirectory(join(await tempFolder(), "directory.db"));
  const interrupted = new Interrupted(directory);
  const clock = { ahead: 0 };
  const record: HostRecord = {
    ...{ name: "a", peer: "a:4290", region: "local", version: "0.1.0", startedAt: "2026-01-01T00:00:00Z" },
    ...FACTS,
  };
  await directory.transact([], [{ key: MEMBER, value: "{}" }]);
  const faults: unknown[] = [];
  const lease = new LeaseKeeper({
    directory: interrupted,
    key: KEY,
    record: () => record,
    async member() {
      const entry = await interrupted.get(MEMBER);
      if (entry === undefined) throw new Error("no longer a member");
      return { key: MEMBER, revision: entry.revision };
    },
    ttlMs,
    graceMs,
    onFault: (error) => faults.push(error),
    now: () => performance.now() + clock.ahead,
  });
  const told: LeaseState[] = [];
  lease.subscribe((state) => told.push(state));
  onTestFinished(async () => {
    await lease.close();
    await directory.close();
  });
  await lease.start();
  return { directory, interrupted, lease, record, told, faults, clock };
}

it("publishes the host while it renews its lease, and takes it back when the platform ends", async () => {
  const { directory, lease, record } = await openLease();
  expect(lease.state).toBe("live");
  const end = performance.now() + 1500;
  await vi.waitFor(
    async () => {
      expect(lease.state).toBe("live");
      expect(JSON.parse((await directory.get(KEY))?.value ?? "")).toEqual(record);
      expect(performance.now()).toBeGreaterThan(end);
    },
    { timeout: 10_000 },
  );
  expect(lease.term).toBe(1);
  await lease.close();
  expect(await directory.get(KEY)).toBeUndefined();
  expect(lease.state).toBe("lost");
});

it("is in its grace when the directory is out of reach, then lost, and live again in a new term", async () => {
  const { directory, interrupted, lease, told } = await openLease();
  interrupted.cut();
  await vi.waitFor(() => expect(told).toEqual(["live", "grace", "lost"]), { timeout: 10_000 });
  expect(await directory.get(KEY)).toBeUndefined();
  interrupted.mend();
  await vi.waitFor(() => expect(lease.state).toBe("live"), { timeout: 10_000 });
  expect(lease.term).toBe(2);
  expect(await directory.get(KEY)).toBeDefined();
});

it("stays live through an interruption that is shorter than the lease", async () => {
  const { interrupted, lease, told, faults } = await openLease({ ttlMs: 4000 });
  interrupted.cut();
  // A renewal has failed, and the lease is still good.
  await vi.waitFor(() => expect(faults).not.toEqual([]), { timeout: 10_000 });
  expect(lease.state).toBe("live");
  interrupted.mend();
  const end = performance.now() + 4500;
  await vi.waitFor(() => expect(performance.now()).toBeGreaterThan(end), { timeout: 10_000 });
  expect(lease.state).toBe("live");
  expect(lease.term).toBe(1);
  expect(told).toEqual(["live"]);
});

it("does not believe what it was told before its process was stopped", async () => {
  const { lease, clock } = await openLease({ ttlMs: 60_000, graceMs: 30_000 });
  expect(lease.state).toBe("live");
  clock.ahead = 60_000;
  expect(lease.state).toBe("grace");
  clock.ahead = 95_000;
  expect(lease.state).toBe("lost");
});

it("says that it is live for a shorter time than the directory does", async () => {
  const { lease, clock } = await openLease({ ttlMs: 60_000 });
  clock.ahead = 59_000;
  expect(lease.state).toBe("live");
  clock.ahead = 59_500;
  expect(lease.state).toBe("grace");
});

it("publishes what has changed", async () => {
  const { directory, lease, record } = await openLease({ ttlMs: 60_000 });
  record.draining = true;
  await lease.publish();
  expect(JSON.parse((await directory.get(KEY))?.value ?? "")).toMatchObject({ draining: true });
});

it("does not publish a host that is no longer a member", async () => {
  const { directory, interrupted, lease, faults, told } = await openLease();
  interrupted.cut();
  await vi.waitFor(() => expect(told).toContain("lost"), { timeout: 10_000 });
  await directory.transact([], [deletion(MEMBER)]);
  interrupted.mend();
  await vi.waitFor(() => expect(faults.map(String)).toContain("Error: no longer a member"), { timeout: 10_000 });
  expect(await directory.get(KEY)).toBeUndefined();
  expect(lease.state).toBe("lost");
});

it("stays live while the directory renews leases but takes no writes, as a full one does", async () => {
  const { interrupted, lease, record, told, faults } = await openLease();
  interrupted.transact = () => Promise.reject(new Error("no space"));
  record.draining = true; // there is something to publish
  const end = performance.now() + 1500;
  await vi.waitFor(() => expect(performance.now()).toBeGreaterThan(end), { timeout: 10_000 });
  expect(faults).not.toEqual([]);
  expect([lease.state, told]).toEqual(["live", ["live"]]);
});
