/** The network of a data directory stays what it is once machines belong to it. */
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { failureReason, run } from "@hibernaut/lib/exec";
import fc from "fast-check";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { boundMode, idsOf } from "../src/bound.ts";
import { BridgeNetwork } from "../src/bridge/index.ts";
import { namesFor } from "../src/bridge/names.ts";
import { uninstallBridge } from "../src/bridge/remove.ts";
import { chooseSubnet } from "../src/bridge/subnet.ts";
import type { KnownMachine } from "../src/contract.ts";
import { openNetwork } from "../src/open.ts";

const isRoot = process.getuid?.() === 0;

const machine = (address: string, memory?: KnownMachine["memory"]): KnownMachine => ({
  id: `m-${address}`,
  app: "shop",
  address,
  ...(memory && { memory }),
});
const user = (memory?: KnownMachine["memory"]) => machine("127.16.0.1", memory);
const bridged = (memory?: KnownMachine["memory"]) => machine("10.213.0.2", memory);

afterEach(() => void vi.unstubAllEnvs());

/** What opening the network with these settings says: the mode and its reason, or the refusal. */
async function opening(
  mode: "auto" | "bridge" | "user",
  machines: KnownMachine[],
  more: { dataDir?: string; dropSnapshots?: boolean; subnet?: string } = {},
): Promise<string> {
  const dataDir = more.dataDir ?? (await tempFolder("bound"));
  onTestFinished(() => (isRoot ? uninstallBridge(dataDir) : undefined));
  const options = { subnet: "auto", controlPorts: [], blocked: [], dropSnapshots: false, ...more, dataDir, machines };
  try {
    const { network, reason, close } = await openNetwork(mode, options);
    await close();
    return `${network.mode}: ${reason}`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Puts an `nft` first in the PATH that does this. */
async function nftThat(does: string): Promise<void> {
  const folder = await tempFolder("nft");
  await writeFile(join(folder, "nft"), `#!/bin/sh\n${does}\n`);
  await chmod(join(folder, "nft"), 0o755);
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
}

describe("the mode", () => {
  test("is that of the guests that run, then of the machines that sleep, then of most machines", () => {
    expect(boundMode([])).toBeUndefined();
    expect(boundMode([user(), user(), bridged("asleep")])).toBe("bridge");
    expect(boundMode([bridged("asleep"), bridged("asleep"), user("awake")])).toBe("user");
    expect(boundMode([user(), user(), bridged()])).toBe("user");
  });

  test("is one that a machine belongs to, in whatever order they come", () => {
    const any = fc.array(
      fc.tuple(fc.constantFrom(user, bridged), fc.constantFrom(undefined, "asleep" as const, "awake" as const)),
      { minLength: 1 },
    );
    fc.assert(
      fc.property(any, (made) => {
        const machines = made.map(([make, memory]) => make(memory));
        const mode = boundMode(machines);
        expect(machines.some(({ address }) => address.startsWith("127.") === (mode === "user"))).toBe(true);
        expect(boundMode(machines.toReversed())).toBe(mode);
      }),
    );
  });

  test("many machines are named up to a point", () => {
    const ids = Array.from({ length: 12 }, (_, index) => ({ id: String(index) }));
    expect(idsOf(ids)).toBe("0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more");
    expect(idsOf(ids.slice(0, 2))).toBe("0, 1");
  });
});

describe("a start with HIBERNAUT_NETWORK=auto", () => {
  test("keeps machines of the user-mode network there, although there could be a bridge", async () => {
    expect(await opening("auto", [user()])).toMatch(
      /^user: the machines of this data directory belong to it; HIBERNAUT_NETWORK=bridge moves them$/,
    );
  });

  test("does not move machines away from a bridge that the user may not set up", async () => {
    const getuid = vi.spyOn(process, "getuid").mockReturnValue(1000);
    const refusal = await opening("auto", [bridged("asleep"), machine("10.213.0.3")]).finally(() =>
      getuid.mockRestore(),
    );
    expect(refusal).toMatch(
      /^The machines of this data directory \(2\) belong to a bridge, which cannot be set up now\. .* needs a platform that runs as root\. In another network, 1 of them would lose its memory: m-10\.213\.0\.2\. Repair the bridge and start the platform again, or move them: `HIBERNAUT_NETWORK=user hibernaut serve --drop-snapshots`\.$/,
    );
  });

  test.skipIf(!isRoot)("ends with the signal that killed a tool, and the next start has the bridge again", async () => {
    const dataDir = await tempFolder("bound");
    const network = await BridgeNetwork.open({ dataDir, subnet: "auto", machines: [], controlPorts: [], blocked: [] });
    const sleeping = machine(network.allocate(new Set()), "asleep");
    await network.close();
    await nftThat("kill -KILL $$");
    expect(await opening("auto", [sleeping], { dataDir })).toMatch(
      /which cannot be set up now\. .*nft failed, because it was ended by the signal SIGKILL\./,
    );
    vi.unstubAllEnvs();
    expect(await opening("auto", [sleeping], { dataDir })).toMatch(/^bridge: /);
  });

  test.skipIf(!isRoot)("without machines takes what the host can have", async () => {
    await nftThat("echo 'no such kernel module' >&2; exit 1");
    expect(await opening("auto", [])).toMatch(/^user: .*nft failed, because no such kernel module/);
  });
});

describe("a start with another network than the machines'", () => {
  test("is refused with what it would cost, and which flag allows it", async () => {
    expect(await opening("user", [bridged("asleep"), bridged()])).toBe(
      "1 sleeping machine belongs to a bridge, but HIBERNAUT_NETWORK is user now: m-10.213.0.2. It would lose its memory (network_changed). To keep it, set HIBERNAUT_NETWORK=auto, and start the platform again. To give it up instead: `hibernaut serve --drop-snapshots`.",
    );
    expect(await opening("user", [bridged("awake")])).toMatch(/^1 sleeping or running machine belongs to a bridge/);
  });

  test("is made with the flag, or where nothing is lost", async () => {
    expect(await opening("user", [bridged("asleep")], { dropSnapshots: true })).toMatch(/^user: /);
    expect(await opening("user", [bridged()])).toMatch(/^user: /);
  });

  test.skipIf(!isRoot)("is refused before anything on the host has changed", async () => {
    const dataDir = await tempFolder("bound");
    expect(await opening("bridge", [user("asleep")], { dataDir })).toMatch(
      /^1 sleeping machine belongs to the user-mode network, but .* as HIBERNAUT_NETWORK says: .* set HIBERNAUT_NETWORK=user, and start the platform again\./,
    );
    expect(await opening("bridge", [bridged("asleep")], { dataDir, subnet: "10.99.4.0/22" })).toMatch(
      /but HIBERNAUT_NETWORK_SUBNET is 10\.99\.4\.0\/22 now: /,
    );
    expect(await uninstallBridge(dataDir)).toBeUndefined();
  });
});

test("a program that is killed, fails or hangs is told apart", async () => {
  const reason = (script: string, timeoutMs = 10_000) =>
    run("sh", ["-c", script], { timeoutMs }).then(() => "ended well", failureReason);
  expect(await reason("kill -SEGV $$")).toBe("it was ended by the signal SIGSEGV");
  expect(await reason("echo half a >&2; kill -TERM $$")).toBe("it was ended by the signal SIGTERM (half a)");
  expect(await reason("echo no room >&2; exit 3")).toBe("no room");
  expect(await reason("exec sleep 60", 50)).toBe("it took too long and was ended");
});

test.skipIf(!isRoot)("platforms that start at once on one host have subnets of their own", async () => {
  const parent = await tempFolder("at-once");
  // Where the search for a subnet begins follows from the directory. These all begin at the same place.
  const wish = (folder: string) => chooseSubnet([], Number.parseInt(namesFor(folder).bridge.slice(-6), 16))?.base;
  const candidates = Array.from({ length: 500 }, (_, index) => join(parent, String(index)));
  const folders = candidates.filter((folder) => wish(folder) === wish(join(parent, "0"))).slice(0, 3);
  expect(folders).toHaveLength(3);
  await Promise.all(folders.map((folder) => mkdir(folder)));
  const networks: BridgeNetwork[] = [];
  onTestFinished(async () => {
    await Promise.all(networks.map((network) => network.close()));
    for (const folder of folders) await uninstallBridge(folder);
  });
  const open = (dataDir: string) =>
    BridgeNetwork.open({ dataDir, subnet: "auto", machines: [], controlPorts: [], blocked: [] });
  networks.push(...(await Promise.all(folders.map(open))));
  expect(new Set(networks.map(({ subnet }) => subnet)).size).toBe(folders.length);
});
