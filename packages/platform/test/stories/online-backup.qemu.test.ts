/**
 * A backup of a platform that serves, restored in another directory: what slept sleeps, what ran runs on.
 *
 * @module-tag again
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import { expect, onTestFinished, test } from "vitest";
import { jsonCli } from "../../../cli/test/real-cli.ts";
import { notebook } from "../helpers/notebook.ts";
import { ask, counterOf, wakeOf } from "../helpers/proxied.ts";
import { dataFolder } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place, Served } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

test("a backup under load loses no request, and its machines continue where they were", async () => {
  const original = await Place.open();
  const copy = await dataFolder();
  onTestFinished(copy.dispose);
  const home = join(copy.path, "data");
  const cli = (...args: string[]) => jsonCli(original, args);
  try {
    const busy = await original.machine(notebook());
    await original.client.createApp("quiet");
    const { config } = busy;
    const asleep = await original.client.createMachine("quiet", {
      config: { image: config.image, services: [{ internal_port: 8080 }] },
    });
    const wait = (state: "running" | "suspended") =>
      original.client.waitForMachine("quiet", asleep.id, { state: [state], timeout: 120 });
    await wait("running");
    const count = async (proxyUrl: string, app: string) => {
      const answer = await ask({ proxyUrl, app });
      return { wake: wakeOf(answer).kind, ...counterOf(answer) };
    };
    const slept = await count(original.proxyUrl, "quiet");
    await original.client.suspendMachine("quiet", asleep.id);
    await wait("suspended");

    // Someone writes all the time, and everything that is acknowledged counts.
    const acknowledged: string[] = [];
    const failures: unknown[] = [];
    const over = new AbortController();
    const visiting = (async () => {
      for (let line = 1; !over.signal.aborted; line += 1) {
        const answer = await ask(original, "/sure", { method: "POST", body: `line ${line}` }).catch((error) => error);
        if (answer.status === 200) acknowledged.push(`line ${line}`);
        else failures.push(answer);
      }
    })();
    await expect.poll(() => acknowledged.length).toBeGreaterThan(5);
    const ran = await count(original.proxyUrl, original.app);
    const before = [...acknowledged];
    const processes = (await original.processes()).map(({ pid }) => pid);

    const file = join(await tempFolder("backup"), "backup.tar");
    const made = await cli("backup", "create", file);
    const during = acknowledged.length - before.length;
    over.abort();
    await visiting;
    expect(failures).toEqual([]);
    expect(made).toMatchObject({ file, machines: 2, without_memory: [] });
    expect(during, "it was written while the backup was made").toBeGreaterThan(0);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(
      (await original.processes()).map(({ pid }) => pid),
      "the same guest runs on",
    ).toEqual(processes);
    expect(await readdir(original.dataDir), "no debris").not.toContain("tmp-backup");
    expect((await count(original.proxyUrl, original.app)).nonce).toBe(ran.nonce);
    expect(await cli("backup", "verify", file)).toMatchObject({ bytes: made.bytes });

    // The original is gone from the host, as docs/operate.md asks.
    await original.served.stop();
    await cli("uninstall", "--keep-link");
    await cli("backup", "restore", file, "--data", home);
    const restored = new Served(home);
    onTestFinished(() => restored.stop());
    await restored.start();
    expect((await restored.client.getMachine("quiet", asleep.id)).state).toBe("suspended");
    expect(await count(restored.proxyUrl, "quiet")).toMatchObject({
      wake: "resume",
      nonce: slept.nonce,
      count: slept.count + 1,
    });
    const resumed = await count(restored.proxyUrl, original.app);
    expect(resumed.nonce, "the running machine's memory was in the backup").toBe(ran.nonce);
    // A backup has no holes to spare; a guest that writes into them must find room even on a full disk.
    for (const id of await readdir(join(home, "machines"))) {
      const memory = await stat(join(home, "machines", id, "memory"));
      expect(memory.blocks * 512).toBeGreaterThanOrEqual(memory.size);
    }
    const { text } = await ask({ proxyUrl: restored.proxyUrl, app: original.app }, "/notes");
    expect(text.split("\n")).toEqual(expect.arrayContaining(before));
    for (const app of ["quiet", original.app]) await restored.client.destroyApp(app, { force: true });
    await restored.stop();
  } finally {
    await uninstallBridge(home);
    await original.served.start();
    await original.client.destroyApp("quiet", { force: true }).catch(() => {});
    expect(await original.close()).toEqual(NOTHING_LEFT);
  }
});
