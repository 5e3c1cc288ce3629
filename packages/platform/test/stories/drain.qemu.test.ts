/** A host is drained and goes down, as the systemd units of operate.md do it, and comes back. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { ask } from "../helpers/proxied.ts";
import { askUntilAnswered } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");

test("what ran before a reboot runs afterwards, with its memory, before anyone asks for it", async () => {
  const place = await Place.open();
  try {
    const { id, private_address: address } = await place.machine();
    const before = await askUntilAnswered(address);
    const env = { ...process.env, HIBERNAUT_API_URL: place.served.apiUrl, HIBERNAUT_API_TOKEN: await place.token() };
    const { stdout } = await promisify(execFile)(process.execPath, [CLI, "drain", "--suspend"], { env });
    expect(stdout).toBe("Drained: 1 machine suspended.\n");
    expect(await place.processes(), "nothing is left for the host to kill").toEqual([]);
    const refused = await ask({ proxyUrl: place.proxyUrl, app: place.app });
    expect({ status: refused.status, code: JSON.parse(refused.text).error }).toEqual({ status: 503, code: "draining" });
    expect(refused.headers["retry-after"]).toBe("30");
    await place.served.kill();

    await place.served.start();
    await place.reach(id, "running");
    expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
    const { last_boot: boot } = await place.get(id);
    expect(boot).toMatchObject({ kind: "resume", reason: "snapshot" });
    expect((await place.client.getHealth()).status).toBe("ok");
  } finally {
    expect(await place.close()).toEqual(NOTHING_LEFT);
  }
});
