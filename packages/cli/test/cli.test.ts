import { describe, expect, test } from "vitest";
import { useCli } from "./helpers.ts";

const cli = useCli();
const { hibernaut, json } = cli;

describe("apps and tokens", () => {
  test("apps live and go", async () => {
    expect(await hibernaut("apps create blog")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Created app blog."),
    });
    expect(await hibernaut("apps create blog")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "Error: App blog already exists. Choose another name.\n",
    });
    expect(await json("apps create blog")).toMatchObject({
      code: 1,
      document: { error: "already_exists", request_id: expect.any(String) },
    });
    expect((await hibernaut("apps list")).stdout).toMatch(/^NAME +MACHINES +CREATED\n(.*\n)*blog +0 /);
    expect((await json("apps list")).document).toContainEqual(
      expect.objectContaining({ name: "blog", machine_count: 0 }),
    );
    expect(await hibernaut("apps destroy blog")).toMatchObject({ code: 0, stdout: "Deleted app blog.\n" });
  });

  test("limits of an app are set and shown", async () => {
    await hibernaut("apps create notes");
    expect((await hibernaut("apps update notes --max-machines 50")).stdout).toMatch(/machines .* 50 +app/);
    expect((await hibernaut("apps show notes")).stdout).toMatch(/running .* no limit/);
    await hibernaut("apps destroy notes");
  });

  test("a token is made, used, listed, replaced and revoked", async () => {
    const { stdout } = await hibernaut("tokens create ci");
    const token = stdout.trim();
    expect(await hibernaut("tokens list", { HIBERNAUT_API_TOKEN: token })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/ci .*valid/),
    });
    const { id } = cli.server.tokens.list().find(({ name }) => name === "ci") ?? { id: "" };
    expect((await hibernaut(`tokens rotate ${id}`)).stdout).toMatch(/^hib_/);
    expect(await hibernaut(`tokens revoke ${id}`)).toMatchObject({ code: 0 });
    expect(await hibernaut("tokens list", { HIBERNAUT_API_TOKEN: token })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Error: The token is unknown or revoked\./),
    });
  });
});

describe("machines", () => {
  test("go through their life", async () => {
    const id = await cli.run("--name web-1 --autostop suspend --memory 512 -e A=1 -e B=2");
    const { document } = await json(`machine status ${id}`);
    expect(document).toMatchObject({
      id,
      name: "web-1",
      state: "running",
      config: {
        guest: { memory_mb: 512 },
        env: { A: "1", B: "2" },
        services: [{ internal_port: 8080, autostop: "suspend" }],
      },
    });
    expect((await hibernaut(`machine status ${id}`)).stdout).toMatch(/can suspend +yes\n/);
    expect((await hibernaut("machine list")).stdout).toMatch(new RegExp(`${id} +web-1 +running`));
    expect(await hibernaut(`machine suspend ${id}`)).toMatchObject({
      code: 0,
      stdout: `Machine ${id} is suspended.\n`,
      stderr: `Suspending ${id}...\n`,
    });
    expect(await json(`machine wait ${id} --state suspended`)).toMatchObject({
      code: 0,
      document: [{ machine_id: id, ok: true, state: "suspended" }],
    });
    expect(await hibernaut(`machine start ${id}`)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^Machine ${id} is running \\(resumed in \\d+ ms\\)\\.\n$`)),
    });
    expect(await hibernaut(`machine restart ${id}`)).toMatchObject({ code: 0 });
    expect(await hibernaut(`machine destroy ${id}`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("--force"),
    });
    expect(await hibernaut(`machine stop ${id} --no-wait`)).toMatchObject({ code: 0 });
    expect(await hibernaut(`machine wait ${id} --state stopped`)).toMatchObject({ code: 0 });
    expect((await hibernaut(`machine events ${id} --limit 1`)).stdout).toMatch(/halted +stopping -> stopped/);
    expect(await hibernaut(`machine destroy ${id}`)).toMatchObject({
      code: 0,
      stdout: `Destroyed machine ${id}.\n`,
    });
  });

  test("are made without being started, and get a command of their own", async () => {
    const { stdout } = await hibernaut("machine create --image x --json -- node report.js --json");
    expect(JSON.parse(stdout)).toMatchObject({
      state: "created",
      config: { image: "x", init: { cmd: ["node", "report.js", "--json"] } },
    });
  });

  test("are updated: what is named, or nothing if the guest bundle is current", async () => {
    const id = await cli.run("--env A=1");
    const { document: changed } = await json(`machine update ${id} --env B=2 --cpus 2`);
    expect(changed).toMatchObject({
      state: "running",
      config: { image: "app:1", env: { A: "1", B: "2" }, guest: { cpus: 2 } },
    });
    const { code, stdout } = await hibernaut(`machine update ${id} --yes`);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `Machine ${id} is already current: it has the newest guest bundle.\n`,
    });
    expect((await json(`machine status ${id}`)).document).toEqual(changed);
  });

  test("move to a newer guest bundle: a running one now, a suspended one at its next cold start", async () => {
    const { world } = cli.server;
    const id = await cli.run();
    const status = async () => (await hibernaut(`machine status ${id}`)).stdout;
    expect(await status()).toMatch(/guest bundle +bundle-1, current/);
    world.bundleVersion = "bundle-2";
    expect(await status()).toMatch(/guest bundle +bundle-1, older than the current one/);
    const { document: moved } = await json(`machine update ${id} --yes`);
    expect(moved).toMatchObject({ state: "running", guest_bundle: { version: "bundle-2", current: true } });
    await hibernaut(`machine suspend ${id}`);
    world.bundleVersion = "bundle-3";
    const { stdout } = await hibernaut(`machine update ${id} --yes`);
    expect(stdout).toBe(
      `Machine ${id} keeps its snapshot, and moves to the newest guest bundle at its next cold start.\n`,
    );
    expect(await status()).toMatch(/guest bundle +bundle-2, updated at the next cold start/);
    expect((await hibernaut(`machine start ${id}`)).stdout).toMatch(/\(resumed in/);
    await hibernaut(`machine restart ${id}`);
    expect(await status()).toMatch(/guest bundle +bundle-3, current/);
  });

  test("several at once: one that fails does not keep the others from it", async () => {
    const ids = [await cli.run(), await cli.run()];
    const { code, document } = await json(`machine suspend ${ids.join(" ")} 00000000000000`);
    expect(code).toBe(1);
    expect(document).toMatchObject([
      { machine_id: ids[0], ok: true, state: "suspended" },
      { machine_id: ids[1], ok: true, state: "suspended" },
      { machine_id: "00000000000000", ok: false, error: "not_found" },
    ]);
  });

  test("that fail to start say why", async () => {
    cli.server.world.host.faults.boot = new Error("out of memory");
    const { code, stderr } = await hibernaut("machine run app");
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /Error: Machine \w+ could not be started: out of memory\. See `hibernaut machine events \w+ --app shop`\.\n$/,
    );
  });

  test("that crash are told as that, and whether they are started again", async () => {
    const id = await cli.run("--restart no");
    await hibernaut(`machine stop ${id}`);
    cli.server.world.host.crashing.add(id);
    expect((await hibernaut(`machine start ${id}`)).stderr).toMatch(
      /crashed on start: .*\. It will not be restarted\./,
    );
  });

  test("that cannot be suspended are refused with the platform's words", async () => {
    const id = await cli.run("--memory 4096");
    expect((await hibernaut(`machine status ${id}`)).stdout).toMatch(
      /can suspend +no: memory is 4096 MB and must be at most 2048 MB/,
    );
    expect(await hibernaut(`machine suspend ${id}`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`Error: Machine ${id} cannot be suspended: memory is 4096 MB`),
    });
  });

  test("that are not there in time end with 124", async () => {
    const id = await cli.run();
    const { code, stderr } = await hibernaut(`machine wait ${id} --state stopped,suspended --wait-timeout 1`);
    expect(code).toBe(124);
    expect(stderr).toContain(
      `Error: Machine ${id} is not stopped or suspended after 1 s: it is running. See \`hibernaut machine status ${id} --app shop\``,
    );
    const release = cli.server.world.holdBoots();
    expect((await json("machine run app --wait-timeout 1")).code).toBe(124);
    release();
  });
});

test("a program that the image lacks is named", async () => {
  const id = await cli.run();
  const { code, stderr } = await hibernaut(`machine exec ${id} -- no-such-program --version`);
  expect({ code, stderr }).toEqual({
    code: 127,
    stderr: "no-such-program: the command could not be run: No such file or directory\n",
  });
  const whole = await hibernaut(`machine exec ${id} --json -- no-such-program`);
  expect(JSON.parse(whole.stdout)).toMatchObject({ exit_code: 127, stderr });
});

describe("no platform", () => {
  test("that answers: what to do", async () => {
    const { code, stderr } = await hibernaut("apps list", { HIBERNAUT_API_URL: "http://127.0.0.1:1" });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^Error: The platform does not answer at http:\/\/127\.0\.0\.1:1\. Start it with `hibernaut serve`/,
    );
  });

  test("that is known: what to do, also as JSON", async () => {
    const none = { HIBERNAUT_API_URL: "", HIBERNAUT_API_TOKEN: "" };
    expect(await hibernaut("apps list", none)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Error: No platform found/),
    });
    expect(await json("apps list", none)).toMatchObject({ code: 1, document: { error: "unavailable" } });
  });
});

test("serve says in words what it cannot do", async () => {
  const { code, stdout, stderr } = await hibernaut("serve", { HIBERNAUT_API_LISTEN: "nonsense" });
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toBe(
    "Error: HIBERNAUT_API_LISTEN must be host:port, such as 127.0.0.1:8080 or [::1]:8080; port 0 takes any free port.\n",
  );
});
