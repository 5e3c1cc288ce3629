/** What every directory of a cluster must do, whatever keeps it. */
import { randomUUID } from "node:crypto";
import { aborted } from "@hibernaut/lib/async";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Changed, type Directory, HistoryGone, LeaseGone } from "../src/contract.ts";
import { deletion } from "../src/stored.ts";

interface Subject {
  /** Opens one more client of the same directory, as another host does. */
  open(): Directory;
  /** Lets the directory forget everything that changed up to a revision, except for the newest values. */
  forget(revision: number): Promise<void>;
  /** The shortest lease, in milliseconds. */
  leaseMs: number;
}

/** Describes the tests. `subject` is called before each test; keys begin with a prefix of their own. */
export function describeDirectory(name: string, subject: () => Subject): void {
  describe(`The directory ${name}`, () => {
    let a: Directory;
    let b: Directory;
    let root = "";
    const ending: (() => void | Promise<void>)[] = [];
    beforeEach(() => {
      [a, b] = [subject().open(), subject().open()];
      root = `/hib/test-${randomUUID()}/`;
    });
    afterEach(async () => {
      for (const end of ending.splice(0)) await end();
      await Promise.all([a.close(), b.close()]);
    });

    /** Reads changes until there are `count` of them. */
    async function changes(directory: Directory, after: number, count: number, prefix = root) {
      const stop = new AbortController();
      ending.push(() => stop.abort());
      const seen: Changed[] = [];
      for await (const batch of directory.watch(prefix, after, stop.signal)) {
        seen.push(...batch);
        if (seen.length >= count) break;
      }
      stop.abort();
      return seen.map(({ key, value, revision }) => ({ key: key.slice(root.length), value, revision }));
    }

    const put = (key: string, value: string) => a.transact([], [{ key: root + key, value }]) as Promise<number>;

    it("shows one host at once what another one wrote", async () => {
      const revision = await put("x", "1");
      expect(await b.get(`${root}x`)).toEqual({ key: `${root}x`, value: "1", revision });
      expect(await b.get(`${root}y`)).toBeUndefined();
    });

    it("lets one of many hosts claim a name", async () => {
      const claim = { key: `${root}name`, revision: 0 };
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          (index % 2 === 0 ? a : b).transact([claim], [{ key: claim.key, value: String(index) }]),
        ),
      );
      const winner = results.findIndex((revision) => revision !== undefined);
      expect(results.filter((revision) => revision !== undefined)).toHaveLength(1);
      expect(await a.get(claim.key)).toMatchObject({ value: String(winner), revision: results[winner] });
    });

    it("loses no increment of hosts that swap what they have read", async () => {
      await put("count", "0");
      const increment = async (directory: Directory) => {
        for (let done = 0; done < 10; ) {
          const entry = await directory.get(`${root}count`);
          if (entry === undefined) throw new Error("the count is gone");
          const { key, value, revision } = entry;
          const swapped = await directory.transact([{ key, revision }], [{ key, value: String(Number(value) + 1) }]);
          if (swapped !== undefined) done += 1;
        }
      };
      await Promise.all([increment(a), increment(b), increment(a)]);
      expect((await b.get(`${root}count`))?.value).toBe("30");
    });

    it("changes all keys of a transaction or none", async () => {
      const first = await put("a", "1");
      const both = [deletion(`${root}a`), { key: `${root}b`, value: "2" }];
      expect(await b.transact([{ key: `${root}a`, revision: first - 1 }], both)).toBeUndefined();
      expect((await a.list(root)).entries.map(({ key }) => key)).toEqual([`${root}a`]);
      const revision = await b.transact([{ key: `${root}a`, revision: first }], both);
      expect(await a.list(root)).toEqual({ entries: [{ key: `${root}b`, value: "2", revision }], revision });
    });

    it("tells of a deletion that deleted nothing with a revision that every copy has", async () => {
      expect(await a.transact([], [deletion(`${root}none`)])).toBe(1);
    });

    it("lists more keys than fit into one reply, sorted and as of one moment", async () => {
      const names = Array.from({ length: 2500 }, (_, index) => `k${String(index).padStart(5, "0")}`);
      for (let from = 0; from < names.length; from += 100)
        await a.transact(
          [],
          names.slice(from, from + 100).map((key) => ({ key: root + key, value: '"ü"' })),
        );
      const last = await put("z", "1");
      const { entries, revision } = await b.list(`${root}k`);
      expect(entries.map(({ key }) => key)).toEqual(names.map((key) => root + key));
      expect(entries.every(({ value }) => value === '"ü"')).toBe(true);
      expect(revision).toBe(last);
    });

    it("watches from a revision, in order, those of one transaction together", async () => {
      const first = await put("a", "1");
      const second = await a.transact([], [deletion(`${root}a`), { key: `${root}b`, value: "2" }]);
      const stop = new AbortController();
      ending.push(() => stop.abort());
      const batches: (readonly Changed[])[] = [];
      for await (const batch of b.watch(root, first, stop.signal)) {
        if (batch.length > 0) batches.push(batch);
        if (batches.length === 1) await put("c", "3");
        if (batches.length === 2) break;
      }
      expect(batches[0]?.map(({ key, value, revision }) => [key.slice(root.length), value, revision])).toEqual([
        ["a", null, second],
        ["b", "2", second],
      ]);
      expect(batches[1]).toMatchObject([{ key: `${root}c`, value: "3" }]);
    });

    it("says that a watch is connected before anything changes, and ends it with its signal", async () => {
      const after = await put("a", "1");
      const stop = new AbortController();
      const batches: (readonly Changed[])[] = [];
      for await (const batch of b.watch(root, after, stop.signal)) {
        batches.push(batch);
        stop.abort();
      }
      expect(batches).toEqual([[]]);
    });

    it("watches its own prefix only", async () => {
      const after = await put("a", "1");
      await a.transact([], [{ key: `${root.slice(0, -1)}-other/x`, value: "1" }]);
      const last = await put("b", "2");
      expect(await changes(b, after, 1)).toEqual([{ key: "b", value: "2", revision: last }]);
    });

    it("says when what changed is forgotten", async () => {
      const after = await put("a", "1");
      await put("a", "2");
      const last = await put("a", "3");
      await subject().forget(last);
      const seen = changes(b, after, 1);
      await expect(seen).rejects.toThrow(HistoryGone);
      await put("a", "4");
      expect(await changes(b, last, 1)).toMatchObject([{ key: "a", value: "4" }]);
    });

    it("deletes the keys of a lease that is not renewed, and tells watches", async () => {
      const lease = await a.lease(subject().leaseMs);
      expect(lease.ttlMs).toBeGreaterThanOrEqual(subject().leaseMs);
      const after = (await a.transact([], [{ key: `${root}up`, value: "1", lease }])) as number;
      expect((await b.get(`${root}up`))?.value).toBe("1");
      expect(await changes(b, after, 1)).toMatchObject([{ key: "up", value: null }]);
      expect(await a.get(`${root}up`)).toBeUndefined();
      expect(await lease.renew(AbortSignal.timeout(5000))).toBe(false);
      await expect(a.transact([], [{ key: `${root}up`, value: "1", lease }])).rejects.toThrow(LeaseGone);
    });

    it("keeps the keys of a lease that is renewed for longer than it lasts, until it is revoked", async () => {
      const lease = await a.lease(subject().leaseMs);
      await a.transact([], [{ key: `${root}up`, value: "1", lease }]);
      const end = performance.now() + lease.ttlMs * 1.5;
      while (performance.now() < end) {
        expect(await lease.renew(AbortSignal.timeout(5000))).toBe(true);
        await aborted(AbortSignal.timeout(lease.ttlMs / 4));
      }
      expect((await b.get(`${root}up`))?.value).toBe("1");
      await lease.revoke(AbortSignal.timeout(5000));
      expect(await b.get(`${root}up`)).toBeUndefined();
    });

    it("keeps a key that was written again without its lease", async () => {
      const lease = await a.lease(subject().leaseMs);
      await a.transact([], [{ key: `${root}up`, value: "1", lease }]);
      await put("up", "2");
      await lease.revoke(AbortSignal.timeout(5000));
      expect((await b.get(`${root}up`))?.value).toBe("2");
    });

    it("refuses a transaction that changes a key twice", async () => {
      const twice = ["1", "2"].map((value) => ({ key: `${root}a`, value }));
      await expect(a.transact([], twice)).rejects.toThrow("changes a key twice");
      expect(await a.get(`${root}a`)).toBeUndefined();
    });

    it("does nothing for a signal that is aborted already", async () => {
      const signal = AbortSignal.abort(new Error("no longer needed"));
      await expect(a.transact([], [{ key: `${root}a`, value: "1" }], signal)).rejects.toThrow("no longer needed");
      await expect(a.get(`${root}a`, signal)).rejects.toThrow("no longer needed");
      expect(await a.get(`${root}a`)).toBeUndefined();
    });

    it("is unavailable once it is closed", async () => {
      const c = subject().open();
      await c.close();
      await expect(c.get(`${root}a`)).rejects.toMatchObject({ code: "unavailable" });
    });
  });
}
