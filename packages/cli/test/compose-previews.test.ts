/** Previews of compose projects, against the real API on a fake host. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import { BRIDGE } from "./bridge.ts";
import { freshCli } from "./helpers.ts";

const temp = useTempFolder("compose-previews");
const cli = freshCli({ platform: BRIDGE });
const file = () => join(temp.path, "compose.yaml");

const PROJECT = (mode = "one") => `
services:
  web: {image: "app:1", ports: ["8080:8080"], depends_on: [db], secrets: [key]}
  db: {image: "app:1", ports: ["5432:5432"], environment: {MODE: "${mode}"}, volumes: ["rows:/rows"]}
volumes: {rows: }
secrets: {key: {file: ./key.txt}}
`;

const compose = (words: string, environment = {}) =>
  cli.hibernaut(`compose ${words} --file ${file()} --project-name cafe`, environment);
const names = async () => ((await cli.json("apps list")).document as { name: string }[]).map(({ name }) => name);
const show = async (app: string) => (await cli.json(`apps show ${app}`)).document;
const volumes = async (app: string) => (await cli.json(`volumes list --app ${app}`)).document as { id: string }[];
const machine = async (app: string) => (await cli.json(`machine list --app ${app}`)).document[0];

beforeEach(async () => {
  await writeFile(join(temp.path, "key.txt"), "of the checkout");
  await writeFile(file(), PROJECT());
});

const WHOLE = ["cafe-db", "cafe-web", "pr-12--cafe-db", "pr-12--cafe-web", "shop"];

test("the whole project comes up again under names of its own, and shares nothing with the first", async () => {
  await compose("up");
  const production = await machine("cafe-db");
  await writeFile(file(), PROJECT("two"));
  const { code, stdout, stderr } = await compose("up --preview pr-12 --ttl 2h");
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stderr).toMatch(/Preview pr-12 of project cafe has 2 apps, which are destroyed 20\S+, with their machines/);
  expect(stderr).toContain("TCP port 5432 belongs to cafe-db. In the preview, only its own services reach the port.");
  expect(stdout).toContain("App pr-12--cafe-web answers at http://pr-12--cafe-web.localhost:8080/");
  expect(await names()).toEqual(WHOLE);
  const [web, db] = [await show("pr-12--cafe-web"), await show("pr-12--cafe-db")];
  expect(web.network).toMatchObject({ name: "pr-12--cafe", wakes: ["pr-12--cafe-db"] });
  expect(db.network).toMatchObject({ name: "pr-12--cafe", aliases: ["db", "cafe-db"] });
  expect(db.preview).toMatchObject({ of: "cafe-db", name: "pr-12" });
  expect(Date.parse(web.preview.expires_at) - Date.parse(db.preview.expires_at)).toBeLessThan(5000);
  const own = await machine("pr-12--cafe-db");
  expect(own.config.env.MODE).toBe("two");
  expect(own.config.mounts[0].volume).not.toBe(production.config.mounts[0].volume);
  expect(await machine("cafe-db")).toMatchObject({ id: production.id, version: production.version });
  expect((await compose("ps --preview pr-12")).stdout).toMatch(/^db +running .*pr-12--cafe-db$/m);
  expect((await compose("ps")).stdout).not.toContain("pr-12");
});

test("bringing it up again renews it as a whole, changes what changed, and keeps the rest", async () => {
  await compose("up");
  await compose("up --preview pr-12 --ttl 1h");
  await writeFile(file(), PROJECT("two").replace("image", "container_name: store, image"));
  const { document } = await cli.json(`compose up --preview pr-12 --ttl 3h --file ${file()} --project-name cafe`);
  expect(document).toMatchObject({
    ...{ project: "cafe", preview: "pr-12" },
    services: [
      { service: "db", action: "deployed" },
      { service: "web", action: "kept" },
    ],
  });
  for (const app of ["pr-12--cafe-db", "pr-12--cafe-web"])
    expect(Date.parse((await show(app)).preview.expires_at) - Date.now()).toBeGreaterThan(2.9 * 3_600_000);
  expect((await show("pr-12--cafe-web")).network.aliases).toContain("store");
});

test.each([
  ["compose down --preview pr-12", () => compose("down --preview pr-12 --yes")],
  ["previews destroy of one of its apps", () => cli.hibernaut("previews destroy pr-12 --app cafe-web --yes")],
])("%s leaves nothing of it, and all of the project", async (_how, destroy) => {
  await compose("up");
  await compose("up --preview pr-12");
  await compose("up --preview pr-13");
  const kept = await volumes("cafe-db");
  const asked = await compose("down --preview pr-12");
  expect(asked).toMatchObject({ code: 2 });
  expect(asked.stderr).toContain(
    "Together with apps pr-12--cafe-db, pr-12--cafe-web, these will be deleted permanently",
  );
  const { code, stdout } = await destroy();
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("pr-12--cafe-db, pr-12--cafe-web"),
  });
  expect(await names()).toEqual(["cafe-db", "cafe-web", "pr-13--cafe-db", "pr-13--cafe-web", "shop"]);
  expect(await volumes("cafe-db")).toEqual(kept);
  expect(await compose("ps --preview pr-12")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Start it: hibernaut compose up --preview pr-12"),
  });
});

test("it has the data and the secrets of the project only if that is asked for, while the project sleeps", async () => {
  await compose("up");
  await cli.hibernaut("secrets set REAL=1 --app cafe-web --yes");
  await compose("up --preview pr-12");
  const secrets = async () =>
    (await cli.json("secrets list --app pr-12--cafe-web")).document.map(({ name }: { name: string }) => name);
  expect(await secrets()).toEqual(["FILE_KEY"]);
  await compose("down --preview pr-12 --yes");

  const refused = await compose("up --preview pr-12 --copy-volumes");
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot be copied: its machine") });
  // What it had made for that is gone again.
  expect(await names()).toEqual(["cafe-db", "cafe-web", "shop"]);

  await cli.hibernaut(`machine suspend ${(await machine("cafe-db")).id} --app cafe-db`);
  const given = await compose("up --preview pr-12 --copy-volumes --copy-secrets");
  expect(given.stderr).toMatch(/db: Copied volume vol_\w+ \(rows\) of cafe-db to the preview\./);
  expect(given.stderr).toContain("It has the secrets of project cafe");
  expect(await secrets()).toEqual(["FILE_KEY", "REAL"]);
  expect(await volumes("pr-12--cafe-db")).toMatchObject([{ attached_machine_id: expect.any(String) }]);
});

describe("it is refused, and nothing is made,", () => {
  test.each([
    [
      "if the project was never brought up",
      "up --preview pr-12",
      1,
      /The service db has no app yet .* hibernaut apps create cafe-db --network cafe/,
    ],
    ["under a name that no preview can have", "up --preview a--b", 2, /not a valid name for a preview/],
    ["with an option that is for previews, without one", "up --ttl 2h", 2, /Add --preview <name>/],
  ])("%s", async (_why, words, code, message) => {
    expect(await compose(words)).toMatchObject({ code, stderr: expect.stringMatching(message) });
    expect(await names()).toEqual(["shop"]);
  });

  test("if the file has a service that the project has not", async () => {
    await compose("up");
    await writeFile(file(), PROJECT().replace("  web:", "  cache: {image: 'app:1', expose: [6379]}\n  web:"));
    const { code, stderr } = await compose("up --preview pr-12");
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("hibernaut apps create cafe-cache"),
    });
    expect(await names()).toEqual(["cafe-db", "cafe-web", "shop"]);
    await cli.hibernaut("apps create cafe-cache --network cafe");
    expect(await compose("up --preview pr-12")).toMatchObject({ code: 0 });
  });
});

test("a preview that another command brings up at the same moment stays when this one fails", async () => {
  await compose("up");
  await cli.hibernaut("secrets unset FILE_KEY --app cafe-web --yes");
  await cli.hibernaut(`machine start ${(await machine("cafe-db")).id} --app cafe-db`);
  const { volumes: service, machines } = cli.server.platform;
  const { source } = service;
  // The other one has a machine when this one finds that it cannot copy the volume.
  service.source = (app, id) => {
    void machines.create("pr-12--cafe-db", { config: { image: "app:1" }, skipLaunch: true });
    return source.call(service, app, id);
  };
  expect(await compose("up --preview pr-12 --copy-volumes")).toMatchObject({ code: 1 });
  expect(await names()).toEqual(["cafe-db", "cafe-web", "pr-12--cafe-db", "shop"]);
});

test("an app of another project that has the name of a service's is not its production", async () => {
  await compose("up");
  for (const app of ["cafe-bar-web", "cafe-bar-db"]) await cli.hibernaut(`apps create ${app} --network cafe-bar`);
  const services = "services: {bar-db: {image: 'app:1', expose: [5432]}}";
  await writeFile(file(), services);
  const { code, stderr } = await compose("up --preview pr-12");
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("in another network than the") });
  expect(await names()).not.toContain("pr-12--cafe-bar-db");
  // One that is there for the other project stays with what it has.
  await cli.hibernaut("previews create pr-12 --app cafe-bar-web");
  await writeFile(file(), services.replace("bar-db", "bar-web"));
  expect(await compose("up --preview pr-12")).toMatchObject({ code: 1 });
  expect(await names()).toContain("pr-12--cafe-bar-web");
});

test("a CI job does all of that with a token for previews, which shows it nothing of the project", async () => {
  await compose("up");
  const made = await cli.hibernaut("tokens create ci --scope deploy --app cafe-web --app cafe-db --previews");
  const ci = { HIBERNAUT_API_TOKEN: made.stdout.trim() };
  const upped = await compose("up --preview pr-12", ci);
  expect(upped).toMatchObject({ code: 0 });
  const again = await compose("up --preview pr-12", ci);
  expect(again.stdout).toMatch(/db +pr-12--cafe-db +kept/);
  expect(await compose("ps", ci)).toMatchObject({ code: 1 });
  expect(await compose("down --preview pr-12 --yes", ci)).toMatchObject({ code: 0 });
  expect(await names()).toEqual(["cafe-db", "cafe-web", "shop"]);
});

test("a plan shows what it becomes, without asking a platform", async () => {
  const { stdout } = await compose("plan --preview pr-12");
  expect(stdout).toMatch(/^Preview pr-12 of project cafe: 2 apps in the network pr-12--cafe\.$/m);
  expect(stdout).toMatch(/Next: hibernaut compose up --preview pr-12$/m);
});
