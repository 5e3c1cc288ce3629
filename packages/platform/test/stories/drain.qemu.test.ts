/** A host is drained and goes down, as the systemd units of operate.md do it, and comes back. */
import { expect, test } from "vitest";
import { runCli } from "../../../cli/test/real-cli.ts";
import { ask } from "../helpers/proxied.ts";
import { askUntilAnswered } from "../helpers/qemu-world.ts";
import { Place } from "../helpers/served.ts";

const place = Place.forTests();

test("what ran before a reboot runs afterwards, with its memory, before anyone asks for it", async () => {
  const { id, private_address: address } = await place.machine();
  const before = await askUntilAnswered(address);
  expect(await runCli(place, ["drain", "--suspend"])).toMatchObject({ out: "Drained: 1 machine suspended.\n" });
  expect(await place.processes(), "nothing is left for the host to kill").toEqual([]);
  const refused = await ask({ proxyUrl: place.proxyUrl, app: place.app });
  expect({ status: refused.status, code: JSON.parse(refused.text).error }).toEqual({ status: 503, code: "draining" });
  expect(refused.headers["retry-after"]).toBe("30");
  await place.served.kill();

  await place.served.start();
  await place.reach(id, "running");
  expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
  expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume", reason: "snapshot" });
  expect((await place.client.getHealth()).status).toBe("ok");
});
