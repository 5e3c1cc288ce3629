/**
 * Commands that need a running machine wake one that sleeps, and say so in its history.
 *
 * @module-tag again
 */
import { beforeEach, expect, test } from "vitest";
import { freshCli } from "./helpers.ts";

const cli = freshCli();
let id: string;
beforeEach(async () => {
  id = await cli.run();
});

/** Runs a command. On the fake host, every command ends at once. */
async function exec(option = "") {
  const { code, stdout } = await cli.hibernaut(`machine exec ${id} --json ${option} -- true`);
  return { code, document: JSON.parse(stdout) as object };
}

const starts = async (): Promise<object[]> =>
  (await cli.json(`machine events ${id}`)).document
    .filter(({ type, from }: { type: string; from: string }) => type === "start" && from !== "created")
    .map(({ details }: { details: object }) => details);

test("exec wakes a sleeping machine, and its history says why", async () => {
  await cli.hibernaut(`machine suspend ${id}`);
  expect(await exec()).toMatchObject({ code: 0, document: { exit_code: 0 } });
  expect(await starts()).toEqual([{ reason: "exec" }]);
  expect(await exec()).toMatchObject({ code: 0 });
  expect(await starts(), "one that runs is not started").toHaveLength(1);
});

test("with --no-wake, it is refused, with advice that works", async () => {
  await cli.hibernaut(`machine stop ${id}`);
  const message = expect.stringMatching(/is stopped\. Start it, then run the command/);
  expect(await exec("--no-wake")).toMatchObject({ code: 1, document: { message } });
  expect(await starts()).toEqual([]);
  await cli.hibernaut(`machine start ${id}`);
  expect(await exec("--no-wake")).toMatchObject({ code: 0 });
});

test("a machine that crashes when it is woken gives its reason instead of a command", async () => {
  await cli.hibernaut(`machine stop ${id}`);
  cli.server.world.host.crashing.add(id);
  expect(await exec()).toMatchObject({ code: 1, document: { message: expect.stringMatching(/crashed/) } });
});
