/** Previews of an app that keeps templates: each has those of its own releases, and they go with it. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freshCli } from "../helpers.ts";

const cli = freshCli();
const PREVIEW = "pr-12--shop";

function deploy(image: string, options = "") {
  const service = '[http_service]\ninternal_port = 8080\nauto_stop_machines = "suspend"\n';
  const file = `app = "shop"\n[build]\nimage = "${image}"\n${service}[deploy]\ntemplate = true\n`;
  return cli.deploy(file, options, { HIBERNAUT_APP: "" });
}

interface Listed {
  id: string;
  state: string;
  origin: { template: string } | null;
  last_boot: { kind: string };
}
const machines = async (app: string): Promise<Listed[]> => (await cli.json(`machine list --app ${app}`)).document;
const templates = async (app: string): Promise<{ id: string; name: string; source: string }[]> =>
  (await cli.json(`templates list --app ${app}`)).document;

test("a preview of the same image starts cold, and is the origin of its own further machines", async () => {
  await deploy("app:1");
  const [production] = await templates("shop");
  const deployed = await deploy("app:1", "--preview pr-12");
  expect(deployed).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("is kept as template release-1-app"),
  });
  const [first] = await machines(PREVIEW);
  // What the template of production has in its memory are the secrets and the name of production.
  expect(first).toMatchObject({ origin: null, last_boot: { kind: "cold" } });
  const [own, ...more] = await templates(PREVIEW);
  expect(more).toEqual([]);
  expect(own?.id).not.toBe(production?.id);
  await cli.hibernaut(`scale count 2 --app ${PREVIEW}`);
  expect((await machines(PREVIEW)).map(({ origin }) => origin?.template)).toEqual([undefined, own?.id]);
  const foreign = await cli.hibernaut(`machine run --template ${production?.id} --app ${PREVIEW}`);
  expect(foreign).toMatchObject({ code: 1, stderr: expect.stringMatching(/has no template/) });
});

test("the next deploy of a preview that sleeps leaves no template of the version before, which nothing can use", async () => {
  await deploy("app:1", "--preview pr-12");
  const [{ id } = { id: "" }] = await machines(PREVIEW);
  await cli.hibernaut(`machine suspend ${id} --app ${PREVIEW}`);
  // The same again: its template is still that of further machines.
  await deploy("app:1", "--preview pr-12");
  expect((await templates(PREVIEW)).map(({ name }) => name)).toEqual(["release-1-app"]);
  expect(await deploy("app:2", "--preview pr-12")).toMatchObject({ code: 0 });
  expect(await machines(PREVIEW)).toMatchObject([{ id, state: "suspended" }]);
  expect(await templates(PREVIEW)).toEqual([]);
});

test("what a preview keeps goes with it, and that of production stays", async () => {
  await deploy("app:1");
  await deploy("app:2", "--preview pr-12");
  const kept = await templates("shop");
  const [own] = await templates(PREVIEW);
  const onDisk = () => readdirSync(join(cli.server.world.folder, "templates"));
  expect(onDisk()).toContain(own?.id);
  expect(await cli.hibernaut("previews destroy pr-12 --yes --app shop")).toMatchObject({ code: 0 });
  expect(onDisk()).toEqual(kept.map(({ id }) => id));
  expect(await templates("shop")).toEqual(kept);
});
