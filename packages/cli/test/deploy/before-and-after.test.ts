/**
 * What a deploy makes sure of before and after it changes machines: names, secrets, and versions that nobody has tried.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { freshCli } from "../helpers.ts";

const cli = freshCli();

function deploy(image: string, { more = "", options = "", app = "shop" } = {}) {
  const service = '[http_service]\ninternal_port = 8080\nauto_stop_machines = "suspend"\n';
  const file = `app = "${app}"\n[build]\nimage = "${image}"\n${service}${more}`;
  return cli.deploy(file, options, { HIBERNAUT_APP: "" });
}
const machine = async () => (await cli.json("machine status")).document;

test("a sleeping machine is not tested unless it is asked for; with --prewarm it runs, passes, and sleeps again", async () => {
  await deploy("app:1");
  await cli.hibernaut("machine suspend");
  const untested = await deploy("app:2");
  expect(untested).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      /is suspended\. The new version is not tested yet: it starts with the next request\. With --prewarm/,
    ),
  });
  expect(await machine()).toMatchObject({ state: "suspended", snapshot: null, last_boot: { reason: "first_start" } });
  const tested = await deploy("app:3", { options: "--prewarm" });
  expect(tested).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/ran the new version, and is suspended again\./),
  });
  expect(await machine()).toMatchObject({
    state: "suspended",
    snapshot: { size_bytes: expect.any(Number) },
    last_boot: { kind: "cold" },
  });
});

test("with --prewarm, a version that crashes fails the deploy", async () => {
  await deploy("app:1");
  const { id } = await machine();
  await cli.hibernaut("machine stop");
  cli.server.world.host.crashing.add(id);
  const { code, stderr } = await deploy("app:2", { options: "--prewarm" });
  expect(code).toBe(1);
  expect(stderr).toMatch(/has the new version, and .*crashed/);
});

test("the app file asks for it, too, and an option overrides the file", async () => {
  await deploy("app:1");
  await cli.hibernaut("machine suspend");
  const more = "[deploy]\nprewarm = true\n";
  expect(await deploy("app:2", { more })).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/is suspended again/),
  });
  const without = await deploy("app:3", { more, options: "--no-prewarm" });
  expect(without).toMatchObject({ code: 0, stderr: expect.stringMatching(/is not tested yet/) });
  expect(await deploy("app:4", { more: '[deploy]\nprewarm = "soon"\n' })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/error: deploy\.prewarm: .*true, false or "prepared"/),
  });
});

test("a machine is updated with a prewarm by hand, and a change that does not work is said", async () => {
  await deploy("app:1");
  const { id } = await machine();
  await cli.hibernaut("machine suspend");
  const worked = await cli.hibernaut(`machine update ${id} --env LOG=debug --prewarm`);
  expect(worked).toMatchObject({ code: 0, stdout: expect.stringMatching(/is suspended, version/) });
  expect(await machine()).toMatchObject({ prewarm: { status: "done" }, snapshot: { size_bytes: expect.any(Number) } });
  cli.server.world.host.crashing.add(id);
  const failed = await cli.hibernaut(`machine update ${id} --env LOG=trace --prewarm`);
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/does not work with the change: it crashed/) });
  expect((await cli.hibernaut(`machine status ${id}`)).stdout).toMatch(/^prewarm +failed: it crashed/m);
  const nothing = await cli.hibernaut(`machine update ${id} --prewarm`);
  expect(nothing).toMatchObject({ code: 2, stderr: expect.stringMatching(/Add an option that changes it/) });
});

test("what the platform would refuse in an app file is noticed before anything changes", async () => {
  const refused = await deploy("app:1", { app: "blog", more: '[[files]]\nguest_path = "/proc/a"\nraw_value = ""\n' });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(":8:1: error: files[0].guest_path: ") });
  const apps = (await cli.json("apps list")).document;
  expect(apps.map(({ name }: { name: string }) => name)).toEqual(["shop"]);
});

test("a file from a secret that the app does not have is noticed before anything changes", async () => {
  await deploy("app:1");
  const files = '[[files]]\nguest_path = "/a"\nsecret_name = "NOPE"\n';
  const refused = await deploy("app:2", { more: files });
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/no secret NOPE.*\/a.*Nothing was changed\. Set it: hibernaut secrets set NOPE=/),
  });
  expect((await machine()).image.ref).toMatch(/^app:1@/);
  await cli.hibernaut("secrets set NOPE=aGVsbG8=");
  expect(await deploy("app:2", { more: files })).toMatchObject({ code: 0 });
});

test("a name that no app can have is refused before anything is built", async () => {
  const inFile = await deploy("app:1", { app: "Bad_App" });
  expect(inFile).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/:1:1: error: app: "Bad_App" is not a valid/),
  });
  const given = await deploy("app:1", { options: "--app Bad_App" });
  expect(given).toMatchObject({ code: 2, stderr: expect.stringMatching(/^Error: `Bad_App` is not a valid name/m) });
});
