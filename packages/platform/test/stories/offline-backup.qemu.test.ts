/**
 * A backup made and restored without the platform, as operate.md says: on the same host, with a sleeping machine.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import { expect, onTestFinished, test } from "vitest";
import { runCli } from "../../../cli/test/real-cli.ts";
import { ask, counterOf, wakeOf } from "../helpers/proxied.ts";
import { dataFolder } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place, Served } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;

test.skipIf(!isRoot)("a machine that slept when the backup was made wakes in the restored one", async () => {
  // Without the prepared images: tar takes a file that another test links to for one that changes.
  const original = await Place.open({ HIBERNAUT_NETWORK: "bridge" }, await dataFolder());
  const copy = await dataFolder();
  onTestFinished(copy.dispose);
  try {
    const { id } = await original.machine();
    const counted = async (proxyUrl: string) => {
      const answer = await ask({ proxyUrl, app: original.app });
      return { wake: wakeOf(answer).kind, ...counterOf(answer) };
    };
    const before = await counted(original.proxyUrl);
    await original.suspend(id);
    await original.served.stop();

    const backup = join(await tempFolder("backup"), "backup.tar");
    await run("tar", ["-C", original.dataDir, "-cSf", backup, "."]);
    await mkdir(copy.path, { recursive: true });
    await run("tar", ["-C", copy.path, "-xSf", backup]);
    const restored = new Served(copy.path, { HIBERNAUT_NETWORK: "bridge" });
    onTestFinished(() => restored.stop());
    await expect(restored.start(), "the original's network is still there").rejects.toThrow(
      `HIBERNAUT_DATA_DIR=${original.dataDir} hibernaut uninstall`,
    );
    expect(await runCli(original, ["uninstall", "--keep-link"])).toMatchObject({ code: 0 });

    await restored.start();
    const after = await counted(restored.proxyUrl);
    expect(after).toMatchObject({ wake: "resume", nonce: before.nonce, count: before.count + 1 });
    await restored.client.destroyApp(original.app, { force: true });
    await restored.stop();
  } finally {
    // The stopped copy has the subnet now.
    await uninstallBridge(copy.path);
    await original.served.start();
    expect(await original.close()).toEqual(NOTHING_LEFT);
  }
});
