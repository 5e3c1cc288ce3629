/** Commands in a cluster of which a host is away, or answers late: nothing is decided without what it has. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HibernautClient } from "@hibernaut/client";
import { type ApiHost, type ApiHosts, startApiHosts } from "../../platform/test/api/cluster-hosts.ts";
import { runCli } from "./helpers.ts";

// Each test starts several processes, and the host may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let folder: string;
let cluster: ApiHosts;
let c: ApiHost;
let client: HibernautClient;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "hibernaut-cli-"));
  cluster = await startApiHosts();
  const [a] = cluster.hosts as [ApiHost];
  c = cluster.hosts.at(-1) as ApiHost;
  client = new HibernautClient({ apiUrl: a.url, token: cluster.token });
  await client.createApp("shop");
  for (const { host } of cluster.hosts) await host.shared.catchUp();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await cluster.close();
  rmSync(folder, { recursive: true, force: true });
});

const hibernaut = (...args: string[]) => runCli(args, { folder, url: client.apiUrl, token: cluster.token }).ended;

/** Host c answers lists of volumes only when told to. */
function holdVolumes(): { answer(): void } {
  const { promise, resolve } = Promise.withResolvers<number>();
  vi.spyOn(c.host.platform.volumes, "usedBytes").mockReturnValue(promise);
  return { answer: () => resolve(0) };
}

test("an app is not destroyed with volumes that a late host has and nobody was shown", async () => {
  const volume = await client.createVolume("shop", { name: "data", size_gb: 1, host: "c" });
  const held = holdVolumes();
  const refused = await hibernaut("apps", "destroy", "shop", "--force");
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(/^Error: Nothing was changed\. Host c did not answer, and may have volumes of shop,/);
  expect(await client.getApp("shop")).toMatchObject({ name: "shop" });
  held.answer();
  vi.restoreAllMocks();
  expect(await client.listVolumes("shop")).toEqual([volume]);

  const asked = await hibernaut("apps", "destroy", "shop", "--force");
  expect(asked.stderr).toContain(`volume ${volume.id} (data)`);
  expect(await hibernaut("apps", "destroy", "shop", "--force", "--yes")).toMatchObject({ code: 0 });
});
