import { isHibernautError } from "@hibernaut/domain/errors";
import { expect, it, onTestFinished, vi } from "vitest";
import { EtcdDirectory } from "../src/etcd/directory.ts";
import { KEYS } from "../src/keys.ts";
import { DirectoryView } from "../src/view.ts";
import { startEtcd } from "./etcd.ts";

const KEY = `${KEYS.apps}count`;
/** An election, and the limits of requests, on a busy host. */
const SETTLE_MS = 30_000;

it("loses no acknowledged write while members of etcd, and its leader, are killed and frozen", {
  timeout: 300_000,
}, async () => {
  await using etcd = await startEtcd({ members: 3 });
  const directories = etcd.endpoints.map(
    (_, index) => new EtcdDirectory({ endpoints: [...etcd.endpoints.slice(index), ...etcd.endpoints.slice(0, index)] }),
  );
  const view = new DirectoryView({ directory: directories[0] as EtcdDirectory });
  onTestFinished(async () => {
    await view.close();
    await Promise.all(directories.map((directory) => directory.close()));
  });
  view.start();
  const seen: number[] = [];
  view.subscribe(KEY, (changes) => seen.push(...changes.map(({ value }) => Number(value))));
  await (directories[0] as EtcdDirectory).transact([], [{ key: KEY, value: "0" }]);

  const lease = await (directories[1] as EtcdDirectory).lease(10_000);
  await (directories[1] as EtcdDirectory).transact([], [{ key: `${KEYS.hosts}a`, value: '"up"', lease }]);

  const stop = new AbortController();
  const counts = { acknowledged: 0, unknown: 0 };
  const increment = async (directory: EtcdDirectory) => {
    while (!stop.signal.aborted) {
      try {
        const entry = await directory.get(KEY);
        if (entry === undefined) throw new Error("the count is gone");
        const condition = { key: KEY, revision: entry.revision };
        const change = { key: KEY, value: String(Number(entry.value) + 1) };
        if ((await directory.transact([condition], [change])) !== undefined) counts.acknowledged += 1;
      } catch (error) {
        if (!isHibernautError(error, "unavailable")) throw error;
        counts.unknown += 1;
      }
    }
  };
  const renew = async () => {
    let renewals = 0;
    while (!stop.signal.aborted) {
      const isAlive = await lease.renew(stop.signal).catch(() => undefined);
      // Unknown is not the end: the next one may be in time.
      if (isAlive === false) throw new Error(`the lease ended after ${renewals} renewals`);
      if (isAlive) renewals += 1;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  };
  const running = [...directories.map(increment), renew()];
  const more = async () => {
    const before = counts.acknowledged;
    await vi.waitFor(() => expect(counts.acknowledged).toBeGreaterThan(before + 50), { timeout: SETTLE_MS });
  };
  await more();

  const killed = await etcd.leader();
  await killed.kill();
  await more();
  killed.start();
  await more();

  const frozen = await etcd.leader();
  frozen.freeze();
  await more();
  frozen.thaw();
  await more();

  for (const member of etcd.members) {
    await member.kill();
    await more();
    member.start();
    await vi.waitFor(() => etcd.leader(), { timeout: SETTLE_MS });
    await more();
  }

  stop.abort();
  await Promise.all(running);
  const final = await vi.waitFor(() => (directories[2] as EtcdDirectory).get(KEY), { timeout: SETTLE_MS });
  const count = Number(final?.value);
  expect(count).toBeGreaterThanOrEqual(counts.acknowledged);
  expect(count).toBeLessThanOrEqual(counts.acknowledged + counts.unknown);
  // The watch has seen each value once, in order, over all connections that it had.
  await view.reached(final?.revision ?? 0, AbortSignal.timeout(SETTLE_MS));
  expect(seen).toEqual(Array.from({ length: count + 1 }, (_, index) => index));
  expect((await (directories[0] as EtcdDirectory).get(`${KEYS.hosts}a`))?.value).toBe('"up"');
});
