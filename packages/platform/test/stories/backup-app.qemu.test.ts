/**
 * One app out of a backup, on real machines: a drill tries it where nobody sees it, a copy runs next to it, and one takes its
 * place. Each has the memory and the volume of the moment of the backup.
 *
 * @module-tag again
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import { findTool } from "../../../../scripts/lib/test-tools.mjs";
import { jsonCli } from "../../../cli/test/real-cli.ts";
import { notebook } from "../helpers/notebook.ts";
import { ask, counterOf, wakeOf } from "../helpers/proxied.ts";
import { Place } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const VARIABLES = { HIBERNAUT_RESTIC: findTool("restic"), HIBERNAUT_NETWORK: "bridge" };
const place = Place.forTests(VARIABLES);

/** restic derives a key for each piece, on purpose slowly, next to emulated guests. */
const TIMEOUT = { timeout: 600_000 };

test(
  "an app comes back from a backup next to itself and in its own place, and a drill leaves nothing",
  TIMEOUT,
  async () => {
    const cli = (...args: string[]) => jsonCli(place, args, VARIABLES);
    const linesOf = async (app: string) => (await ask({ proxyUrl: place.proxyUrl, app }, "/notes")).text.split("\n");
    const write = async (line: string) =>
      expect((await ask(place, "/sure", { method: "POST", body: line })).status).toBe(200);
    const counts = [{ name: "notes", command: ["/app", "--count", "/data/notes"], minimum: 1 }];
    const { id } = await place.machine({ ...notebook(), backup: { counts } });
    await write("before the backup");
    const then = counterOf(await ask(place));
    await place.suspend(id);
    await cli("backup", "targets", "add", "usb", join(await tempFolder("target"), "repository"));
    expect(await cli("backup", "run")).toMatchObject({ last: { state: "complete" } });
    await write("after the backup");

    const drill = await cli("backup", "drill", "--app", place.app);
    expect(drill).toMatchObject({ error: null, machines: [{ from: id, health: "healthy", start: "resume" }] });
    expect(drill.counts).toMatchObject([{ name: "notes", value: 1, before: null }]);
    expect((await place.served.client.listApps()).map(({ name }) => name)).toEqual([place.app]);

    const copy = await cli("backup", "restore", "--app", place.app, "--as", "copy");
    expect(copy).toMatchObject({ as: "copy", machines: [{ from: id, without_memory: null }], replaced: [] });
    const answer = await ask({ proxyUrl: place.proxyUrl, app: "copy" });
    expect(wakeOf(answer).kind).toBe("resume");
    expect(counterOf(answer)).toMatchObject({ nonce: then.nonce, count: then.count + 1 });
    expect(await linesOf("copy")).not.toContain("after the backup");
    expect(await linesOf(place.app)).toContain("after the backup");

    const back = await cli("backup", "restore", "--app", place.app, "--in-place", "--yes");
    expect(back).toMatchObject({ as: place.app, replaced: [id] });
    expect(await linesOf(place.app)).toContain("before the backup");
    expect(await linesOf(place.app)).not.toContain("after the backup");
    // What it had until then is one command away.
    await cli("machine", "cordon", back.machines[0].id, "--app", place.app);
    await cli("machine", "uncordon", id, "--app", place.app);
    expect(await linesOf(place.app)).toContain("after the backup");
    await place.served.client.destroyApp("copy", { force: true });
  },
);
