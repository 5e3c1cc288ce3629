import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { mountsOf } from "@hibernaut/lib/mounts";
import { lockDataDir } from "@hibernaut/store/lock";
import { openStore } from "@hibernaut/store/open";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { BridgeNetwork } from "../../network/src/bridge/index.ts";
import { openNetwork } from "../../network/src/open.ts";
import { describeData, uninstall } from "../src/uninstall.ts";
import { networkOf } from "./helpers/served.ts";
import { tempFolder } from "./helpers/temp.ts";

const run = promisify(execFile);

/** A data directory as a platform leaves it, as far as it matters here. */
async function dataFolder(): Promise<string> {
  const folder = await tempFolder("uninstall");
  await mkdir(join(folder, "run"));
  await writeFile(join(folder, "hibernaut.db"), "");
  return folder;
}

const bridge = (dataDir: string) => ({ dataDir, subnet: "auto", machines: [], controlPorts: [], blocked: [] });

describe("uninstall", () => {
  test("keeps the data unless it is told to delete it", async () => {
    const dataDir = await dataFolder();
    expect(await uninstall({ dataDir, data: false })).toEqual({ guests: 0, data: false, stays: null });
    expect(existsSync(join(dataDir, "hibernaut.db"))).toBe(true);
    expect(await uninstall({ dataDir, data: true })).toEqual({ guests: 0, data: true, stays: null });
    expect(existsSync(dataDir)).toBe(false);
    expect(await uninstall({ dataDir, data: true }), "once more").toEqual({ guests: 0, data: false, stays: null });
  });

  test("describes beforehand what will be deleted", async () => {
    const dataDir = await dataFolder();
    const empty = "0 apps, 0 machines, 0 volumes with 0 snapshots, 0 secrets, all images";
    expect(await describeData(dataDir)).toBe(`${dataDir} will be deleted for good, with ${empty}.`);
    const store = openStore(join(dataDir, "hibernaut.db"));
    for (const name of ["blog", "shop"]) store.apps.insert({ name, createdAt: new Date(0).toISOString() });
    const sealed = { ciphertext: Buffer.alloc(20), nonce: Buffer.alloc(12), digest: "0" };
    store.secrets.set([{ app: "shop", name: "KEY", ...sealed, updatedAt: new Date(0).toISOString() }]);
    store.close();
    expect(await describeData(dataDir)).toContain("with 2 apps (blog, shop), 0 machines,");
    expect(await describeData(dataDir)).toContain("1 secret,");
    expect(await describeData(join(dataDir, "none"))).toBeUndefined();
    await writeFile(join(dataDir, "hibernaut.db"), "no database".repeat(100));
    expect(await describeData(dataDir)).toMatch(/with everything in it; the database cannot be read \(/);
  });

  test("does not delete a directory that is not a platform's", async () => {
    const dataDir = await tempFolder("uninstall");
    await writeFile(join(dataDir, "thesis.txt"), "");
    await expect(uninstall({ dataDir, data: true })).rejects.toMatchObject({ code: "failed_precondition" });
    await expect(describeData(dataDir)).rejects.toMatchObject({ code: "failed_precondition" });
    expect(await readdir(dataDir)).toEqual(["thesis.txt"]);
  });

  describe.runIf(process.getuid?.() === 0)("of a directory with a mount point", () => {
    /** Mounts a small disk there for the rest of the test. */
    async function mounted(path: string): Promise<void> {
      await mkdir(path, { recursive: true });
      await run("mount", ["-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", path]);
      onTestFinished(async () => void (await run("umount", [path])));
    }

    test("empties the directory and leaves the mount point, and can be repeated", async () => {
      const dataDir = join(await tempFolder("uninstall"), "my data");
      await mounted(dataDir);
      await mkdir(join(dataDir, "lost+found"));
      await mkdir(join(dataDir, "machines/1"), { recursive: true });
      await writeFile(join(dataDir, "hibernaut.db"), "");
      const stays = "it is a mount point";
      expect(await describeData(dataDir)).toMatch(
        /^Everything in .*my data will be deleted for good, .* The empty directory stays, because it is a mount point\.$/,
      );
      expect(await uninstall({ dataDir, data: true })).toEqual({ guests: 0, data: true, stays });
      expect(await readdir(dataDir)).toEqual(["lost+found"]);
      expect(await describeData(dataDir), "once more").toBeUndefined();
      expect(await uninstall({ dataDir, data: true }), "once more").toEqual({ guests: 0, data: false, stays: null });
    });

    test("is refused before anything is ended if something is mounted within it", async () => {
      const dataDir = await dataFolder();
      await mounted(join(dataDir, "volumes"));
      const ended = vi.spyOn(process, "kill");
      onTestFinished(() => ended.mockRestore());
      await expect(uninstall({ dataDir, data: true })).rejects.toMatchObject({
        code: "failed_precondition",
        message: expect.stringContaining(`umount ${join(dataDir, "volumes")}`),
      });
      expect(ended).not.toHaveBeenCalled();
      expect(existsSync(join(dataDir, "hibernaut.db"))).toBe(true);
    });
  });

  test("does nothing while a platform is running", async () => {
    const dataDir = await dataFolder();
    const lock = lockDataDir(dataDir);
    onTestFinished(() => lock.release());
    await expect(uninstall({ dataDir, data: true })).rejects.toMatchObject({ code: "failed_precondition" });
    expect(existsSync(join(dataDir, "hibernaut.db"))).toBe(true);
  });

  test.skipIf(process.getuid?.() !== 0)("removes the bridge", async () => {
    const dataDir = await dataFolder();
    const network = await BridgeNetwork.open(bridge(dataDir));
    onTestFinished(async () => void (await uninstall({ dataDir, data: false })));
    await network.attach({ id: "00000000000001", app: "shop", address: network.allocate(new Set()) });
    await network.close();
    expect(await networkOf(dataDir)).toHaveLength(6);
    await uninstall({ dataDir, data: false });
    expect(await networkOf(dataDir)).toEqual([]);
  });
});

test("mount points are the directory itself, and those below it", () => {
  const info = [
    "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw",
    String.raw`41 22 8:17 / /srv/my\040data rw - ext4 /dev/sdb1 rw`,
    String.raw`42 41 0:40 / /srv/my\040data/run rw - tmpfs tmpfs rw`,
    "43 22 0:41 / /srv/database rw - tmpfs tmpfs rw",
    "",
  ].join("\n");
  expect(mountsOf("/srv/my data", info)).toEqual({ itself: true, below: ["/srv/my data/run"] });
  expect(mountsOf("/srv/data", info)).toEqual({ itself: false, below: [] });
});

test("the configured network is what the host can have with `auto`, with the reason, and an error with `bridge`", async () => {
  const options = { ...bridge(await tempFolder()), dropSnapshots: false };
  const getuid = vi.spyOn(process, "getuid").mockReturnValue(1000);
  onTestFinished(() => getuid.mockRestore());
  const opened = await openNetwork("auto", options);
  expect(opened).toMatchObject({ network: { mode: "user" }, reason: expect.stringContaining("runs as root") });
  expect(opened.gateway).toBeUndefined();
  await expect(openNetwork("bridge", options)).rejects.toMatchObject({ code: "failed_precondition" });
  expect((await openNetwork("user", options)).reason).toContain("HIBERNAUT_NETWORK");
});
