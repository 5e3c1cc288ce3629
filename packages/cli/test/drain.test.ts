/**
 * `hibernaut drain` and `undrain`, as an operator uses them before work on the host.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { freshCli } from "./helpers.ts";

const cli = freshCli();

test("drain stops new work, status says so, and undrain ends it", async () => {
  const id = await cli.run("--name web");
  const drained = await cli.hibernaut("drain");
  expect(drained).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Draining: .*`hibernaut undrain`\.\n$/) });
  expect((await cli.hibernaut("status")).stdout).toMatch(/^drain +no machine is started or created/m);
  const refused = await cli.hibernaut("machine run app:1");
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^Error: The platform is draining since .*end the drain with `hibernaut undrain`\.$/m);
  expect((await cli.json(`machine status ${id}`)).document.state).toBe("running");
  expect((await cli.hibernaut("undrain")).stdout).toBe("The drain is over.\n");
  expect((await cli.hibernaut("undrain")).stdout).toBe("The platform is not draining.\n");
  await cli.run("--name second");
});

test("drain --suspend tells of each machine in a pipe, and reports those that it leaves", async () => {
  const web = await cli.run("--name web");
  const big = await cli.run("--name big --memory 4gb");
  const { code, stdout, stderr } = await cli.hibernaut("drain --suspend --timeout 1m");
  expect(stdout).toMatch(
    new RegExp(
      `^Drained: 1 machine suspended, 1 left running\\.\n  shop/big \\(${big}\\) is running: it cannot be suspended: memory is 4096 MB`,
    ),
  );
  expect(code, "a machine that cannot be suspended was known before").toBe(0);
  expect(stderr).toContain(`shop/web (${web}): suspended\n`);
  expect(stderr).toContain(`shop/big (${big}): left: it cannot be suspended`);
  expect((await cli.hibernaut("undrain")).stdout).toBe("The drain is over. Resuming 1 machine that it suspended.\n");
  await cli.hibernaut(`machine wait ${web} --state running`);
  expect((await cli.json(`machine status ${web}`)).document.last_boot.kind).toBe("resume");
});

test("drain --suspend --json prints one document, and each change as a line on standard error", async () => {
  const web = await cli.run("--name web");
  const { code, stdout, stderr } = await cli.hibernaut("drain --suspend --json");
  expect({ code, document: JSON.parse(stdout) }).toMatchObject({
    code: 0,
    document: { state: "drained", suspend: true, machines: [{ machine_id: web, result: "suspended", reason: null }] },
  });
  const changes = stderr.trim().split("\n");
  expect(JSON.parse(changes.at(-1) ?? "")).toMatchObject({ app_name: "shop", name: "web", result: "suspended" });
});

test("what does not make it in time is a failure that says how to try again", async () => {
  await cli.run("--name web");
  const { promise, resolve } = Promise.withResolvers<void>();
  cli.server.world.host.hold.capture = promise;
  const { code, stderr } = await cli.hibernaut("drain --suspend --timeout 1");
  expect({ code, stderr }).toEqual({
    code: 124,
    stderr: expect.stringMatching(/^Error: Not all machines could be suspended\. Run `hibernaut drain --suspend`/m),
  });
  resolve();
});

test.each([
  ["drain --timeout 30s", /--timeout limits how long suspends may take\. Add --suspend/],
  ["drain --suspend --timeout soon", /Use at least 1 second, in whole seconds/],
  ["drain --suspend --timeout 0", /Use at least 1 second/],
  ["drain --suspend --timeout 2h", /`timeout` must be <= 3600/],
  ["drain now", /too many arguments|does not take|takes no/i],
])("%s is refused with what would be right", async (words, message) => {
  const { code, stderr } = await cli.hibernaut(words);
  expect(stderr).toMatch(message);
  expect(code).toBe(2);
  expect((await cli.json("status")).document.draining).toBe(false);
});
