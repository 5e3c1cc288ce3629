/**
 * Machines and volumes by what people call them: real machines behind the API, on a fake host.
 *
 * @module-tag again
 */
import { HibernautClient } from "@hibernaut/client";
import { expect, test, vi } from "vitest";
import { Context } from "../src/context.ts";
import { chosenMachine } from "../src/which-machine.ts";
import { freshCli } from "./helpers.ts";

const cli = freshCli();

test("a machine answers to its name and to the beginning of its id, and replies have the whole id", async () => {
  const id = await cli.run("--name web");
  await cli.run("--name worker");
  for (const word of ["web", id.slice(0, 6), id])
    expect((await cli.json(`machine status ${word}`)).document).toMatchObject({ id, name: "web" });
  expect(await cli.hibernaut("machine suspend web")).toMatchObject({
    code: 0,
    stdout: `Machine ${id} is suspended.\n`,
  });
  expect(await cli.json(`machine start ${id.slice(0, 6)}`)).toMatchObject({
    code: 0,
    document: [{ machine_id: id, ok: true, state: "running" }],
  });
  expect((await cli.json("machine update web --memory 512mb")).document).toMatchObject({ id });
  expect((await cli.hibernaut("machine events web --limit 1")).stdout).toContain("EVENT");
  const lines = (await cli.hibernaut("logs -m web --json")).stdout.trim().split("\n");
  expect(new Set(lines.map((line) => JSON.parse(line).machine))).toEqual(new Set([id]));
  // The wait for its end continues by its id, when no machine has the name any more.
  expect(await cli.hibernaut("machine destroy web --force")).toMatchObject({
    code: 0,
    stdout: `Destroyed machine ${id}.\n`,
  });
  expect(await cli.hibernaut("machine status web")).toMatchObject({ code: 1 });
});

test("the only machine of an app need not be named, except to destroy it", async () => {
  const none = await cli.hibernaut("machine status");
  expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining("App shop has no machines. Create one:") });
  const id = await cli.run();
  expect((await cli.json("machine status")).document).toMatchObject({ id });
  for (const verb of ["suspend", "start", "restart", "stop"])
    expect(await cli.json(`machine ${verb}`)).toMatchObject({ code: 0, document: [{ machine_id: id }] });
  expect(await cli.json("machine wait --state stopped")).toMatchObject({ document: [{ machine_id: id }] });
  expect((await cli.json("machine update --yes")).document).toMatchObject({ id });
  expect((await cli.hibernaut("machine events")).code).toBe(0);
  expect((await cli.hibernaut("machine list -q")).stdout).toBe(`${id}\n`);
  expect(await cli.hibernaut("machine destroy")).toMatchObject({ code: 2 });
});

test("with several machines and no name, all are listed", async () => {
  const [web, worker] = [await cli.run("--name web"), await cli.run("--name worker")];
  await cli.hibernaut("machine suspend worker");
  const { code, stderr } = await cli.hibernaut("machine restart");
  expect(code).toBe(2);
  expect(stderr).toContain("Error: App shop has 2 machines:\n");
  expect(stderr).toMatch(new RegExp(`^ {2}${web} +web +running$`, "m"));
  expect(stderr).toMatch(new RegExp(`^ {2}${worker} +worker +suspended$`, "m"));
});

test("exec takes the only machine, or the one before the dashes", async () => {
  const id = await cli.run("--name web");
  const exec = (words: string) => cli.hibernaut(`machine exec --no-wake ${words}`);
  await cli.hibernaut("machine stop");
  // It is refused for its state: so the machine was found.
  for (const words of ["-- ls", "web -- ls", "web ls", `${id.slice(0, 3)} -- ls -l`])
    expect((await exec(words)).stderr).toContain(`Machine ${id} `);
  expect((await exec("web")).code).toBe(2);
  expect((await exec("")).code).toBe(2);
  expect((await exec("other -- ls")).code).toBe(1);
});

test("a volume answers to its name, and to the beginning of its id", async () => {
  const { document: volume } = await cli.json("volumes create data");
  for (const word of ["data", volume.id.slice(0, 8), volume.id.slice(4, 9)])
    expect((await cli.json(`volumes show ${word}`)).document).toMatchObject({ id: volume.id });
  const { document: second } = await cli.json("volumes create data");
  expect(await cli.hibernaut("volumes destroy data --yes")).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(new RegExp(`\`data\` matches 2 volumes: ${volume.id} \\(data\\), ${second.id}`)),
  });
});

test("a console asks which of several machines is meant, by number or by name", async () => {
  const [web, worker] = [await cli.run("--name web"), await cli.run("--name worker")];
  const context = new Context({ app: "shop" });
  vi.spyOn(context, "client").mockResolvedValue(
    new HibernautClient({ apiUrl: cli.server.url, token: cli.server.token }),
  );
  const choose = async (typed: string) => {
    let asked = "";
    const answer = async (question: string) => ((asked = question), typed);
    return { chosen: await chosenMachine(context, undefined, answer), asked };
  };
  const { chosen, asked } = await choose("2\n");
  expect(chosen.id).toBe(asked.indexOf(web) < asked.indexOf(worker) ? worker : web);
  expect(asked).toMatch(/^App shop has 2 machines:\n1 +\w+ +\S+ +running\n2 [^]*\nWhich one\? $/);
  expect((await choose("web")).chosen.id).toBe(web);
  await expect(choose("")).rejects.toThrow("No machine was chosen.");
  await expect(choose("nobody")).rejects.toThrow(/no machine/i);
});
