/**
 * `machine run --rm`: the machine is gone after its app, or after a stop.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { useCli } from "./helpers.ts";

const cli = useCli();

test("--rm destroys the machine when it is stopped, which `stop` says, and does not restart its app", async () => {
  const { document } = await cli.json("machine run --rm app:1 --app shop");
  expect(document).toMatchObject({ state: "running", config: { auto_destroy: true, restart: { policy: "no" } } });
  const { stdout } = await cli.hibernaut(`machine stop ${document.id} --app shop`);
  expect(stdout).toBe(`Machine ${document.id} is destroyed.\n`);
});

test("a restart policy of one's own stays, and what --rm contradicts is refused", async () => {
  const { document } = await cli.json("machine run --rm app:1 --app shop --restart always");
  expect(document).toMatchObject({ config: { auto_destroy: true, restart: { policy: "always" } } });
  for (const wrong of ["app:1 --auto-destroy off", "--template ready"])
    expect(await cli.hibernaut(`machine run --rm ${wrong} --app shop`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--rm sets --auto-destroy on"),
    });
});
