/**
 * @module-tag again
 */
import { expect, test } from "vitest";
import { useCli } from "./helpers.ts";

const cli = useCli();

test("images are pulled with lines of progress, listed and pruned", async () => {
  const pulled = await cli.hibernaut("images pull me/app:1");
  expect(pulled).toMatchObject({ code: 0, stdout: expect.stringMatching(/^me\/app:1 is ready: sha256:/) });
  expect(pulled.stderr).toMatch(/^Preparing me\/app:1\.\.\.\nDownloading 50%, 1\.0 MB of 1\.9 MB\.\.\.\n/);
  expect((await cli.hibernaut("images list")).stdout).toMatch(/^IMAGE .*\nme\/app:1 .* no /);
  expect(await cli.hibernaut("images prune")).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Deleted 1 image, freed /),
  });
  expect((await cli.hibernaut("images list")).stdout).toBe("No images.\n");
});

test("with --json progress is a JSON object a line, and the result one document", async () => {
  const { stdout, stderr } = await cli.hibernaut("images pull me/app:1 --json");
  expect(JSON.parse(stdout)).toMatchObject({ ref: "me/app:1", digest: expect.any(String) });
  const lines = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { step: string });
  expect(lines.map(({ step }) => step)).toEqual(["resolve", "download", "download"]);
});

test("an image that is missing or damaged says so, before a machine is made of it", async () => {
  expect(await cli.hibernaut("images pull missing")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Error: There is no image missing."),
  });
  expect(await cli.hibernaut("machine run damaged")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Error: The image is damaged. Push it again."),
  });
  expect(cli.server.world.store.machines.list()).toEqual([]);
});

test("a login comes over standard input, is listed without its password, and goes", async () => {
  const login = (input: string, option = "--password-stdin") =>
    cli.hibernaut(`registry login ghcr.io -u me ${option}`, {}, input);
  expect(await login("wrong\n")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("does not take the login"),
  });
  expect(await login("right\n")).toEqual({ code: 0, stdout: "Logged in to ghcr.io as me.\n", stderr: "" });
  expect(await login("")).toMatchObject({ code: 2 });
  expect(await login("right", "")).toMatchObject({ code: 2 });
  expect((await cli.hibernaut("registry list")).stdout).toBe("REGISTRY  USER\nghcr.io   me\n");
  expect(await cli.hibernaut("registry logout ghcr.io")).toMatchObject({ code: 0 });
  expect(await cli.hibernaut("registry logout ghcr.io")).toMatchObject({ code: 1 });
});
