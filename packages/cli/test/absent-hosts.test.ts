/**
 * Commands in a cluster of which a host is away, answers late or has old copies: nothing is decided without what others have.
 *
 * @module-tag again
 */
import { HibernautClient } from "@hibernaut/client";
import { KEYS } from "@hibernaut/cluster/keys";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type ApiHost, type ApiHosts, startApiHosts } from "../../api/test/cluster-hosts.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { runCli } from "./helpers.ts";

let folder: string;
let cluster: ApiHosts;
let c: ApiHost;
let client: HibernautClient;

beforeEach(async () => {
  folder = await tempFolder("cli");
  cluster = await startApiHosts();
  const [a] = cluster.hosts;
  c = cluster.hosts.at(-1) as ApiHost;
  client = new HibernautClient({ apiUrl: a.url, token: cluster.token });
  await client.createApp("shop");
  for (const { host } of cluster.hosts) await host.shared.catchUp();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await cluster.close();
});

const hibernaut = (words: string) => runCli(words, { folder, url: client.apiUrl, token: cluster.token }).ended;

/** Host c answers lists of volumes only when told to. */
function holdVolumes(): { answer(): void } {
  const { promise, resolve } = Promise.withResolvers<number>();
  vi.spyOn(c.host.platform.volumes, "usedBytes").mockReturnValue(promise);
  return { answer: () => resolve(0) };
}

test("an app is not destroyed with volumes that a late host has and nobody was shown", async () => {
  const volume = await client.createVolume("shop", { name: "data", size_gb: 1, host: "c" });
  const held = holdVolumes();
  const refused = await hibernaut("apps destroy shop --force");
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(/^Error: Nothing was changed\. Host c did not answer, and may have volumes of shop,/);
  expect(await client.getApp("shop")).toMatchObject({ name: "shop" });
  held.answer();
  vi.restoreAllMocks();
  expect(await client.listVolumes("shop")).toEqual([volume]);

  const asked = await hibernaut("apps destroy shop --force");
  expect(asked.stderr).toContain(`volume ${volume.id} (data)`);
  expect(await hibernaut("apps destroy shop --force --yes")).toMatchObject({ code: 0 });
});

/** A machine of host c, as the others know it, which is running. */
async function machineOfC(name = "far"): Promise<string> {
  const { id } = await client.createMachine("shop", { name, config: { image: "app:1" }, host: "c" });
  await client.waitForMachine("shop", id);
  await cluster.claim(c, "shop", id, name);
  await cluster.publish(id, { state: "running", route: null });
  return id;
}

test("scale count destroys nothing while it cannot tell which machines have data", async () => {
  const full = await client.createMachine("shop", {
    config: { image: "app:1", mounts: [{ volume: "data", path: "/data" }] },
    host: "a",
  });
  const id = await machineOfC();
  await client.createVolume("shop", { name: "other", size_gb: 1, host: "c" });
  const held = holdVolumes();
  const refused = await hibernaut("scale count 1 --yes");
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(
    /^Error: Nothing was changed\. Host c did not answer, and which machines are destroyed/,
  );
  held.answer();
  vi.restoreAllMocks();

  await cluster.setUp("c", false);
  expect((await hibernaut("scale count 0 --yes")).stderr).toContain("Host c did not answer");
  await cluster.setUp("c", true);
  const ids = (await client.listMachines("shop")).map((machine) => machine.id);
  expect(ids.toSorted()).toEqual([full.id, id].toSorted());
});

test("scale count copies a machine that it can ask, or none", async () => {
  await machineOfC();
  await cluster.setUp("c", false);
  expect(await hibernaut("scale count 2")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Host c did not answer, and has the only machines that could be copied."),
  });

  await cluster.setUp("c", true);
  const config = { image: "app:2", services: [{ internal_port: 8080 }] };
  const older = await client.createMachine("shop", { config, host: "a" });
  const newer = await machineOfC("farther");
  await cluster.setUp("c", false);
  // Of the two hosts that are up, the one that is asked gets the new machine.
  await cluster.setUp("b", { memoryMb: { total: 8192, free: 4096 }, draining: true });
  expect(await hibernaut("scale count 4")).toMatchObject({
    stdout: expect.stringMatching(/^Created machine \w+\.\n$/),
    code: 0,
  });
  const made = (await client.listMachines("shop")).at(-1);
  expect(made).toMatchObject({ config: { image: "app:2" } });
  expect([older.id, newer]).not.toContain(made?.id);
});

test("top shows the machines of a host that is away, and does not fail", async () => {
  const id = await machineOfC();
  await cluster.setUp("c", false);
  expect(await hibernaut("top")).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^shop +far +unreachable \(was running\) /m),
  });
  const { stdout } = await hibernaut("top --json");
  expect(JSON.parse(stdout)).toMatchObject([{ machine_id: id, host_state: "unreachable", process: null }]);
});

test("volumes list and show tell which volume is an old copy, and destroy says on which host it deletes", async () => {
  const { id } = await client.createVolume("shop", { name: "data", size_gb: 1, host: "c" });
  await cluster.write({ [`${KEYS.volumes}shop/${id}`]: { host: "b", epoch: 1 } });
  const list = await hibernaut("volumes list --app shop");
  expect(list.stdout).toMatch(new RegExp(`${id}.* c .*outdated`));
  const shown = await hibernaut(`volumes show ${id} --app shop`);
  expect(shown.stdout).toContain("outdated: host b has a newer copy");
  const asked = await hibernaut(`volumes destroy ${id} --app shop`);
  expect(asked.stderr).toContain(`Volume ${id} (data, 1 GB) on host c and its 0 snapshot(s)`);
});

test("scale memory changes the machines that it can, and names the others and what to do", async () => {
  const here = await client.createMachine("shop", { name: "near", config: { image: "app:1" }, host: "a" });
  await client.waitForMachine("shop", here.id);
  await cluster.claim(cluster.hosts[0], "shop", here.id, "near");
  const far = await machineOfC();
  await cluster.setUp("c", false);
  const run = await hibernaut("scale memory 512mb --app shop");
  expect(run).toMatchObject({ code: 1, stdout: expect.stringContaining("1 machine(s) of shop now have 512 MB.") });
  expect(run.stderr).toContain(`Machine ${far} stays as it is: its host c is away.`);
  expect(run.stderr).toContain(`Not changed: ${far} (host c), because host c is away.`);
  expect(run.stderr).toContain("Once host c is back, run `hibernaut scale memory 512mb --app shop`.");
  expect(await client.getMachine("shop", here.id)).toMatchObject({ config: { guest: { memory_mb: 512 } } });
  await cluster.setUp("c", true);
  expect(await hibernaut("scale memory 512mb --app shop")).toMatchObject({ code: 0 });
  expect(await client.getMachine("shop", far)).toMatchObject({ config: { guest: { memory_mb: 512 } } });
});
