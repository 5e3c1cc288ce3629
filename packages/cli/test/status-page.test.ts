/**
 * The public status page, turned on and off from the CLI and by an app file.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { freshCli } from "./helpers.ts";

const cli = freshCli();

const shown = async () => (await cli.json("apps show shop")).document.status_page;

test("someone turns the page on and off, and is told where it is", async () => {
  await cli.hibernaut("apps create shop");
  expect(await shown()).toBe(false);
  const on = await cli.hibernaut("apps update shop --status-page on");
  expect(on).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Anyone may see how shop is: http.*\/status\/shop$/m),
  });
  const [url = ""] = /http\S+/.exec(on.stdout) ?? [];
  expect(await (await fetch(url)).text()).toContain("<h1>shop</h1>");
  expect((await cli.hibernaut("apps show shop")).stdout).toContain(url);
  const off = await cli.json("apps update shop --status-page off --max-machines 3");
  expect(off.document).toMatchObject({ status_page: false, limits: { machines: 3 } });
  expect((await fetch(url)).status).toBe(404);
});

test("a deploy does what the app file says, and without the key leaves the page as it is", async () => {
  const deploy = async (key: string) => {
    const { code, stderr } = await cli.deploy(`app = "shop"\n${key}\n[build]\n  image = "app:1"\n`);
    expect(code, stderr).toBe(0);
  };
  await deploy("status_page = true");
  expect(await shown()).toBe(true);
  await deploy("");
  expect(await shown()).toBe(true);
  await deploy("status_page = false");
  expect(await shown()).toBe(false);
});
