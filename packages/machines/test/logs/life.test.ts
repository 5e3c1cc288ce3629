/** The log of a machine through its life, on the fake hypervisor. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { shopForEach } from "../shop.ts";
import { collect } from "./helpers.ts";

const NEVER = new AbortController().signal;
const shop = shopForEach();

const entriesOf = (id: string, follow = false) =>
  collect(shop.platform.logs.read("shop", { machines: [id], limit: 100, follow, signal: NEVER }));
const textsOf = async (id: string) => (await entriesOf(id)).map(({ text }) => text);

test("records every event with its reason, and continues with the next platform", async () => {
  const id = await shop.sleeper();
  await shop.restart();
  await shop.start(id);
  await expect.poll(() => textsOf(id)).toHaveLength(7);
  expect(await textsOf(id)).toEqual([
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
  const id = await shop.run();
  shop.machines.sleep("shop", id, { how: "suspend", otherwise: "stop" }, { by: "proxy", idle_ms: 300_040 });
  await shop.reach(id, "suspended");
  shop.machines.start("shop", id, { by: "proxy" });
  await shop.reach(id, "running");
  shop.machines.stop("shop", id, { by: "itself" });
  await shop.reach(id, "stopped");
  expect((await textsOf(id)).filter((text) => text.includes(" requested by "))).toEqual([
    "suspend: running -> suspending. Suspend requested by the proxy, after 300.0 s without a request.",
    "start: suspended -> starting. Start requested by the proxy.",
    "stop: running -> stopping. Stop requested by the machine itself.",
  ]);
});

test("says that a machine slept because its connections were silent, if that is what its service waits for", async () => {
  const id = await shop.run();
  const details = { by: "proxy", idle_ms: 60_000, quiet: true };
  shop.machines.sleep("shop", id, { how: "suspend", otherwise: "off" }, details);
  await shop.reach(id, "suspended");
  expect(await textsOf(id)).toContain(
    "suspend: running -> suspending. Suspend requested by the proxy, after 60.0 s in which nothing passed through its connections.",
  );
});

test("ends for its followers when the machine is destroyed, and is deleted with it", async () => {
  const id = await shop.run();
  const following = entriesOf(id, true);
  await new Promise((resolve) => setImmediate(resolve));
  shop.machines.destroy("shop", id, { force: true });
  expect((await following).at(-1)?.text).toBe("destroy: running -> destroying. Destroy requested.");
  await shop.reach(id, "destroyed");
  expect(await readdir(join(shop.world.folder, "machines"))).toEqual([]);
  expect(await entriesOf(id)).toEqual([]);
  expect(await entriesOf(id, true)).toEqual([]);
});

test("of an app includes machines that are created later, until the app is deleted", async () => {
  const one = await shop.run();
  const following = collect(shop.platform.logs.read("shop", { limit: 1000, follow: true, signal: NEVER }));
  const other = await shop.run();
  await shop.platform.apps.delete("shop", { force: true });
  const ends = (await following).filter(({ text }) => text.startsWith("destroy: ")).map(({ machine }) => machine);
  expect(ends.toSorted()).toEqual([one, other].toSorted());
});

test("of something that does not exist is refused at once", () => {
  const read = (app: string, machines?: string[]) =>
    shop.platform.logs.read(app, { machines, limit: 1, signal: NEVER });
  expect(() => read("nowhere")).toThrow("There is no app nowhere");
  expect(() => read("shop", ["nope"])).toThrow("has no machine nope");
});
