/** Requests at any host of a cluster: real platforms, real machines and a real etcd. */
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import type { MachineConfig } from "@hibernaut/client";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { slowed } from "../../platform/test/helpers/slow.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { RawClient } from "../../proxy/test/http/helpers.ts";
import { type Hosts, startHosts, type TestHost } from "./hosts.ts";

const APP = "shop";
/** Only a fault reaches it. */
const SETTLE_MS = slowed(60_000);

let hosts: Hosts;
beforeAll(async () => {
  hosts = await startHosts({ count: 2 });
  // Both hosts are one here, and only one proxy of it can have a port.
  const { served } = hosts.host("b");
  await served.stop();
  await served.start({ HIBERNAUT_TCP_LISTEN: "127.0.0.2" });
  await hosts.settled("a", "b");
  await hosts.host("a").client.createApp(APP);
});
afterAll(async () => {
  await hosts.dispose();
  for (const host of hosts.all) expect(await host.guests()).toEqual([]);
});

/** Creates a machine on a host, whose app says the host's name and counts its requests. */
async function machineOn(host: TestHost, config: Partial<MachineConfig> = {}): Promise<string> {
  const { id } = await host.client.createMachine(APP, {
    host: host.name,
    config: {
      image: SMALL_APP,
      guest: { memory_mb: 128 },
      init: { cmd: ["--label", host.name] },
      services: [{ protocol: "http", internal_port: 8080, machine_hostnames: true, autostop: "suspend" }],
      ...config,
    },
  });
  await host.client.waitForMachine(APP, id, { state: "running", timeout: SETTLE_MS / 1000 });
  return id;
}

async function asleep(host: TestHost, id: string): Promise<void> {
  await host.client.suspendMachine(APP, id);
  await host.client.waitForMachine(APP, id, { state: "suspended", timeout: SETTLE_MS / 1000 });
}

/** Sends a request to a host's proxy, for any machine of the app or for a certain one. */
function ask(host: TestHost, machine?: string): Promise<{ status: number; wake: string; body: string }> {
  const { hostname, port } = new URL(host.served.proxyUrl);
  const name = `${machine === undefined ? "" : `${machine}.`}${APP}.localhost`;
  return new Promise((resolve, reject) => {
    httpRequest({ hostname, port, headers: { host: name }, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (piece) => (body += piece));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, wake: String(response.headers["hibernaut-wake"] ?? ""), body }),
      );
    })
      .on("error", reject)
      .end();
  });
}

/** Resolves if host a has the port open. */
async function connects(port: number): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1" });
  await once(socket, "connect").finally(() => socket.destroy());
}

const state = async (host: TestHost, id: string) => (await host.client.getMachine(APP, id)).state;

test(
  "a request wakes the machine it is for, whichever host it comes to; a lost host's machines are told apart",
  async () => {
    const [a, b] = [hosts.host("a"), hosts.host("b")];
    const one = await machineOn(a);
    const two = await machineOn(b);
    await asleep(a, one);
    await asleep(b, two);
    // From host to host the news takes some milliseconds.
    await vi.waitFor(async () => expect((await ask(a, two)).body).toBe("b 1"), { timeout: SETTLE_MS });
    expect(await state(b, two)).toBe("running");
    expect(await state(a, one)).toBe("suspended");

    await asleep(b, two);
    const far = await ask(a, two);
    expect(far).toMatchObject({ status: 200, body: "b 2" });
    expect(far.wake).toMatch(/^resume; dur=\d+$/);
    await asleep(b, two);
    const near = await ask(b, one);
    expect(near).toMatchObject({ status: 200, body: "a 1" });
    expect(near.wake).toMatch(/^resume; dur=\d+$/);

    // A machine that runs elsewhere is better than one here that sleeps.
    expect((await ask(b)).body).toBe("a 2");
    expect(await state(b, two)).toBe("suspended");

    await b.lose();
    await vi.waitFor(
      async () => {
        const refused = await ask(a, two);
        expect(refused.status).toBe(503);
        expect(JSON.parse(refused.body)).toMatchObject({ error: "host_unreachable" });
      },
      { timeout: SETTLE_MS },
    );
    expect((await ask(a)).body).toBe("a 3");
    await b.served.start();
    await vi.waitFor(async () => expect((await ask(a, two)).status).toBe(200), { timeout: SETTLE_MS });
  },
  slowed(240_000),
);

test("a TCP connection reaches a machine that sleeps on another host, and stays open", {
  tags: "again",
  timeout: slowed(240_000),
}, async () => {
  const [a, b] = [hosts.host("a"), hosts.host("b")];
  const port = await freePort();
  const id = await machineOn(b, {
    init: { cmd: ["--lines", "b"] },
    services: [{ protocol: "tcp", internal_port: 8080, autostop: "suspend", ports: [{ port }] }],
  });
  await asleep(b, id);
  // Host a opens the port once it hears of the machine.
  await vi.waitFor(() => connects(port), { timeout: SETTLE_MS });
  const socket = connect({ port, host: "127.0.0.1" });
  onTestFinished(() => void socket.destroy());
  const client = new RawClient(socket).send("hello\n");
  await client.sees("b 1 hello\n");
  client.send("again\n");
  await client.sees("b 2 again\n");
  expect(await state(b, id)).toBe("running");
  expect(a.served.proxyUrl).not.toBe("");
});
