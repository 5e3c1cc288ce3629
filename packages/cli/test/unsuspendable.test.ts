/** Users are told before an idle machine does something else than the suspend that they asked for. */
import { expect, test } from "vitest";
import { readAppFile } from "../src/appfile/read.ts";
import { freshCli } from "./helpers.ts";

const cli = freshCli();

const appFile = (memory: string, more = "") => `
app = "shop"
keep_layer = true
[build]
  image = "app:1"
[http_service]
  internal_port = 8080
  auto_stop_machines = "suspend"
  ${more}
[[vm]]
  memory = "${memory}"
`;

test("deploy warns of a machine that is too large to be suspended, and machine status says what it does instead", async () => {
  const { code, stderr } = await cli.deploy(appFile("4gb"));
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /^Warning: Machine \w{14}: auto_stop_machines is "suspend", but an idle machine is stopped with its files kept, because it cannot be suspended: memory is 4096 MB/m,
  );
  expect((await cli.hibernaut("machine status")).stdout).toMatch(
    /^when idle +is stopped with its files kept, because it cannot be suspended: memory is 4096 MB/m,
  );
  expect((await cli.json("machine status")).document.config.keep_layer).toBe(true);
  await cli.hibernaut("machine update --autostop-fallback off --keep-layer off");
  expect((await cli.hibernaut("machine status")).stdout).toMatch(/^when idle +keeps running, because/m);
  expect((await cli.json("machine status")).document.config.keep_layer).toBe(false);
});

test("deploy does not warn of a machine that can be suspended", async () => {
  const { code, stderr } = await cli.deploy(appFile("512mb", 'auto_stop_fallback = "off"'));
  expect(code).toBe(0);
  expect(stderr).not.toContain("Warning");
  const { document } = await cli.json("machine status");
  expect(document.config.services[0]).toMatchObject({ autostop: "suspend", autostop_fallback: "off" });
  expect((await cli.hibernaut("machine status")).stdout).not.toMatch(/^when idle/m);
});

test("an app file that says what to do instead of a suspend that it does not ask for gets a warning", () => {
  const { findings } = readAppFile(appFile("512mb", 'auto_stop_fallback = "off"').replace('"suspend"', '"stop"'));
  expect(findings).toMatchObject([{ severity: "warning", path: "http_service.auto_stop_fallback" }]);
  const wrong = readAppFile(appFile("512mb", 'auto_stop_fallback = "never"'));
  expect(wrong.findings).toMatchObject([{ severity: "error", message: expect.stringContaining("stop, off") }]);
});
