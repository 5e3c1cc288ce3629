/** The log of a machine through its life, on the fake hypervisor. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  newWorld,
  runningMachine,
  SMALL,
  startPlatform,
  type World,
} from "../../../platform/test/helpers/fake-world.ts";
import type { LogEntry } from "../../src/logs/entry.ts";
import type { Resources } from "../../src/open.ts";

const NEVER = new AbortController().signal;

async function world(): Promise<World> {
  const made = await newWorld();
  onTestFinished(made.dispose);
  return made;
}

async function collect(blocks: AsyncIterable<LogEntry[]>): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const block of blocks) entries.push(...block);
  return entries;
}

function textsOf(platform: Resources, id: string): Promise<string[]> {
  const reading = collect(platform.logs.read("shop", { machines: [id], limit: 100, signal: NEVER }));
  return reading.then((entries) => entries.map(({ text }) => text));
}

test("records every event with its reason, and continues with the next platform", async () => {
  const place = await world();
  const first = await startPlatform(place);
  const id = await runningMachine(first);
  first.machines.suspend("shop", id);
  await first.machines.wait("shop", id, ["suspended"], { timeoutMs: 5000 });
  await first.close();
  const second = await startPlatform(place);
  onTestFinished(() => second.close());
  second.machines.start("shop", id);
  await second.machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
  await expect.poll(() => textsOf(second, id)).toHaveLength(7);
  expect(await textsOf(second, id)).toEqual([
    "create: created. Machine created.",
    "start: created -> starting. Start requested.",
    "started: starting -> running. Running. Cold start.",
    "suspend: running -> suspending. Suspend requested.",
    "captured: suspending -> suspended. Suspended.",
    "start: suspended -> starting. Start requested.",
    expect.stringMatching(/^started: starting -> running\. Running\. Resumed after \d+\.\d s asleep\.$/),
  ]);
});

test("says who requested a command, if it was the proxy or the machine itself", async () => {
  const platform = await startPlatform(await world());
  const { machines } = platform;
  onTestFinished(() => platform.close());
  const id = await runningMachine(platform);
  machines.sleep("shop", id, { how: "suspend", otherwise: "stop" }, { by: "proxy", idle_ms: 300_040 });
  await machines.wait("shop", id, ["suspended"], { timeoutMs: 5000 });
  machines.start("shop", id, { by: "proxy" });
  await machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
  machines.stop("shop", id, { by: "itself" });
  await machines.wait("shop", id, ["stopped"], { timeoutMs: 5000 });
  const asked = (await textsOf(platform, id)).filter((text) => text.includes(" requested by "));
  expect(asked).toEqual([
    "suspend: running -> suspending. Suspend requested by the proxy, after 300.0 s without a request.",
    "start: suspended -> starting. Start requested by the proxy.",
    "stop: running -> stopping. Stop requested by the machine itself.",
  ]);
});

test("ends for its followers when the machine is destroyed, and is deleted with it", async () => {
  const place = await world();
  const platform = await startPlatform(place);
  const { machines } = platform;
  onTestFinished(() => platform.close());
  const id = await runningMachine(platform);
  const following = collect(platform.logs.read("shop", { machines: [id], limit: 0, follow: true, signal: NEVER }));
  await new Promise((resolve) => setImmediate(resolve));
  machines.destroy("shop", id, { force: true });
  expect((await following).at(-1)?.text).toBe("destroy: running -> destroying. Destroy requested.");
  await machines.wait("shop", id, ["destroyed"], { timeoutMs: 5000 });
  expect(await readdir(join(place.folder, "machines"))).toEqual([]);
  expect(await textsOf(platform, id)).toEqual([]);
  expect(await collect(platform.logs.read("shop", { machines: [id], limit: 10, follow: true, signal: NEVER }))).toEqual(
    [],
  );
});

test("of an app includes machines that are created later, until the app is deleted", async () => {
  const platform = await startPlatform(await world());
  const { machines } = platform;
  onTestFinished(() => platform.close());
  const one = await runningMachine(platform);
  const following = collect(platform.logs.read("shop", { limit: 1000, follow: true, signal: NEVER }));
  const { record } = await machines.create("shop", { config: SMALL });
  await machines.wait("shop", record.id, ["running"], { timeoutMs: 5000 });
  await platform.apps.delete("shop", { force: true });
  const ends = (await following).filter(({ text }) => text.startsWith("destroy: ")).map(({ machine }) => machine);
  expect(ends.toSorted()).toEqual([one, record.id].toSorted());
});

test("of something that does not exist is refused at once", async () => {
  const platform = await startPlatform(await world());
  onTestFinished(() => platform.close());
  expect(() => platform.logs.read("shop", { limit: 1, signal: NEVER })).toThrow("There is no app shop");
  platform.apps.create("shop");
  expect(() => platform.logs.read("shop", { machines: ["nope"], limit: 1, signal: NEVER })).toThrow(
    "has no machine nope",
  );
});
