/**
 * In a cluster, a deploy creates machines on the host that it names, whichever host it talks to.
 *
 * @module-tag again
 */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type ApiHost, type ApiHosts, startApiHosts } from "../../../api/test/cluster-hosts.ts";
import { GROUP_METADATA } from "../../src/appfile/machine-configs.ts";
import { freshCli } from "../helpers.ts";

const cli = freshCli();
let cluster: ApiHosts;
beforeEach(async () => {
  cluster = await startApiHosts();
  for (const host of cluster.hosts) claimWhatIsCreated(host);
});
afterEach(() => cluster.close());

/** In these hosts nobody owns machines: the cluster knows them before their creation is answered, as with owners. */
function claimWhatIsCreated(host: ApiHost): void {
  const { machines } = host.platform;
  const create = machines.create.bind(machines);
  vi.spyOn(machines, "create").mockImplementation(async (app, ...rest) => {
    const made = await create(app, ...rest);
    await cluster.claim(host, app, made.record.id, made.record.name);
    return made;
  });
  const { templates } = host.platform;
  const bear = templates.bear.bind(templates);
  vi.spyOn(templates, "bear").mockImplementation(async (app, ...rest) => {
    const born = await bear(app, ...rest);
    await cluster.claim(host, app, born.record.id, born.record.name);
    return born;
  });
}

const SERVICE = 'internal_port = 8080\nauto_stop_machines = "suspend"\n';

/** Deploys through host a. */
function deploy(image: string, { host, more = "" }: { host: string; more?: string }) {
  const processes = `[processes]\nweb = "serve"\n${more}[http_service]\nprocesses = ["web"]\n${SERVICE}`;
  const [a] = cluster.hosts;
  const through = { HIBERNAUT_API_URL: a.url, HIBERNAUT_API_TOKEN: cluster.token };
  return cli.deploy(`app = "shop"\n[build]\nimage = "${image}"\n${processes}`, `--host ${host}`, through);
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

test("with a template, machines of all hosts begin where the first one stopped, on the host that was named or has room", async () => {
  const template = "[deploy]\ntemplate = true\n";
  const origins = () =>
    cluster.hosts.map(({ platform }) =>
      platform.machines.list("shop").map(({ record }) => [record.config.image.split("@")[0], record.origin?.kind]),
    );
  const through = { HIBERNAUT_API_URL: cluster.hosts[0].url, HIBERNAUT_API_TOKEN: cluster.token };
  expect(await deploy("app:1", { host: "b", more: template })).toMatchObject({ code: 0 });
  await cluster.setUp("b", { memoryMb: { total: 8192, free: 0 } });
  await cluster.setUp("a", { memoryMb: { total: 8192, free: 0 } });
  const scaled = await cli.hibernaut("scale count 2 --app shop", through);
  expect(scaled, scaled.stderr).toMatchObject({ code: 0 });
  expect(origins()).toEqual([[], [["app:1", undefined]], [["app:1", "template"]]]);
  const second = await deploy("app:2", { host: "b", more: template });
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expect(origins()).toEqual([[], [["app:2", undefined]], [["app:2", "template"]]]);
  for (const { platform } of cluster.hosts)
    for (const each of platform.templates.list("shop")) expect(each.template.name).toBe("release-2-web");
});
