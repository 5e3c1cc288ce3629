/** In a cluster, a deploy creates machines on the host that it names, whichever host it talks to. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type ApiHost, type ApiHosts, startApiHosts } from "../../../api/test/cluster-hosts.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { GROUP_METADATA } from "../../src/appfile/machine-configs.ts";
import { startCli, type TestCli } from "../helpers.ts";

// Each test starts several processes, and the host may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let cli: TestCli;
let cluster: ApiHosts;
let folder: string;
beforeEach(async () => {
  [cli, cluster, folder] = await Promise.all([startCli(), startApiHosts(), tempFolder("deploy")]);
  for (const host of cluster.hosts) claimWhatIsCreated(host);
});
afterEach(async () => {
  await cli.close();
  await cluster.close();
});

/** In these hosts nobody owns machines: the cluster knows them before their creation is answered, as with owners. */
function claimWhatIsCreated(host: ApiHost): void {
  const { machines } = host.platform;
  const create = machines.create.bind(machines);
  vi.spyOn(machines, "create").mockImplementation(async (app, ...rest) => {
    const made = await create(app, ...rest);
    await cluster.claim(host, app, made.record.id, made.record.name);
    return made;
  });
}

const SERVICE = 'internal_port = 8080\nauto_stop_machines = "suspend"\n';

/** Deploys through host a. */
async function deploy(image: string, { host, more = "" }: { host: string; more?: string }) {
  const file = join(folder, "hibernaut.toml");
  const processes = `[processes]\nweb = "serve"\n${more}[http_service]\nprocesses = ["web"]\n${SERVICE}`;
  await writeFile(file, `app = "shop"\n[build]\nimage = "${image}"\n${processes}`);
  const [a] = cluster.hosts;
  return cli.hibernaut(["deploy", "--config", file, "--host", host], {
    HIBERNAUT_API_URL: a.url,
    HIBERNAUT_API_TOKEN: cluster.token,
  });
}

/** The process groups of the machines that each host has, with their images. */
const placed = () =>
  cluster.hosts.map(({ platform }) =>
    platform.machines
      .list("shop")
      .map(({ record }) => [record.config.metadata?.[GROUP_METADATA], record.config.image.split("@")[0]]),
  );

test("new machines are created on the named host, and those that there are stay where they are", async () => {
  const first = await deploy("app:1", { host: "b" });
  expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining("Deployed release 1 of shop") });
  expect(placed()).toEqual([[], [["web", "app:1"]], []]);
  const second = await deploy("app:2", { host: "c", more: 'jobs = "work"\n' });
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expect(placed()).toEqual([[], [["web", "app:2"]], [["jobs", "app:2"]]]);
});

test("a host that the cluster does not have is refused, and no machine is created elsewhere instead", async () => {
  const { code, stderr } = await deploy("app:1", { host: "z" });
  expect(code).toBe(1);
  expect(stderr).toContain("Error: There is no host z in the cluster. `hibernaut cluster status` lists its hosts.");
  expect(placed()).toEqual([[], [], []]);
});
