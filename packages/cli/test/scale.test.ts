/**
 * Scaling an app whose machines have data, as its owner does it.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { freshCli } from "./helpers.ts";

const cli = freshCli();
const machines = async (): Promise<string[]> =>
  (await cli.hibernaut("machine list -q")).stdout.split("\n").filter(Boolean);

test("up and down again: the machine with the data stays, and each step says what it does", async () => {
  const original = await cli.run("--volume data:/data");
  const [first] = cli.server.platform.volumes.list("shop");
  const up = await cli.hibernaut("scale count 2");
  const copy = (await machines()).find((id) => id !== original) ?? "";
  const second = cli.server.platform.volumes.list("shop").find(({ id }) => id !== first?.id);
  expect(up.stdout).toBe(
    `Created machine ${copy}.\nIts volume ${second?.id} (data) is new and empty: machines do not share volumes.\n`,
  );
  // The original sleeps, as one that nobody asks for a minute does.
  await cli.hibernaut(`machine suspend ${original}`);

  const refused = await cli.hibernaut("scale count 1");
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toMatch(
    new RegExp(
      `^Error: Nothing was destroyed\\. This machine will be destroyed:\\n  ${copy} \\S+, running, with volume ${second?.id} \\(data, 1 GB, [\\d.]+ MB used\\)\\nTheir volumes are kept, without a machine\\. Add --yes to confirm\\.\\n$`,
    ),
  );
  expect((await machines()).toSorted()).toEqual([copy, original].toSorted());

  const down = await cli.hibernaut("scale count 1 --yes");
  expect(down).toMatchObject({ code: 0 });
  expect(down.stdout).toContain(`Destroyed machine ${copy}.\nIts volume ${second?.id} (data, 1 GB, `);
  expect(down.stdout).toContain(`hibernaut volumes destroy ${second?.id} --app shop\n`);
  expect(await machines()).toEqual([original]);

  // The one that was left is taken again, and that is said too.
  const again = await cli.hibernaut("scale count 2");
  expect(again.stdout).toContain(`It has volume ${second?.id} (data), which no machine was using, with its data.\n`);
});

test("memory that no machine can have is refused before anything is announced", async () => {
  const id = await cli.run();
  for (const size of ["64mb", "64gb"])
    expect(await cli.hibernaut(`scale memory ${size}`)).toMatchObject({
      code: 2,
      stdout: "",
      stderr: `Error: \`${size}\` is not valid. Use at least 128 MB and at most 32768 MB, in whole megabytes, as in 512, 512mb or 1gb.\n`,
    });
  expect((await cli.json(`machine status ${id}`)).document.config.guest?.memory_mb ?? 256).toBe(256);
});

test("without volumes the newest go, whatever sleeps", async () => {
  const original = await cli.run();
  await cli.hibernaut("scale count 3");
  await cli.hibernaut(`machine suspend ${original}`);
  const { code, document } = await cli.json("scale count 1 --yes");
  expect(code).toBe(0);
  expect(document).toHaveLength(2);
  expect(document[0]).toMatchObject({ action: "destroyed", volumes_left: [] });
  expect(await machines()).toEqual([original]);
  // Nothing goes, so nothing is asked.
  expect(await cli.hibernaut("scale count 1")).toMatchObject({
    code: 0,
    stdout: "App shop already has 1 machine(s).\n",
  });
});
