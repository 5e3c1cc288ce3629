/** Which machines a host may start, when its lease is not what it was. */
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import type { LeaseState } from "../../src/cluster.ts";
import { KEYS } from "../../src/keys.ts";
import { LocalDirectory } from "../../src/local/directory.ts";
import { StartGate } from "../../src/ownership/gate.ts";
import { put } from "../../src/stored.ts";

const ID = "0123456789abcd";

/** Host a, which has read that the machine is its own. */
async function hostA() {
  const directory = new LocalDirectory(join(await tempFolder("gate"), "directory.db"));
  onTestFinished(() => directory.close());
  const give = (host: string, epoch: number) => {
    const owner = { app: "shop", name: "web", host, epoch, address: "10.0.0.2" };
    return directory.transact([], [put(`${KEYS.machines}${ID}`, owner)]);
  };
  await give("a", 1);
  const lease = { state: "live" as LeaseState, term: 1, subscribe: () => () => {} };
  const view = { staleSince: undefined as number | undefined };
  const gate = new StartGate({ directory, host: "a", lease, view: view as never });
  await gate.read();
  return { gate, lease, view, give };
}

test("without a lease, a directory that answers is asked: the machine may be another host's by now", async () => {
  const { gate, lease, give } = await hostA();
  lease.state = "grace"; // the process was stopped for longer than its lease
  expect(await gate.verify(ID, never())).toBeUndefined();
  await give("b", 2);
  expect(await gate.verify(ID, never())).toMatchObject({ code: "moved" });
});

test("without a lease and without an answer, what was read under the last lease counts", async () => {
  const { gate, lease, view, give } = await hostA();
  lease.state = "grace";
  view.staleSince = 1;
  await give("b", 2);
  expect(await gate.verify(ID, never())).toBeUndefined();
  lease.state = "lost";
  expect(await gate.verify(ID, never())).toMatchObject({ code: "unavailable" });
});

test("under another lease, everything is read again", async () => {
  const { gate, lease, give } = await hostA();
  await give("b", 2);
  lease.term = 2;
  expect(await gate.verify(ID, never())).toMatchObject({ code: "moved" });
});
