/** A backup made and restored without the platform, as operate.md says: on the same host, with a sleeping machine. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import { expect, onTestFinished, test } from "vitest";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { dataFolder } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place, Served } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const run = promisify(execFile);
const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");
const isRoot = process.getuid?.() === 0;

/** Starts a platform on the directory, which is refused. Returns why. */
async function refusal(dataDir: string): Promise<string> {
  const env = {
    ...process.env,
    HIBERNAUT_DATA_DIR: dataDir,
    XDG_CONFIG_HOME: join(dataDir, "cfg"),
    HIBERNAUT_API_LISTEN: "127.0.0.1:0",
    HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
    HIBERNAUT_ACCELERATOR: "tcg",
    HIBERNAUT_NETWORK: "bridge",
    HIBERNAUT_LOG_LEVEL: "warn",
  };
  const child = spawn(process.execPath, [CLI, "serve", "--json"], { env });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stdout.once("data", () => child.kill());
  await once(child, "close");
  return said;
}

test.skipIf(!isRoot)("a machine that slept when the backup was made wakes in the restored one", async () => {
  // Without the prepared images: tar takes a file that another test links to for one that changes.
  const original = await Place.open({ HIBERNAUT_NETWORK: "bridge" }, await dataFolder());
  const copy = await dataFolder();
  onTestFinished(copy.dispose);
  try {
    const { id } = await original.machine();
    const counted = async (proxyUrl: string) => {
      const answer = await ask({ proxyUrl, app: original.app });
      return { wake: wakeOf(answer).kind, ...(JSON.parse(answer.text) as { nonce: string; count: number }) };
    };
    const before = await counted(original.proxyUrl);
    await original.suspend(id);
    await original.served.stop();

    const backup = join(await tempFolder("backup"), "backup.tar");
    await run("tar", ["-C", original.dataDir, "-cSf", backup, "."]);
    await mkdir(copy.path, { recursive: true });
    await run("tar", ["-C", copy.path, "-xSf", backup]);
    expect(await refusal(copy.path), "the original's network is still there").toContain(
      `HIBERNAUT_DATA_DIR=${original.dataDir} hibernaut uninstall`,
    );
    await run(process.execPath, [CLI, "uninstall", "--keep-link"], {
      env: { ...process.env, HIBERNAUT_DATA_DIR: original.dataDir },
    });

    const restored = new Served(copy.path, { HIBERNAUT_NETWORK: "bridge" });
    onTestFinished(() => restored.stop());
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
