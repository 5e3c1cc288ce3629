/**
 * What there is in all apps, where they answer, and what goes with an app.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { urlsFrom } from "../src/answering.ts";
import { freshCli } from "./helpers.ts";

const cli = freshCli();

test("ps lists the machines of all apps, or of one", async () => {
  expect((await cli.hibernaut("ps")).stdout).toMatch(/^There are no machines yet\./);
  await cli.hibernaut("apps create blog");
  const web = await cli.run("--name web --memory 512mb");
  const post = await cli.run("--name post --app blog");
  const { stdout } = await cli.hibernaut("ps");
  expect(stdout).toMatch(/^APP +ID +NAME +STATE +MEMORY +IMAGE +UPDATED\n/);
  expect(stdout).toMatch(new RegExp(`^shop +${web} +web +running +512 MB +app:1 +\\d+ s ago$`, "m"));
  expect(stdout).toMatch(new RegExp(`^blog +${post} +post +running +256 MB`, "m"));
  // HIBERNAUT_APP is set: it does not narrow what is asked of all.
  expect((await cli.hibernaut("ps -q")).stdout.split("\n").filter(Boolean).toSorted()).toEqual([web, post].toSorted());
  expect((await cli.json("ps --app blog")).document).toMatchObject([{ id: post, app_name: "blog" }]);
});

test("status sums the platform up", async () => {
  await cli.run();
  const asleep = await cli.run("--memory 512");
  await cli.hibernaut(`machine suspend ${asleep}`);
  const { document } = await cli.json("status");
  expect(document).toMatchObject({
    api_url: cli.server.url,
    proxy_url: "http://127.0.0.1:8080",
    version: "0.1.0",
    accelerator: "fake",
    network: "user",
    apps: 1,
    machines: { running: 1, suspended: 1 },
    running_memory_mb: 256,
    snapshots: 1,
  });
  expect(document.snapshot_bytes).toBeGreaterThan(0);
  const { stdout } = await cli.hibernaut("status");
  expect(stdout).toMatch(/^API +http:\/\/127\.0\.0\.1:\d+\nproxy +http:\/\/127\.0\.0\.1:8080\nversion +0\.1\.0\n/);
  expect(stdout).toMatch(/^machines +1 running, 1 suspended$/m);
});

test("status and top count machines that are kept warm", async () => {
  const warm = await cli.run("--keep-warm 5m");
  await cli.run();
  await cli.hibernaut(`machine suspend ${warm}`);
  expect((await cli.json("status")).document).toMatchObject({ warm: 1, machines: { running: 1, suspended: 1 } });
  expect((await cli.hibernaut("status")).stdout).toMatch(
    /^memory +256 MB in running machines; 1 sleeping machine is kept warm, see hibernaut top$/m,
  );
  const { document } = await cli.json("top");
  expect(document.find(({ machine_id: id }: { machine_id: string }) => id === warm)).toMatchObject({
    state: "suspended",
    process: { resident_bytes: expect.any(Number) },
  });
});

test("an update says that it costs a sleeping machine its snapshot", async () => {
  const id = await cli.run();
  expect((await cli.hibernaut(`machine update ${id} --keep-warm 0`)).stdout).not.toContain("snapshot");
  await cli.hibernaut(`machine suspend ${id}`);
  expect(await cli.hibernaut(`machine update ${id} --keep-warm 10s`)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^Machine \w+ is suspended, version \w+\. Its snapshot was of the version before and is discarded: the next start is a cold start\.\n$/,
    ),
  });
});

test("what the platform would refuse is refused before it is asked, in the words of the options", async () => {
  expect(await cli.hibernaut("machine run app:1 --port 80 --keep-warm 25h")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Use at least 0 seconds and at most 24h, in whole seconds or with the units s, m"),
  });
});

test("apps create and machine run say where the app answers", async () => {
  const created = await cli.hibernaut("apps create blog");
  expect(created.stdout).toContain("\nIt will answer at http://blog.localhost:8080/\n");
  const served = await cli.hibernaut("machine run app:1 --port 8080 --app blog");
  expect(served.stdout).toMatch(/^Machine \w+ is running\.\nApp blog answers at http:\/\/blog\.localhost:8080\/\n$/);
  // Nothing of it is reached without a port.
  expect((await cli.hibernaut("machine run app:1")).stdout).toMatch(/^Machine \w+ is running\.\n$/);
});

test("from another host, names under localhost are not the platform's", () => {
  const urls = ["https://www.example.com/", "http://shop.localhost:8080/"];
  for (const near of ["http://127.0.0.1:4280", "http://localhost:4280/", "http://[::1]:4280"])
    expect(urlsFrom(near, { urls })).toEqual(urls);
  expect(urlsFrom("https://hibernaut.example.com", { urls })).toEqual(["https://www.example.com/"]);
});

test("an app goes with its volumes only when that is agreed to", async () => {
  const { document: volume } = await cli.json("volumes create data");
  await cli.json(`volumes snapshots create ${volume.id}`);
  const machine = await cli.run("--name web --volume data:/data");
  const plain = await cli.hibernaut("apps destroy shop");
  expect(plain).toMatchObject({ code: 1, stderr: expect.stringContaining("or add --force") });
  const refused = await cli.hibernaut("apps destroy shop --force");
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toMatch(
    new RegExp(
      `^Error: Nothing was destroyed\\. Together with app shop, these will be deleted permanently:\\n  machine ${machine} \\(web\\), running\\n  volume ${volume.id} \\(data\\), 1 GB, [\\d.]+ MB used, 1 snapshot\\(s\\)\\n`,
    ),
  );
  expect((await cli.json("machine status")).document).toMatchObject({ id: machine, state: "running" });
  const done = await cli.hibernaut("apps destroy shop --force --yes");
  expect(done).toMatchObject({ code: 0, stdout: "Deleted app shop.\n" });
  expect(cli.server.world.store.volumes.list()).toEqual([]);
});

test("in a script an app without volumes goes with --force alone", async () => {
  await cli.run();
  expect(await cli.hibernaut("apps destroy shop --force")).toMatchObject({
    code: 0,
    stdout: "Deleted app shop.\n",
    stderr: "",
  });
});

test("an app that there is not is not offered to be created when it should go", async () => {
  for (const option of ["", "--force"])
    expect(await cli.hibernaut(`apps destroy nosuch ${option}`)).toMatchObject({
      code: 1,
      stderr: "Error: There is no app nosuch. See `hibernaut apps list`.\n",
    });
  const { stderr } = await cli.hibernaut("machine run app:1 --app nosuch");
  expect(stderr).toContain("Create it with `hibernaut apps create nosuch`.");
});

test("adding a hostname that the app already has is fine, and another app's is refused", async () => {
  const add = (app: string) => cli.hibernaut(`hostnames add www.example.com --app ${app}`);
  await cli.hibernaut("apps create blog");
  expect(await add("shop")).toMatchObject({ code: 0 });
  expect(await add("shop")).toMatchObject({ code: 0, stdout: "App shop answers for www.example.com.\n" });
  expect(await add("blog")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("www.example.com already belongs to app shop."),
  });
});
