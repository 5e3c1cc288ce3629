/** Deploys with `template = true`: the first machine that passes is the origin of the others, also of later ones. */
import { expect, test } from "vitest";
import { freshCli } from "../helpers.ts";

const cli = freshCli();

function deploy(image: string, more = "") {
  const service = '[http_service]\ninternal_port = 8080\nauto_stop_machines = "suspend"\n';
  const file = `app = "shop"\n[build]\nimage = "${image}"\n${service}[deploy]\ntemplate = true\n${more}`;
  return cli.deploy(file, "", { HIBERNAUT_APP: "" });
}
interface Listed {
  id: string;
  state: string;
  origin: { template: string } | null;
  last_boot: { kind: string };
}
const machines = async (): Promise<Listed[]> => (await cli.json("machine list")).document;
const templates = async (): Promise<{ id: string; name: string }[]> => (await cli.json("templates list")).document;

test("the first machine starts cold, and those that come by scaling begin where it stopped", async () => {
  expect(await deploy("app:1")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("is kept as template release-1-app"),
  });
  expect(await cli.hibernaut("scale count 3")).toMatchObject({ code: 0 });
  const [template] = await templates();
  const [first, ...others] = await machines();
  expect(first).toMatchObject({ origin: null, last_boot: { kind: "cold" } });
  expect(others).toHaveLength(2);
  for (const other of others) expect(other).toMatchObject({ state: "running", origin: { template: template?.id } });
});

test("the next deploy starts one machine cold, restores the others in place, and deletes the template before", async () => {
  await deploy("app:1");
  await cli.hibernaut("scale count 3");
  const before = await machines();
  await cli.hibernaut(`machine suspend ${before[2]?.id}`);
  const { code, stderr } = await deploy("app:2");
  expect(code).toBe(0);
  expect(stderr).toMatch(/is suspended, with the state that the template of the new version has/);
  const after = await machines();
  expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  expect(after.map(({ state, last_boot }) => [state, last_boot.kind])).toEqual([
    ["running", "cold"],
    ["running", "resume"],
    ["suspended", "resume"],
  ]);
  expect((await templates()).map(({ name }) => name)).toEqual(["release-2-app"]);
});

test("machines whose configuration has changed since are copied in the ordinary way", async () => {
  await deploy("app:1");
  await cli.hibernaut("machine update --env LOG=debug --yes");
  await cli.hibernaut("scale count 2");
  expect((await machines()).map(({ origin }) => origin)).toEqual([null, null]);
});

test("an app that cannot be a template is deployed without, and the deploy says why", async () => {
  const { code, stderr } = await deploy("app:1", '[mounts]\nsource = "data"\ndestination = "/data"\n');
  expect(code).toBe(0);
  expect(stderr).toMatch(/There is no template of process group app: .*volumes/);
});
