/**
 * A host that has no memory left for machines, as its owner sees it.
 *
 * @module-tag again
 */
import { totalmem } from "node:os";
import { expect, test } from "vitest";
import { ask } from "../helpers/proxied.ts";
import { Place } from "../helpers/served.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";

/** As a reserve, it leaves nothing to machines: no host has all of its memory left. */
const ALL = `${Math.ceil(totalmem() / 1024 / 1024)}mb`;

const place = Place.forTests({ HIBERNAUT_MEMORY_RESERVE: ALL });

const config = { image: SMALL_APP, guest: { memory_mb: 128 }, services: [{ internal_port: 8080 }] };

test("machines are not started by a person or a request, and those that sleep keep their memory until there is room", async () => {
  const { app } = place;
  await expect(place.client.createMachine(app, { config })).rejects.toMatchObject({
    status: 503,
    code: "host_full",
    details: { needed_mb: 128 + 128, left_mb: 0, available_mb: expect.any(Number) },
  });
  expect(await place.client.listMachines(app)).toEqual([]);

  await place.served.stop();
  await place.served.start({ HIBERNAUT_MEMORY_RESERVE: "0" });
  const { machine_id: id } = await place.machine(config);
  await place.suspend(id);
  await place.served.stop();
  await place.served.start();

  await expect(place.client.startMachine(app, id)).rejects.toMatchObject({ code: "host_full" });
  const refused = await ask({ proxyUrl: place.proxyUrl, app });
  expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "5"]);
  expect(JSON.parse(refused.text)).toMatchObject({
    error: "host_full",
    message: expect.stringContaining("Stop or suspend machines, give them less memory"),
  });
  expect((await place.get(id)).state).toBe("suspended");

  await place.served.stop();
  await place.served.start({ HIBERNAUT_MEMORY_RESERVE: "0" });
  expect((await ask({ proxyUrl: place.proxyUrl, app })).status).toBe(200);
  expect((await place.get(id)).last_boot?.kind).toBe("resume");
});
