/** What a platform that ended in the middle of something left in the kernel, with real rules and packets. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import { networkOf } from "../../platform/test/helpers/served.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { BridgeNetwork } from "../src/bridge/index.ts";
import { namesFor } from "../src/bridge/names.ts";
import { uninstallBridge } from "../src/bridge/remove.ts";
import { guestOf, ip, isRoot, serverHere } from "./rig.ts";

const run = promisify(execFile);

async function opened(dataDir: string, subnet: string): Promise<BridgeNetwork> {
  onTestFinished(() => uninstallBridge(dataDir));
  const network = await BridgeNetwork.open({ dataDir, subnet, machines: [], controlPorts: [], blocked: [] });
  onTestFinished(() => network.close());
  return network;
}

test.skipIf(!isRoot)("rules without a bridge keep nobody from the host who has their subnet now", async () => {
  const [before, now] = [await tempFolder("orphan"), await tempFolder("orphan")];
  const gone = await opened(before, "auto");
  await gone.close();
  await ip(`link delete dev ${namesFor(before).bridge}`);
  const network = await opened(now, gone.subnet);
  const guest = await guestOf(network, { dataDir: now });
  expect(await guest.tries(`${guest.gateway}:${await serverHere()}`)).toEqual(["open"]);
  expect((await run("nft", ["list", "tables"])).stdout).not.toContain(namesFor(before).table);
});

test.skipIf(!isRoot)("a network that is closed while it repairs itself sets up nothing after that", async () => {
  const dataDir = await tempFolder("orphan");
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const network = await opened(dataDir, "auto");
  await uninstallBridge(dataDir);
  // It sees that all is gone.
  vi.advanceTimersByTime(5000);
  await network.close();
  const there = await networkOf(dataDir);
  await uninstallBridge(dataDir);
  expect(there).not.toEqual([]);
  expect(await networkOf(dataDir)).toEqual([]);
});
