/** On real hosts: a platform is stopped for longer than its grace, next to a host that is lost. */
import { expect, test, vi } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { ask } from "../../platform/test/helpers/proxied.ts";
import { slowed } from "../../platform/test/helpers/slow.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { type Hosts, startHosts } from "./hosts.ts";

const WAIT_S = slowed(120);

/** The same is tested on fakes (`evacuation/stopped`, `evacuation/evacuation`). */
const testInLong = longOr(test, test.skip);

/** A machine of an app of its own, which others may recreate. Resolves with its id and the nonce in its memory. */
async function hasty(hosts: Hosts, host: string): Promise<{ id: string; nonce: string }> {
  const { client } = hosts.host(host);
  const app = `on-${host}`;
  await client.createApp(app);
  const services = [{ internal_port: 8080, autostop: "off" as const }];
  const config = { image: SMALL_APP, guest: { memory_mb: 128 }, services, on_host_loss: "recreate" as const };
  const { id } = await client.createMachine(app, { host, config });
  await client.waitForMachine(app, id, { state: ["running"], timeout: WAIT_S });
  return { id, nonce: await nonceOf(hosts, app, host) };
}

async function nonceOf(hosts: Hosts, app: string, through: string): Promise<string> {
  const { status, text } = await ask({ proxyUrl: hosts.host(through).served.proxyUrl, app });
  expect(status, text).toBe(200);
  return (JSON.parse(text) as { nonce: string }).nonce;
}

testInLong(
  "the guests of a stopped platform run on alone, while those of a lost host are started elsewhere",
  async () => {
    await using hosts = await startHosts({ env: { HIBERNAUT_CLUSTER_GRACE: "1s" } });
    const [a, b, c] = [hosts.host("a"), hosts.host("b"), hosts.host("c")];
    const kept = await hasty(hosts, "b");
    const lost = await hasty(hosts, "c");
    // It has been away for longer than c when c's machine is recreated.
    await b.served.stop();
    await hosts.settled("a", "c");
    await c.lose();
    await vi.waitFor(async () => expect(await a.client.getMachine("on-c", lost.id)).toMatchObject({ host: "a" }), {
      timeout: slowed(90_000),
      interval: 250,
    });
    await a.client.waitForMachine("on-c", lost.id, { state: ["running"], timeout: WAIT_S });
    expect((await a.client.getMachine("on-c", lost.id)).last_boot?.reason).toBe("host_lost: c");
    expect(await b.guests()).toHaveLength(1);
    expect(await a.guests()).toHaveLength(1);

    await b.served.start();
    await hosts.settled("a", "b");
    expect(await b.client.getMachine("on-b", kept.id)).toMatchObject({ host: "b", state: "running" });
    expect(await nonceOf(hosts, "on-b", "a")).toBe(kept.nonce);
    expect(await nonceOf(hosts, "on-c", "b")).not.toBe(lost.nonce);
  },
);
