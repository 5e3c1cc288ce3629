/** What etcd and a host's copy of the directory can take on this machine, and what they need for it. */
import { setTimeout as delay } from "node:timers/promises";
import { KEYS } from "@hibernaut/cluster/keys";
import { EtcdDirectory } from "../../packages/cluster/src/etcd/directory.ts";
import { DirectoryView } from "../../packages/cluster/src/view.ts";
import { startEtcd } from "../lib/etcd.mjs";
import { percentile, round } from "../lib/stats.mjs";

/** About as large as what an owner publishes of a machine with a service. */
const VALUE = JSON.stringify({ epoch: 1, state: "running", load: 1, route: { filler: "x".repeat(400) } });
const MACHINES = 1000;
/** Until the last change has arrived everywhere. */
const SETTLE_MS = 500;

/** @param {number} number */
const keyOf = (number) => `${KEYS.states}${(number % MACHINES).toString(16).padStart(14, "0")}`;

/**
 * Writes as fast as `writers` can that wait for each write.
 *
 * @param {{ members: number, writers: number, seconds: number }} options
 */
export async function measureWrites({ members, writers, seconds }) {
  const etcd = await startEtcd(members);
  const directory = new EtcdDirectory({ endpoints: etcd.urls });
  try {
    /** @type {number[]} */
    const took = [];
    const [began, cpu] = [performance.now(), etcd.cpuMs()];
    const end = began + seconds * 1000;
    const writer = async (/** @type {number} */ first) => {
      for (let number = first; performance.now() < end; number += writers) {
        const start = performance.now();
        await directory.transact([], [{ key: keyOf(number), value: VALUE }]);
        took.push(performance.now() - start);
      }
    };
    await Promise.all(Array.from({ length: writers }, (_, first) => writer(first)));
    const elapsed = performance.now() - began;
    return {
      per_second: round((took.length * 1000) / elapsed, 0),
      p50_ms: round(percentile(took, 0.5)),
      p99_ms: round(percentile(took, 0.99)),
      etcd_cpu_us: round(((etcd.cpuMs() - cpu) * 1000) / took.length, 0),
    };
  } finally {
    await directory.close();
    etcd.close();
  }
}

/**
 * Writes at a steady rate while `hosts` copies of the directory follow. `etcd_cpu_us` and `host_cpu_us` are of one change
 * that one host gets.
 *
 * @param {{ hosts: number, perSecond: number, seconds: number }} options
 */
export async function measureFanOut({ hosts, perSecond, seconds }) {
  const etcd = await startEtcd(1);
  const directory = new EtcdDirectory({ endpoints: etcd.urls });
  const followers = Array.from({ length: hosts }, () => {
    const own = new EtcdDirectory({ endpoints: etcd.urls });
    return { own, view: new DirectoryView({ directory: own }) };
  });
  try {
    for (const { view } of followers) view.start();
    const first = (await directory.transact([], [{ key: keyOf(0), value: VALUE }])) ?? 0;
    await Promise.all(followers.map(({ view }) => view.reached(first)));
    const writing = async (/** @type {number[] | undefined} */ delays) => {
      const began = performance.now();
      for (let number = 0; number < perSecond * seconds; number += 1) {
        await delay(Math.max(0, began + (number * 1000) / perSecond - performance.now()));
        const start = performance.now();
        const revision = (await directory.transact([], [{ key: keyOf(number), value: VALUE }])) ?? 0;
        if (delays !== undefined)
          void Promise.all(followers.map(({ view }) => view.reached(revision))).then(() =>
            delays.push(performance.now() - start),
          );
      }
      await delay(SETTLE_MS);
    };
    /** @type {number[]} */
    const delays = [];
    const [cpu, own] = [etcd.cpuMs(), process.cpuUsage()];
    await writing(delays);
    const [withAll, ownWithAll] = [etcd.cpuMs() - cpu, process.cpuUsage(own)];
    for (const { view, own: one } of followers.splice(0)) {
      await view.close();
      await one.close();
    }
    const [alone, ownAlone] = [etcd.cpuMs(), process.cpuUsage()];
    await writing(undefined);
    const changes = perSecond * seconds * hosts;
    const ownUs = ownWithAll.user + ownWithAll.system - sum(process.cpuUsage(ownAlone));
    return {
      etcd_cpu_us: round(((withAll - (etcd.cpuMs() - alone)) * 1000) / changes, 1),
      host_cpu_us: round(ownUs / changes, 1),
      all_have_it_p50_ms: round(percentile(delays, 0.5)),
      all_have_it_p99_ms: round(percentile(delays, 0.99)),
    };
  } finally {
    for (const { view, own } of followers) {
      await view.close();
      await own.close();
    }
    await directory.close();
    etcd.close();
  }
}

/** @param {{ user: number, system: number }} usage */
function sum({ user, system }) {
  return user + system;
}
