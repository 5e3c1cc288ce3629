/**
 * Backups of real machines at a target: the second sends little, and the target alone gives the platform back, in which a
 * machine wakes where it slept.
 *
 * @module-tag again
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import { expect, onTestFinished, test } from "vitest";
import { findTool } from "../../../../scripts/lib/test-tools.mjs";
import { jsonCli } from "../../../cli/test/real-cli.ts";
import { notebook } from "../helpers/notebook.ts";
import { ask, counterOf, wakeOf } from "../helpers/proxied.ts";
import { dataFolder } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place, Served } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const VARIABLES = { HIBERNAUT_RESTIC: findTool("restic") };

/** restic derives a key for each piece, on purpose slowly, next to emulated guests. */
const TIMEOUT = { timeout: 600_000 };

test("a target gives a lost platform back, with what was written and the memory of who slept", TIMEOUT, async () => {
  const original = await Place.open(VARIABLES);
  const copy = await dataFolder();
  onTestFinished(copy.dispose);
  const [home, elsewhere] = [join(copy.path, "data"), await tempFolder("target")];
  const [repository, keyFile] = [join(elsewhere, "repository"), join(elsewhere, "key.txt")];
  const cli = (...args: string[]) => jsonCli(original, args, VARIABLES);
  try {
    const { id } = await original.machine(notebook());
    const write = async (line: string) =>
      expect((await ask(original, "/sure", { method: "POST", body: line })).status).toBe(200);
    await write("first line");
    const slept = counterOf(await ask(original));
    await original.suspend(id);

    const { key } = await cli("backup", "targets", "add", "usb", repository);
    await writeFile(keyFile, key, { mode: 0o600 });
    const { last: first } = await cli("backup", "run");
    expect(first).toMatchObject({ state: "complete" });
    const { last: second } = await cli("backup", "run");
    expect(second).toMatchObject({ state: "complete" });
    expect(second.added, "what did not change is not stored again").toBeLessThan(first.added / 20);
    expect(await cli("backup", "list")).toMatchObject([{ machines: 1, apps: [original.app] }, { state: "complete" }]);

    // Once more while it runs: the third has what was written since, and the running machine's memory.
    await write("second line");
    const ran = counterOf(await ask(original));
    expect(ran.nonce).toBe(slept.nonce);
    expect((await cli("backup", "run")).last).toMatchObject({ state: "complete" });

    // The original is gone from the host, as docs/operate.md asks.
    await original.served.stop();
    await cli("uninstall", "--keep-link");
    await cli("backup", "restore", repository, "--key-file", keyFile, "--data", home);
    const restored = new Served(home, VARIABLES);
    onTestFinished(() => restored.stop());
    await restored.start();
    const answer = await ask({ proxyUrl: restored.proxyUrl, app: original.app });
    expect(counterOf(answer), "its memory was in the backup").toMatchObject({ nonce: slept.nonce });
    expect(wakeOf(answer).kind).not.toBe("cold");
    const { text } = await ask({ proxyUrl: restored.proxyUrl, app: original.app }, "/notes");
    expect(text.split("\n")).toEqual(expect.arrayContaining(["first line", "second line"]));
    expect(await restored.client.listBackupTargets(), "it is backed up from now on, too").toMatchObject([
      { name: "usb", last: { state: "complete" } },
    ]);
    await restored.client.destroyApp(original.app, { force: true });
    await restored.stop();
  } finally {
    await uninstallBridge(home);
    await original.served.start();
    expect(await original.close()).toEqual(NOTHING_LEFT);
  }
});
