/** `hibernaut deploy` with something to build, against the real API and platform on a fake host. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { useTempFolder } from "../../../platform/test/helpers/temp.ts";
import { useCli } from "../helpers.ts";
import { Project } from "./project.ts";

const cli = useCli();
const temp = useTempFolder("deploy");
let app: Project;
beforeAll(() => {
  app = new Project(temp.path, "app");
  app.write("server.js", "");
  app.write("hibernaut.toml", 'app = "built"\n[http_service]\n  internal_port = 3000\n');
});
const deploy = (options = "") =>
  cli.hibernaut(`deploy --config ${app.path}/hibernaut.toml ${options}`, {
    HIBERNAUT_APP: "",
    HIBERNAUT_BUILD_DIR: app.builds,
  });
const releases = async () => (await cli.json("releases --app built")).document;

test("a build that fails deploys nothing: no app, no release", async () => {
  app.write("package.json", { scripts: { start: "node server.js", build: "echo sorry; exit 1" } });
  const failed = await deploy();
  expect(failed).toMatchObject({ code: 1, stdout: "" });
  expect(failed.stderr).toMatch(
    /Running npm run build\.\.\.[^]*Error: `npm run build` failed with exit code 1[^]*sorry/,
  );
  expect((await cli.hibernaut("apps list")).stdout).not.toContain("built");
});

test("a deploy without an image builds the directory, and one without changes keeps the machines", async () => {
  app.write("package.json", { scripts: { start: "node server.js" } });
  const first = await deploy("--json");
  expect(first.code, first.stderr).toBe(0);
  const document = JSON.parse(first.stdout) as { image: { ref: string }; machines: { action: string }[] };
  expect(document.image.ref).toMatch(new RegExp(`^oci:${app.home}/layout:b[0-9a-f]{12}$`));
  expect(document.machines).toMatchObject([{ action: "created" }]);
  const second = await deploy();
  expect(second.stdout).toContain("1 kept");
  expect(second.stderr).toMatch(/^Packing Node [\d.]+\.\.\.\nPacking the app\.\.\.\n/);
  expect(await releases()).toHaveLength(2);
  const built = JSON.parse((await deploy("--build-only --json")).stdout) as { image: string };
  expect(built).toMatchObject({ image: document.image.ref, builder: "node" });
  expect((await deploy("--build-only")).stdout).toBe(`${built.image}\n`);
  expect(app.opened(built as never).settings.Env).toContain("PORT=3000");
  expect(await releases()).toHaveLength(2);
});

test("options that do not fit are refused", async () => {
  expect(await deploy("--build-only --image x")).toMatchObject({ code: 2 });
  expect((await deploy("--build-secret npm=abc")).stderr).toContain("id=npm,src=token.txt");
  app.write("named.toml", 'app = "built"\n[build]\n  image = "redis:7"\n');
  const named = await cli.hibernaut(`deploy --config ${app.path}/named.toml --build-only`);
  expect(named.stderr).toContain("There is nothing to build");
  mkdirSync(join(temp.path, "empty"));
  execFileSync("cp", [join(app.path, "hibernaut.toml"), join(temp.path, "empty")]);
  const empty = await cli.hibernaut(`deploy --config ${temp.path}/empty/hibernaut.toml`);
  expect(empty.stderr).toMatch(/has nothing that an image can be built from\. Add a Dockerfile/);
});
