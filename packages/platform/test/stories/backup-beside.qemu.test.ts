/**
 * A machine answers and writes while its disks are copied, where the file system cannot clone them; the backup has them as of one moment,
 * as after a power cut. What ends the copy in the middle leaves the machine as it was.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import { expect, onTestFinished, test } from "vitest";
import { jsonCli } from "../../../cli/test/real-cli.ts";
import { diskOf, faultsOf, notebook } from "../helpers/notebook.ts";
import { ask, counterOf } from "../helpers/proxied.ts";
import { dataFolder } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place, Served } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const run = promisify(execFile);
/** What a copy takes long enough for: a guest is asked several times meanwhile. Bytes. */
const BULK_BYTES = 600 * 1024 ** 2;
const TIMEOUT = { timeout: 600_000 };
/** Only a fault reaches it. */
const PATIENT = { timeout: 60_000 };

/** Puts a large file onto a volume that nobody uses. */
async function fill(disk: string): Promise<void> {
  const file = join(await tempFolder("bulk"), "bulk");
  await writeFile(file, randomFillSync(Buffer.allocUnsafe(BULK_BYTES)));
  const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` };
  await run("debugfs", ["-w", "-R", `write ${file} bulk`, disk], { env });
}

/** How much of a file is there, in blocks. */
const blocksOf = (file: string) =>
  stat(file).then(
    ({ blocks }) => blocks,
    () => 0,
  );

test("a machine writes while its volume is copied, and the backup has a moment of it", TIMEOUT, async () => {
  const place = await Place.open();
  const copy = await dataFolder();
  onTestFinished(copy.dispose);
  const home = join(copy.path, "data");
  const cli = (...args: string[]) => jsonCli(place, args);
  const { client, app, dataDir } = place;
  try {
    const { id } = await place.machine(notebook());
    const [volumeId = ""] = await readdir(join(dataDir, "volumes"));
    await client.stopMachine(app, id);
    await place.reach(id, "stopped");
    await fill(diskOf(dataDir, volumeId));
    await place.start(id);
    const { nonce } = counterOf(await ask(place));

    const acknowledged: string[] = [];
    const failures: unknown[] = [];
    const staged = diskOf(join(dataDir, "tmp-backup"), volumeId);
    const over = new AbortController();
    let whileCopied = 0;
    const visiting = (async () => {
      for (let line = 1; !over.signal.aborted; line += 1) {
        const before = await blocksOf(staged);
        const answer = await ask(place, "/sure", { method: "POST", body: `line ${line}` }).catch((error) => error);
        if (answer.status !== 200) failures.push(answer);
        else acknowledged.push(`line ${line}`);
        if (before > 0 && (await blocksOf(staged)) > before) whileCopied += 1;
      }
    })();
    await expect.poll(() => acknowledged.length, PATIENT).toBeGreaterThan(5);
    const before = acknowledged.length;
    const file = join(await tempFolder("backup"), "backup.tar");
    expect(await cli("backup", "create", file)).toMatchObject({ machines: 1, without_memory: [] });
    over.abort();
    await visiting;
    expect(failures).toEqual([]);
    expect(whileCopied, "lines were flushed between two looks at a copy that grew").toBeGreaterThan(0);
    expect(counterOf(await ask(place)).nonce).toBe(nonce);
    // It can be suspended: nothing of the copy is left in its QEMU.
    await place.suspend(id);
    await place.start(id);
    expect(counterOf(await ask(place)).nonce).toBe(nonce);

    await place.served.stop();
    await cli("uninstall", "--keep-link");
    await cli("backup", "restore", file, "--data", home);
    const disk = diskOf(home, volumeId);
    // What is in its journal may be unfinished: the memory in the backup goes with this disk.
    expect((await faultsOf(disk)).filter((line) => !/journal|skipping/i.test(line))).toEqual([]);
    const restored = new Served(home);
    onTestFinished(() => restored.stop());
    await restored.start();
    const { text } = await ask({ proxyUrl: restored.proxyUrl, app }, "/notes");
    const lines = text.split("\n").filter((line) => line !== "");
    expect(lines.slice(0, before), "all that was flushed before").toEqual(acknowledged.slice(0, before));
    expect(lines, "a beginning of all that was written").toEqual(
      [...acknowledged, `line ${acknowledged.length + 1}`].slice(0, lines.length),
    );
    expect(lines.length, "not what was written while the disk was copied").toBeLessThan(acknowledged.length);
    expect(counterOf(await ask({ proxyUrl: restored.proxyUrl, app })).nonce).toBe(nonce);
    await restored.client.destroyApp(app, { force: true });
    await restored.stop();
  } finally {
    await uninstallBridge(home);
    await place.served.start();
    expect(await place.close()).toEqual(NOTHING_LEFT);
  }
});

test(
  "a platform that is killed in the middle of a copy finds a machine that runs, sleeps and is backed up",
  TIMEOUT,
  async () => {
    const place = await Place.open();
    const { client, app, dataDir } = place;
    let dead = false;
    try {
      const { id } = await place.machine(notebook());
      const [volumeId = ""] = await readdir(join(dataDir, "volumes"));
      await client.stopMachine(app, id);
      await place.reach(id, "stopped");
      await fill(diskOf(dataDir, volumeId));
      await place.start(id);
      const { nonce } = counterOf(await ask(place));
      const write = async (line: string) =>
        expect((await ask(place, "/sure", { method: "POST", body: line })).status).toBe(200);
      await write("before");
      const processes = (await place.processes()).map(({ pid }) => pid);
      const backup = jsonCli(place, ["backup", "create", join(await tempFolder("cut"), "backup.tar")]).catch(
        () => "cut",
      );
      await expect.poll(() => blocksOf(diskOf(join(dataDir, "tmp-backup"), volumeId)), PATIENT).toBeGreaterThan(0);
      dead = true;
      await place.served.kill();
      await backup;
      await place.served.start();
      dead = false;
      await write("after");
      expect(counterOf(await ask(place)).nonce).toBe(nonce);
      expect((await place.processes()).map(({ pid }) => pid)).toEqual(processes);
      const whole = join(await tempFolder("whole"), "backup.tar");
      expect(await jsonCli(place, ["backup", "create", whole])).toMatchObject({ machines: 1, without_memory: [] });
      await place.suspend(id);
      await place.start(id);
      const { text } = await ask(place, "/notes");
      expect(text.split("\n")).toEqual(expect.arrayContaining(["before", "after"]));
      expect(counterOf(await ask(place)).nonce).toBe(nonce);
      expect((await stat(whole)).size).toBeGreaterThan(BULK_BYTES);
    } finally {
      if (dead) await place.served.start();
      expect(await place.close()).toEqual(NOTHING_LEFT);
    }
  },
);
