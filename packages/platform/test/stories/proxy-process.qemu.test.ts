/**
 * Proxies in processes of their own: what they do without the control plane, and that they agree about sleeping.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { startProxy } from "../helpers/outside-proxy.ts";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { Place } from "../helpers/served.ts";

const place = Place.forTests({ HIBERNAUT_PROXY: "outside", HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });

test("two proxies on one port; the control plane is killed and comes back, and no request notices", async () => {
  // Both share the port, so it has to be known before.
  const listen = { HIBERNAUT_PROXY_LISTEN: `127.0.0.1:${await freePort()}` };
  const [proxyUrl] = await Promise.all([startProxy(place, listen), startProxy(place, listen)]);
  const target = { proxyUrl, app: place.app };
  const { machine_id: id } = await place.machine({
    services: [{ internal_port: 8080, autostop: "suspend", idle_timeout: 2 }],
  });
  // Longer than the idle time, through either proxy: neither lets it sleep.
  const slow = await Promise.all(Array.from({ length: 6 }, () => ask(target, "/wait/4000")));
  expect(slow.map(({ text }) => text)).toEqual(Array(6).fill("began ended"));

  const open = ask(target, "/wait/6000");
  await ask(target, "/wait/1");
  await place.served.kill();
  expect((await ask(target, "/wait/1")).text).toBe("began ended"); // the control plane is away
  await place.served.start();
  expect((await open).text).toBe("began ended");
  expect((await place.get(id)).state).toBe("running");

  await place.reach(id, "suspended");
  await place.served.kill();
  const waiting = ask(target, "/wait/1"); // nobody is there to wake it
  await place.served.start();
  const woken = await waiting;
  expect([woken.text, wakeOf(woken).kind]).toEqual(["began ended", "resume"]);
});
