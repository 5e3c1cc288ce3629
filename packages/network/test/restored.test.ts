/** The network of a backup that is restored on the host of its original, with real bridges and the real `uninstall`. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { networkOf } from "../../platform/test/helpers/served.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { addressesOf } from "../src/bridge/commands.ts";
import { BridgeNetwork } from "../src/bridge/index.ts";
import { namesFor, tapName } from "../src/bridge/names.ts";
import { uninstallBridge } from "../src/bridge/remove.ts";
import type { KnownMachine } from "../src/contract.ts";
import { openNetwork } from "../src/open.ts";

const CLI = join(import.meta.dirname, "../../cli/bin/hibernaut.js");
const isRoot = process.getuid?.() === 0;
/** As in linux/if_tun.h: makes an open /dev/net/tun the far side of a tap. */
const OPEN_TAP = String.raw`
  open(my $tap, "+<", "/dev/net/tun") or die $!;
  ioctl($tap, 0x400454ca, pack("a16 s x22", $ARGV[0], 0x1002)) or die $!;
  $| = 1; print "open\n"; sleep;`;

/** A data directory whose network is removed at the end of the test. */
async function dataFolder(): Promise<string> {
  const folder = await tempFolder("restored");
  await writeFile(join(folder, "hibernaut.db"), "");
  onTestFinished(() => uninstallBridge(folder));
  return folder;
}

const options = (dataDir: string, machines: KnownMachine[] = []) => ({
  dataDir,
  subnet: "auto",
  machines,
  controlPorts: [],
  blocked: [],
  dropSnapshots: false,
});

/** A platform that was stopped with one sleeping machine, and a copy of its data directory elsewhere. */
async function stoppedAndCopied() {
  const [original, copy] = [await dataFolder(), await dataFolder()];
  const network = await BridgeNetwork.open(options(original));
  const machine = { id: "00000000000001", app: "shop", address: network.allocate(new Set()) };
  await network.attach(machine);
  await network.close();
  await copyFile(join(original, "network.json"), join(copy, "network.json"));
  return { original, copy, subnet: network.subnet, sleeping: { ...machine, memory: "asleep" as const } };
}

async function openOn(
  dataDir: string,
  machines: KnownMachine[],
  more: { dropSnapshots?: boolean; subnet?: string } = {},
) {
  const opened = await openNetwork("bridge", { ...options(dataDir, machines), ...more });
  onTestFinished(() => opened.close());
  return opened;
}

/** Why the network is not opened. */
const refusalOn = (dataDir: string, machines: KnownMachine[]): Promise<string> =>
  openOn(dataDir, machines).then(
    () => "opened",
    (error: Error) => error.message,
  );

test.skipIf(!isRoot)(
  "next to a stopped original, the start is refused with what would be lost, and its advice keeps it",
  async () => {
    const { original, copy, subnet, sleeping } = await stoppedAndCopied();
    const { bridge } = namesFor(original);
    const refusal = await refusalOn(copy, [sleeping]);
    expect(refusal).toMatch(
      `1 sleeping machine belongs to ${subnet}, but the bridge ${bridge} of the platform on ${original} has that subnet: ${sleeping.id}. It would lose its memory (network_changed). To keep it, make sure that nobody needs that platform, as when this directory is a copy of it, then run \`HIBERNAUT_DATA_DIR=${original} hibernaut uninstall --keep-link\` (it keeps that directory, and ends machines that are still running there), and start the platform again. To give it up instead: \`HIBERNAUT_NETWORK_SUBNET=`,
    );
    expect(await networkOf(original), "the original may be started again").toHaveLength(6);
    expect(await networkOf(copy), "nothing was changed").toEqual([]);
    expect(await refusalOn(copy, [sleeping]), "not once only").toBe(refusal);

    const [, folder = ""] = /`HIBERNAUT_DATA_DIR=(\S+) hibernaut uninstall --keep-link`/.exec(refusal) ?? [];
    const env = { ...process.env, HIBERNAUT_DATA_DIR: folder };
    await promisify(execFile)(process.execPath, [CLI, "uninstall", "--keep-link"], { env });
    const kept = await openOn(copy, [sleeping]);
    expect(kept.network.owns(sleeping.address)).toBe(true);
    expect(await addressesOf(namesFor(copy).bridge)).toEqual([`${kept.gateway}/22`]);
  },
);

test.skipIf(!isRoot)("the command that gives the memory up works as it is printed", async () => {
  const { copy, sleeping } = await stoppedAndCopied();
  const [, free = ""] =
    /`HIBERNAUT_NETWORK_SUBNET=(\S+) hibernaut serve --drop-snapshots`/.exec(await refusalOn(copy, [sleeping])) ?? [];
  const opened = await openOn(copy, [sleeping], { subnet: free, dropSnapshots: true });
  expect(opened.network.owns(sleeping.address)).toBe(false);
});

test.skipIf(!isRoot)(
  "machines without memory keep their addresses as well, unless a setting says otherwise",
  async () => {
    const { copy, sleeping } = await stoppedAndCopied();
    const stopped = { id: sleeping.id, app: sleeping.app, address: sleeping.address };
    const refusal = await refusalOn(copy, [stopped]);
    expect(refusal).toMatch(
      /^1 machine belongs to .* To keep their addresses, make sure that nobody needs that platform/,
    );
    const [, free = ""] = /`HIBERNAUT_NETWORK_SUBNET=(\S+) hibernaut serve`/.exec(refusal) ?? [];
    expect((await openOn(copy, [stopped], { subnet: free })).network.owns(stopped.address)).toBe(false);
  },
);

test.skipIf(!isRoot)(
  "whose original was deleted: has its subnet at once, and the bridge left over is gone",
  async () => {
    const { original, copy, sleeping } = await stoppedAndCopied();
    await rm(original, { recursive: true });
    const opened = await openOn(copy, [sleeping]);
    expect(opened.network.owns(sleeping.address)).toBe(true);
    expect(await networkOf(original)).toEqual([]);
  },
);

test.skipIf(!isRoot)("whose original was deleted under a guest that runs: leaves that guest its network", async () => {
  const { original, copy, sleeping } = await stoppedAndCopied();
  const host = Number(sleeping.address.split(".")[3]) + 256 * (Number(sleeping.address.split(".")[2]) % 4);
  const guest = spawn("perl", ["-e", OPEN_TAP, tapName(namesFor(original), host)]);
  onTestFinished(async () => {
    guest.kill();
    if (guest.exitCode === null && guest.signalCode === null) await once(guest, "exit");
  });
  await once(guest.stdout, "data");
  await rm(original, { recursive: true });
  expect(await refusalOn(copy, [sleeping])).toContain(`of the platform on ${original} has that subnet`);
  expect(await networkOf(original)).toHaveLength(6);
});

test.skipIf(!isRoot)(
  "a guest that was started in a subnet in between stays in it, and the sleeping ones can come back",
  async () => {
    const { original, copy, sleeping } = await stoppedAndCopied();
    const [, free = ""] = /HIBERNAUT_NETWORK_SUBNET=(\S+)/.exec(await refusalOn(copy, [sleeping])) ?? [];
    const between = await openOn(copy, [sleeping], { subnet: free, dropSnapshots: true });
    const address = between.network.allocate(new Set());
    const running = { id: "00000000000002", app: "shop", memory: "awake" as const, address };
    await between.close();
    await uninstallBridge(original);
    expect(await refusalOn(copy, [sleeping, running])).toContain(
      "To keep it, end the running machines with `hibernaut uninstall --keep-link`, and start the platform again.",
    );
    expect((await openOn(copy, [sleeping])).network.owns(sleeping.address)).toBe(true);
  },
);
