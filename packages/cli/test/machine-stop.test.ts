/** A stop that says how, from the command line. */
import { expect, test } from "vitest";
import { freshCli } from "./helpers.ts";

const cli = freshCli();

test("a stop and a restart take a signal as kill(1) does, and a time that may be 0", async () => {
  const id = await cli.run("--name web");
  expect(await cli.hibernaut("machine stop web --signal int --timeout 1m")).toMatchObject({ code: 0 });
  expect(await cli.hibernaut("machine start web")).toMatchObject({ code: 0 });
  expect(await cli.hibernaut("restart web --timeout 0")).toMatchObject({ code: 0 });
  const { document } = await cli.json("machine events web --limit 20");
  const details = (document as { type: string; details: object }[]).flatMap((event) =>
    ["stop", "restart"].includes(event.type) ? [event.details] : [],
  );
  expect(details).toEqual([{ timeout: 0 }, { signal: "SIGINT", timeout: 60 }]);

  expect(await cli.hibernaut("machine stop web --signal nothing")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("SIGNOTHING is not a valid signal"),
  });
  for (const wrong of ["301", "6m", "-1", "1.5"])
    expect(await cli.hibernaut(`machine stop web --timeout=${wrong}`), wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("at most"),
    });
  expect((await cli.json(`machine status ${id}`)).document).toMatchObject({ state: "running" });
});
