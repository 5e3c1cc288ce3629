/** How often other hosts are told of a machine's configuration. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { expect, test } from "vitest";
import { machine } from "../../../platform/test/helpers/decisions.ts";
import { Publications, UNVERSIONED_EVERY_MS } from "../../src/ownership/publications.ts";

const FIRST = machine("running");
const labelled = (build: string, more: Partial<MachineRecord> = {}): MachineRecord => {
  const config: MachineConfig = { ...FIRST.config, metadata: { build } };
  return { ...FIRST, config, ...more };
};

/** Publications whose writes end when the test says so, and whose clock only moves with waits. */
function rig({ isWritten = false } = {}) {
  let now = 1000;
  const closing = new AbortController();
  const writes: { record: MachineRecord; end: (isOurs: boolean) => void; fail: (error: Error) => void }[] = [];
  const waits: { ms: number; over: () => void }[] = [];
  const publications = new Publications({
    write(record) {
      const { promise, resolve, reject } = Promise.withResolvers<boolean>();
      writes.push({ record, end: resolve, fail: reject });
      return promise;
    },
    isWritten: () => isWritten,
    log: { warn() {} },
    signal: closing.signal,
    now: () => now,
    async pause(ms, signal) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waits.push({ ms, over: () => resolve(void (now += ms)) });
      signal.addEventListener("abort", () => resolve());
      await promise;
    },
  });
  const last = () => writes.at(-1) as (typeof writes)[number];
  /** Lets all that can happen happen. */
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  const finish = async () => {
    last().end(true);
    await settle();
  };
  return { publications, writes, waits, last, settle, finish, close: () => closing.abort() };
}

test("one is under way, and the newest of a thousand follows it after a wait", async () => {
  const { publications, writes, waits, last, settle, finish } = rig();
  publications.publish(labelled("first"));
  for (let build = 0; build < 1000; build += 1) publications.publish(labelled(String(build)));
  expect(writes).toHaveLength(1);
  await finish();
  for (let build = 1000; build < 2000; build += 1) publications.publish(labelled(String(build)));
  expect(writes).toHaveLength(1);
  expect(waits.map(({ ms }) => ms)).toEqual([UNVERSIONED_EVERY_MS]);
  waits[0]?.over();
  await settle();
  expect(writes).toHaveLength(2);
  expect(last().record.config.metadata).toEqual({ build: "1999" });
  await finish();
  await publications.idle();
});

test("a new version waits for what is under way, and for nothing else", async () => {
  const { publications, writes, last, settle, finish } = rig();
  publications.publish(FIRST);
  await finish();
  publications.publish(labelled("waits"));
  await settle();
  expect(writes).toHaveLength(1);
  const next = labelled("new", { version: "V2" });
  publications.publish(next);
  await settle();
  expect(last().record).toBe(next);
  publications.publish(labelled("newer", { version: "V3" }));
  expect(writes).toHaveLength(2);
  await finish();
  expect(last().record.version).toBe("V3");
});

test("at the end of the platform, the newest is written at once, and a directory that fails is asked no more", async () => {
  const { publications, writes, last, settle, finish, close } = rig();
  publications.publish(FIRST);
  await finish();
  publications.publish(labelled("waits"));
  await settle();
  close();
  await settle();
  expect(last().record.config.metadata).toEqual({ build: "waits" });
  last().fail(new Error("away"));
  await publications.idle();
  expect(writes).toHaveLength(2);
});

test("what others know is not written, and nothing follows for a machine that is another host's", async () => {
  const known = rig({ isWritten: true });
  known.publications.publish(FIRST);
  expect(known.writes).toEqual([]);
  const { publications, writes, waits, last, settle } = rig();
  publications.publish(FIRST);
  publications.publish(labelled("more"));
  last().end(false);
  await settle();
  publications.publish(FIRST);
  publications.publish(labelled("more"));
  publications.forget(FIRST.id);
  last().end(true);
  await settle();
  await publications.idle();
  expect([writes.length, waits.length]).toEqual([2, 0]);
});
