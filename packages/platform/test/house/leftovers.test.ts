/** Two runs of the tests on one host: each finds what it left, and nothing that the other did. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import { expect, onTestFinished, test } from "vitest";
import { closeRun, findLeftovers, openRun } from "../../../../scripts/leftovers.mjs";
import { fitsInMemory, ROOM_BYTES } from "../../../../scripts/lib/test-place.mjs";
import { BridgeNetwork } from "../../../network/src/bridge/index.ts";
import { namesFor } from "../../../network/src/bridge/names.ts";

const isRoot = process.getuid?.() === 0;
/** Two runs, closed after all else that the test has made is gone. */
function twoRuns() {
  const runs = { a: openRun(), b: openRun() };
  onTestFinished(() => {
    for (const run of Object.values(runs)) {
      closeRun(run);
      expect(existsSync(run.directory)).toBe(false);
    }
  });
  return runs;
}

/** A process that lives as long as its input, and so no longer than the test. */
async function start(args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(process.execPath, ["-e", "process.stdin.resume(); console.log()", ...args], { env });
  onTestFinished(async () => {
    child.stdin.end();
    await once(child, "close");
  });
  await once(child.stdout, "data");
  return child.pid ?? 0;
}

test("a run that left nothing finds nothing", () => {
  const { a } = twoRuns();
  expect(findLeftovers(a)).toEqual([]);
});

test("processes are told apart by the run's variable, and QEMU by its data directory", async () => {
  const { a, b } = twoRuns();
  const child = await start([], a.environment);
  const guest = await start([`path=${a.directory}/data/run/00000000000001/qmp.sock`], {});
  expect(findLeftovers(a)).toEqual([
    expect.stringMatching(`^process ${child}: `),
    expect.stringMatching(`^process ${guest}: `),
  ]);
  expect(findLeftovers(b)).toEqual([]);
});

test("a run has its files in memory only where programs may start there, with room, and no place was chosen", () => {
  const host = {
    chosen: undefined,
    mounts: "shm /dev/shm tmpfs rw,nosuid 0 0\n",
    roomBytes: ROOM_BYTES,
    freeBytes: ROOM_BYTES,
  };
  expect(fitsInMemory(host)).toBe(true);
  for (const other of [
    { chosen: "/srv" },
    { mounts: "shm /dev/shm tmpfs rw,nosuid,noexec 0 0\n" },
    { mounts: "/dev/vda / ext4 rw 0 0\n" },
    { roomBytes: ROOM_BYTES - 1 },
    { freeBytes: ROOM_BYTES - 1 },
  ])
    expect(fitsInMemory({ ...host, ...other }), JSON.stringify(other)).toBe(false);
});

test("a run with files in memory has a directory on a disk, too, and looks at both", () => {
  const run = { ...openRun(), disk: mkdtempSync(join(tmpdir(), "hib-disk-")) };
  mkdirSync(join(run.disk, "hibernaut-test-2"));
  expect(findLeftovers(run)).toEqual([`file ${run.disk}/hibernaut-test-2`]);
  closeRun(run);
  expect([run.directory, run.disk].filter((path) => existsSync(path))).toEqual([]);
});

test("temporary files, also those in memory", () => {
  const { a, b } = twoRuns();
  mkdirSync(join(a.directory, "hibernaut-test-1"));
  const memory = mkdtempSync(`/dev/shm/hibernaut-${a.id}-`);
  onTestFinished(() => rmSync(memory, { recursive: true }));
  expect(findLeftovers(a)).toEqual([`file ${a.directory}/hibernaut-test-1`, `file ${memory}`]);
  expect(findLeftovers(b)).toEqual([]);
});

test.skipIf(!isRoot)("the network of a platform whose data directory is gone", async () => {
  const { a, b } = twoRuns();
  const dataDir = join(a.directory, "data");
  mkdirSync(dataDir);
  onTestFinished(() => uninstallBridge(dataDir));
  const network = await BridgeNetwork.open({ dataDir, subnet: "auto", machines: [], controlPorts: [], blocked: [] });
  await network.attach({ id: "00000000000001", app: "shop", address: network.allocate(new Set()) });
  await network.close();
  rmSync(dataDir, { recursive: true });
  const { bridge, tapPrefix, table, flowTable, clientTable } = namesFor(dataDir);
  expect(findLeftovers(a).sort()).toEqual([
    expect.stringMatching(`^network interface ${bridge}$`),
    expect.stringMatching(`^network interface ${tapPrefix}\\d+$`),
    `nftables table bridge ${table}`,
    `nftables table inet ${table}`,
    `nftables table inet ${clientTable}`,
    `nftables table inet ${flowTable}`,
  ]);
  expect(findLeftovers(b)).toEqual([]);
});

test.skipIf(!isRoot)("mounts and namespaces", () => {
  const { a, b } = twoRuns();
  const mount = join(a.directory, "mount");
  mkdirSync(mount);
  execFileSync("mount", ["-t", "tmpfs", "tmpfs", mount]);
  onTestFinished(() => void execFileSync("umount", [mount]));
  execFileSync("ip", ["netns", "add", `hib-${a.id}-1`]);
  onTestFinished(() => void execFileSync("ip", ["netns", "delete", `hib-${a.id}-1`]));
  expect(findLeftovers(a)).toEqual([`file ${mount}`, `mount ${mount}`, `network namespace hib-${a.id}-1`]);
  expect(findLeftovers(b)).toEqual([]);
});
