/**
 * After a restore of the directory, a host has a claim of its machine that is older than what it has stored.
 *
 * @module-tag again
 */
import { beforeEach, expect, test, vi } from "vitest";
import { ownerIn, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import type { ClusterWorld, TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { KEYS } from "../../src/keys.ts";
import { settle } from "../../src/ownership/settle.ts";
import { deletion, put } from "../../src/stored.ts";
import { asleep, evacuatedFrom, fakeHosts, move, recordOn, TRIES, untilSettled, untilState } from "../fake-hosts.ts";

const OLD_ADDRESS = "10.9.9.9";
let world: ClusterWorld;
let a: TestHost;
let b: TestHost;
let id: string;
let nonce: string;

beforeEach(async () => {
  ({ world, a, b } = await fakeHosts("a", "b"));
  ({ id, nonce } = await asleep(a));
});

const record = () => recordOn(a, id);
const holder = async (address: string) => (await world.directory.get(`${KEYS.addresses}${address}`))?.value;

/** What the directory had before the machine got its present address. */
async function restoreOlder(more: Record<string, unknown> = {}): Promise<void> {
  const { address } = record();
  const older = { ...(await ownerIn(world, id)), address: OLD_ADDRESS, ...more };
  await world.directory.transact(
    [],
    [
      put(`${KEYS.machines}${id}`, older),
      put(`${KEYS.addresses}${OLD_ADDRESS}`, id),
      deletion(`${KEYS.addresses}${address}`),
    ],
  );
}

async function expectOwn(epoch: number, address: string): Promise<void> {
  await vi.waitFor(async () => {
    expect(await ownerIn(world, id)).toEqual({ app: "shop", name: "one", host: "a", epoch, address });
    expect([await holder(address), await holder(OLD_ADDRESS)]).toEqual([JSON.stringify(id), undefined]);
  }, TRIES);
  await untilSettled(a);
  expect(record()).toMatchObject({ epoch, address });
  expect(await wakeOn(a, id)).toBe(nonce);
}

test.each(["by the running one", "by the next platform"])(
  "a machine that got another address since keeps it, which is noticed %s",
  async (when) => {
    const { address } = record();
    await restoreOlder();
    if (when === "by the next platform") await a.restart();
    await expectOwn(1, address);
  },
);

test("a machine that went there and back since, with another address, has both, and is no longer evacuated", async () => {
  const { address } = record();
  await move(a, { id, to: "b" });
  await move(b, { id, to: "a" });
  await restoreOlder({ epoch: 1, evacuated: evacuatedFrom("b") });
  await expectOwn(3, address);
});

test("a machine whose address another one has by now, and that has no memory, gets a new one", async () => {
  const { address } = record();
  a.platform.machines.stop("shop", id);
  await untilState(a, id, "stopped");
  await restoreOlder();
  await world.directory.transact([], [put(`${KEYS.addresses}${address}`, "other")]);
  await vi.waitFor(async () => {
    const owner = await ownerIn(world, id);
    expect([address, OLD_ADDRESS]).not.toContain(owner?.address);
    expect(await holder(owner?.address ?? "")).toBe(JSON.stringify(id));
    expect(record().address).toBe(owner?.address);
  }, TRIES);
});

test("a platform that starts on a directory that has lost its machines says that they are claimed again", async () => {
  const stored = record();
  const cluster = { host: "a", directory: { list: async () => ({ entries: [], revision: 1 }) } };
  const none = { read: async () => new Map() };
  const older = { read: async () => new Map([[id, { host: "a", epoch: 0, address: stored.address }]]) };
  const context = { cluster, another: () => "", log: { warn() {} } };
  for (const [what, read] of Object.entries({ "has lost it": none, "has an older claim of it": older }))
    expect(await settle([stored], { ...context, gate: read } as never)).toEqual([
      { kind: "unknown", record: stored, why: expect.stringMatching(`${what}\\. This host claims it again`) },
    ]);
});
