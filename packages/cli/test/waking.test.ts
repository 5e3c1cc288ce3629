/** Commands that need a running machine wake one that sleeps, and say so in its history. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { startCli, type TestCli } from "./helpers.ts";

let cli: TestCli;
let id: string;
beforeEach(async () => {
  cli = await startCli();
  ({ document: { machine_id: id } } = await cli.json(["machine", "run", "app:1", "--port", "8080"]));
});
afterEach(() => cli.close());

const starts = async (): Promise<object[]> =>
  (await cli.json(["machine", "events", id])).document
    .filter(({ type }: { type: string }) => type === "start")
    .map(({ details }: { details: object }) => details);

test("exec wakes a sleeping machine, with progress, and its history says why", async () => {
  await cli.hibernaut(["machine", "suspend", id]);
  const { code, stdout, stderr } = await cli.hibernaut(["machine", "exec", id, "--", "echo", "hello"]);
  expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: "hello\n" });
  expect(await starts()).toEqual([{ reason: "exec" }]);
  expect((await cli.hibernaut(["machine", "exec", id, "--", "echo", "again"])).stdout).toBe("again\n");
  expect(await starts(), "one that runs is not started").toHaveLength(1);
});

test("with --no-wake, it is refused, with advice that works", async () => {
  await cli.hibernaut(["machine", "stop", id]);
  const refused = await cli.hibernaut(["machine", "exec", id, "--no-wake", "--", "echo", "hello"]);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/is stopped\. Start it, then run the command/) });
  expect(await starts()).toEqual([]);
  await cli.hibernaut(["machine", "start", id]);
  expect((await cli.hibernaut(["machine", "exec", id, "--no-wake", "--", "echo", "hello"])).stdout).toBe("hello\n");
});

test("a machine that crashes when it is woken gives its reason instead of a command", async () => {
  await cli.hibernaut(["machine", "stop", id]);
  cli.server.world.host.crashing.add(id);
  const { code, stderr } = await cli.hibernaut(["machine", "exec", id, "--", "echo", "hello"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/crashed/);
});
