/** Users are told before an idle machine does something else than the suspend that they asked for. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { readAppFile } from "../src/appfile/read.ts";
import { startCli, type TestCli } from "./helpers.ts";

// Each test starts several processes, and the host may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let cli: TestCli;
beforeEach(async () => {
  cli = await startCli();
});
afterEach(() => cli.close());

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

async function deploy(text: string) {
  const file = join(await tempFolder("unsuspendable"), "hibernaut.toml");
  await writeFile(file, text);
  return cli.hibernaut(["deploy", "--config", file]);
}

test("deploy warns of a machine that is too large to be suspended, and machine status says what it does instead", async () => {
  const { code, stderr } = await deploy(appFile("4gb"));
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /^Warning: Machine \w{14}: auto_stop_machines is "suspend", but an idle machine is stopped with its files kept, because it cannot be suspended: memory is 4096 MB/m,
  );
  expect((await cli.hibernaut(["machine", "status"])).stdout).toMatch(
    /^when idle +is stopped with its files kept, because it cannot be suspended: memory is 4096 MB/m,
  );
  expect((await cli.json(["machine", "status"])).document.config.keep_layer).toBe(true);
  await cli.hibernaut(["machine", "update", "--autostop-fallback", "off", "--keep-layer", "off"]);
  expect((await cli.hibernaut(["machine", "status"])).stdout).toMatch(/^when idle +keeps running, because/m);
  expect((await cli.json(["machine", "status"])).document.config.keep_layer).toBe(false);
});

test("deploy does not warn of a machine that can be suspended", async () => {
  const { code, stderr } = await deploy(appFile("512mb", 'auto_stop_fallback = "off"'));
  expect(code).toBe(0);
  expect(stderr).not.toContain("Warning");
  const { document } = await cli.json(["machine", "status"]);
  expect(document.config.services[0]).toMatchObject({ autostop: "suspend", autostop_fallback: "off" });
  expect((await cli.hibernaut(["machine", "status"])).stdout).not.toMatch(/^when idle/m);
});

test("an app file that says what to do instead of a suspend that it does not ask for gets a warning", () => {
  const { findings } = readAppFile(appFile("512mb", 'auto_stop_fallback = "off"').replace('"suspend"', '"stop"'));
  expect(findings).toMatchObject([{ severity: "warning", path: "http_service.auto_stop_fallback" }]);
  const wrong = readAppFile(appFile("512mb", 'auto_stop_fallback = "never"'));
  expect(wrong.findings).toMatchObject([{ severity: "error", message: expect.stringContaining("stop, off") }]);
});
