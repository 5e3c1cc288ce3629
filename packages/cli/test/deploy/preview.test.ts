/** Previews as someone deploys them, and the rules of what they have. */
import { describe, expect, test } from "vitest";
import { previewGroups, sourceOf } from "../../src/deploy/preview.ts";
import { freshCli } from "../helpers.ts";

const FILE = `app = "shop"
[build]
image = "app:1"
[http_service]
internal_port = 8080
auto_stop_machines = "off"
min_machines_running = 1
[[mounts]]
source = "data"
destination = "/data"
`;

describe("a preview of a group", () => {
  const of = (config: object) => previewGroups(new Map([["app", { config: { image: "x", ...config }, count: 3 }]]));

  test("has one machine, which sleeps and wakes", () => {
    const { groups } = of({ services: [{ internal_port: 8080, autostop: "off", min_machines_running: 2 }] });
    expect(groups.get("app")).toEqual({
      config: {
        image: "x",
        services: [{ internal_port: 8080, autostop: "suspend", autostart: true, min_machines_running: 0 }],
      },
    });
    expect(of({ services: [{ internal_port: 1, autostop: "stop" }] }).groups.get("app")?.config.services).toMatchObject(
      [{ autostop: "stop" }],
    );
  });

  test("takes no port that belongs to production, and shares those where the hostname decides", () => {
    const { groups, closed } = of({
      services: [
        { internal_port: 5432, ports: [{ port: 5432 }, { port: 5433, handlers: ["pg_tls"] }] },
        { internal_port: 6379, ports: [{ port: 6379, handlers: ["proxy_proto"] }] },
      ],
    });
    expect(closed).toEqual([5432, 6379]);
    expect(groups.get("app")?.config.services).toMatchObject([
      { internal_port: 5432, ports: [{ port: 5433, handlers: ["pg_tls"] }] },
    ]);
  });

  test("never names a volume of production by its ID", () => {
    const mounts = [{ volume: "vol_0123456789abcdef", path: "/data" }];
    expect(() => of({ mounts })).toThrow(/^The app file mounts volume vol_0123456789abcdef/);
  });
});

test("the volume to copy is that of the machine listed first in the same process group", () => {
  const machine = (id: string, group: string) => ({ id, config: { metadata: { hibernaut_process_group: group } } });
  const volume = (id: string, name: string, of: string | null) => ({ id, name, attached_machine_id: of });
  const all = {
    machines: [machine("w", "worker"), machine("a1", "app"), machine("a2", "app")],
    volumes: [volume("0", "data", null), volume("1", "data", "w"), volume("2", "data", "a2"), volume("3", "x", "a1")],
  } as unknown as Parameters<typeof sourceOf>[2];
  expect(sourceOf("data", "app", all)?.id).toBe("2");
  expect(sourceOf("data", "worker", all)?.id).toBe("1");
  expect(sourceOf("data", "web", all)).toBeUndefined();
});

describe("someone who deploys", { tags: "again" }, () => {
  const cli = freshCli();

  test("a preview, looks at it, and destroys it, while the app keeps its machine and its data", async () => {
    expect(await cli.deploy(FILE)).toMatchObject({ code: 0 });
    const [production] = (await cli.json("machine list --app shop")).document;
    const deployed = await cli.deploy(FILE, "--preview pr-12 --ttl 2h");
    expect(deployed.stderr).toMatch(
      /^App pr-12--shop is preview pr-12 of shop\. It is destroyed 20\S+, with its machines/,
    );
    expect(deployed.stdout).toContain("App pr-12--shop answers at http://pr-12--shop.localhost:8080/");
    const [machine] = (await cli.json("machine list --app pr-12--shop")).document;
    expect(machine.config.services[0]).toMatchObject({ autostop: "suspend", min_machines_running: 0 });
    expect(machine.config.mounts[0].volume).not.toBe(production.config.mounts[0].volume);

    const listed = await cli.hibernaut("previews list --app shop");
    expect(listed.stdout).toMatch(/NAME +APP +MACHINES +DESTROYED IN\npr-12 +pr-12--shop +1 +(120 min|2 h)\n/);
    expect((await cli.hibernaut("apps show pr-12--shop")).stdout).toMatch(/Preview of +shop\nDestroyed +in /);
    expect((await cli.hibernaut("apps list -o wide")).stdout).toMatch(/pr-12--shop .* shop /);
    // The preview is not in the way of commands that need no app where there is only one.
    expect(await cli.hibernaut("secrets list")).toMatchObject({ code: 0 });

    const asked = await cli.hibernaut("previews destroy pr-12 --app shop");
    expect(asked).toMatchObject({ code: 2 });
    expect(asked.stderr).toContain("Together with app pr-12--shop, these will be deleted permanently:");
    expect(await cli.hibernaut("previews destroy pr-12 --app shop --yes")).toMatchObject({
      code: 0,
      stdout: "Destroyed preview pr-12 of shop.\n",
    });
    expect((await cli.json("apps list")).document).toMatchObject([{ name: "shop" }]);
    expect((await cli.json("machine list --app shop")).document).toMatchObject([{ id: production.id }]);
    expect(await cli.hibernaut("previews destroy pr-12 --app shop")).toMatchObject({ code: 1 });
  });

  test("a preview that someone destroys meanwhile is told so, and nothing of it is left", async () => {
    const release = cli.server.world.holdBoots();
    const deployed = cli.deploy(FILE, "--preview pr-12");
    const machines = () => cli.server.world.store.machines.list();
    await expect.poll(() => machines().at(-1)?.state).toBe("starting");
    const destroyed = cli.hibernaut("previews destroy pr-12 --app shop --yes");
    await expect.poll(() => machines().at(-1)?.state).not.toBe("starting");
    release();
    expect(await destroyed).toMatchObject({ code: 0 });
    expect(await deployed).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /Error: Preview pr-12--shop was destroyed while it was deployed, and nothing of it is left\..* deploy it again\.\n$/,
      ),
    });
    expect((await cli.json("apps list")).document).toMatchObject([{ name: "shop" }]);
    expect(machines().filter(({ state }) => state !== "destroyed")).toEqual([]);
  });

  test("with copies of what production has, which is refused while production runs", async () => {
    await cli.deploy(FILE);
    await cli.hibernaut("secrets set API_KEY=real --app shop --yes");
    const [{ id }] = (await cli.json("machine list --app shop")).document;
    const refused = await cli.deploy(FILE, "--preview pr-12 --copy-volumes");
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toMatch(/Error: Volume vol_\w+ cannot be copied: its machine \w+ is running/);
    await cli.hibernaut(`machine suspend ${id} --app shop`);
    const deployed = await cli.deploy(FILE, "--preview pr-12 --copy-volumes --copy-secrets");
    expect(deployed.stderr).toMatch(
      /It has the secrets of shop[\s\S]*Copied volume vol_\w+ \(data\) of shop to the preview\./,
    );
    expect(deployed).toMatchObject({ code: 0 });
    expect((await cli.json("secrets list --app pr-12--shop")).document).toMatchObject([{ name: "API_KEY" }]);
    expect((await cli.json("volumes list --app pr-12--shop")).document).toMatchObject([
      { attached_machine_id: expect.any(String) },
    ]);
    const again = await cli.deploy(FILE, "--preview pr-12 --copy-volumes");
    expect(again.stderr).toContain("The preview has a volume data already, which stays as it is.");
    expect((await cli.json("volumes list --app pr-12--shop")).document).toHaveLength(1);
    expect((await cli.json(`machine status ${id} --app shop`)).document).toMatchObject({ state: "suspended" });
  });

  test("in a CI job, with a token that reaches nothing but previews", async () => {
    await cli.deploy(FILE);
    const made = await cli.hibernaut("tokens create ci --scope deploy --app shop --previews");
    const ci = { HIBERNAUT_API_TOKEN: made.stdout.trim() };
    expect((await cli.hibernaut("tokens list")).stdout).toContain("previews of shop");
    // Secrets of its own, before the first deploy.
    expect(await cli.hibernaut("previews create pr-12 --app shop", ci)).toMatchObject({ code: 0 });
    expect(await cli.hibernaut("secrets set KEY=test --app pr-12--shop --yes", ci)).toMatchObject({ code: 0 });
    const { code, document } = await deployed("--preview pr-12", ci);
    expect(code).toBe(0);
    expect(document.preview).toMatchObject({ name: "pr-12--shop", urls: ["http://pr-12--shop.localhost:8080/"] });
    for (const words of ["--preview pr-12 --copy-volumes", "--preview pr-13 --copy-secrets", ""])
      expect(await cli.deploy(FILE, words, ci), words).toMatchObject({ code: 1, stdout: "" });
    expect(await cli.hibernaut("previews destroy pr-12 --yes --app shop", ci)).toMatchObject({ code: 0 });
    expect((await cli.json("apps list")).document).toMatchObject([{ name: "shop" }]);
  });

  const deployed = async (options: string, environment: Record<string, string>) => {
    const { code, stdout } = await cli.deploy(FILE, `${options} --json`, environment);
    return { code, document: JSON.parse(stdout) };
  };

  test.each([
    ["--preview a--b", "contains `--`"],
    ["--preview xn", "two characters"],
    ["--ttl 2h", "Add --preview <name>."],
    ["--preview pr-12 --ttl 0", "at least 60s and at most 30d"],
    ["--preview pr-12 --ttl 90d", "at least 60s and at most 30d"],
  ])("%s is told what is wrong, and nothing is made", async (words, why) => {
    const { code, stderr } = await cli.deploy(FILE, words);
    expect(code).toBe(2);
    expect(stderr).toContain(why);
    expect((await cli.json("apps list")).document).toHaveLength(1);
  });
});
