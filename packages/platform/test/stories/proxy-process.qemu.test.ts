/**
 * Proxies in processes of their own: what they do without the control plane, and that they agree about sleeping.
 *
 * @module-tag again
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");

let place: Place;
let listen: string;
beforeAll(async () => {
  place = await Place.open({ HIBERNAUT_PROXY: "outside", HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });
  // Both share the port, so it has to be known before.
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  listen = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.close();
  await once(server, "close");
});
afterAll(async () => {
  expect(await place.close()).toEqual(NOTHING_LEFT);
});

/** Starts `hibernaut proxy`; settles when it listens. */
async function proxy(): Promise<ChildProcess> {
  const env = {
    ...process.env,
    HIBERNAUT_DATA_DIR: place.home,
    HIBERNAUT_PROXY_LISTEN: listen,
    HIBERNAUT_LOG_LEVEL: "silent",
  };
  const child = spawn(process.execPath, [CLI, "proxy", "--json"], { env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => {
    const ended = once(child, "exit");
    child.kill();
    await ended;
  });
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  expect(JSON.parse(line.toString())).toEqual({ proxy_url: `http://${listen}` });
  return child;
}

test("two proxies on one port; the control plane is killed and comes back, and no request notices", async () => {
  await Promise.all([proxy(), proxy()]);
  const target = { proxyUrl: `http://${listen}`, app: place.app };
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
