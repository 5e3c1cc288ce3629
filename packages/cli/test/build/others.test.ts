/** Static sites, Python and Go. */
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { findTool, libraryPath } from "../../../../scripts/lib/test-tools.mjs";
import { useTempFolder } from "../../../platform/test/helpers/temp.ts";
import { pythonCommand, requirementNames } from "../../src/build/python-plan.ts";
import { Project } from "./project.ts";

const temp = useTempFolder("others");
afterEach(() => vi.unstubAllEnvs());

test("a static site is its pages and a server", async () => {
  const site = new Project(temp.path, "site");
  site.write("public/index.html", "<h1>");
  site.write("public/.env", "PASSWORD=x");
  site.write("public/drafts/a.html", "");
  site.write("README.md", "");
  site.write(".dockerignore", "public/drafts\n");
  const built = await site.build({ port: 3000 });
  const { settings, files, digests } = site.opened(built);
  expect(built.builder).toBe("static");
  expect(settings.Cmd).toEqual(["node", "/usr/local/lib/hibernaut/static-server.mjs", "/app"]);
  expect(settings.Env).toContain("PORT=3000");
  expect(digests).toHaveLength(3);
  expect(files(1)).toContain("usr/local/lib/hibernaut/static-server.mjs");
  expect(files(2)).toEqual(["app/", "app/index.html"]);
});

test("a Python app has the host's Python and its standard library", { tags: "again" }, async () => {
  // A bare host has none of its own.
  vi.stubEnv("PATH", `${dirname(findTool("python3"))}:${process.env.PATH}`);
  vi.stubEnv("LD_LIBRARY_PATH", libraryPath());
  const api = new Project(temp.path, "api");
  api.write("main.py", "print('hello')");
  api.write("__pycache__/main.pyc", "");
  const built = await api.build();
  const { settings, files } = api.opened(built);
  expect(built.builder).toBe("python");
  expect(settings.Cmd).toEqual(["python3", "main.py"]);
  const base = files(0);
  expect(base).toEqual(expect.arrayContaining(["usr/local/bin/python3", "bin/sh", "etc/passwd"]));
  expect(base.some((name) => /^usr\/local\/lib\/python3\.\d+\/http\/server\.py$/.test(name))).toBe(true);
  expect(base.some((name) => /libpthread|libc\.so\.6$/.test(name))).toBe(true);
  expect(files(1)).toEqual(["app/", "app/main.py"]);
  expect(await api.build()).toEqual(built);
  api.write("requirements.txt", "-r base.txt\n");
  await expect(api.build()).rejects.toThrow(/refers to other files/);
});

test.each([
  ["", ["python3", "app.py"]],
  ["requests==2\n# flask\n", ["python3", "app.py"]],
  ["Flask>=3\n", ["python3", "-m", "flask", "--app", "app", "run", "--host", "0.0.0.0", "--port", "8080"]],
  ["flask\ngunicorn==22\n", ["python3", "-m", "gunicorn", "--bind", "0.0.0.0:8080", "app:app"]],
  ["fastapi\nuvicorn[standard]\n", ["python3", "-m", "uvicorn", "--host", "0.0.0.0", "--port", "8080", "app:app"]],
])("a Python app with the requirements %j starts with %j", (requirements, command) => {
  const folder = { path: "/srv/api", entries: ["app.py", "server.py"] } as never;
  expect(pythonCommand(folder, requirements, { port: 8080, commandNamed: false })).toEqual(command);
});

test("requirements are names, whatever else is on the line", () => {
  expect(requirementNames("A.b_c[x]>=1; python_version < '4'\n--hash=1\n\n# no\n")).toEqual(["a.b_c"]);
  const command = (commandNamed: boolean) =>
    pythonCommand({ path: "/srv/api", entries: [] } as never, "", { port: 1, commandNamed });
  expect(() => command(false)).toThrow(/has no main\.py.*name the command under \[processes\] in the app file/);
  expect(command(true), "as the error advises").toEqual(["python3"]);
});

/** A stand-in for the program `go`, which records how it was called and writes a script in place of a program. */
const GO = `#!/bin/sh
echo "$CGO_ENABLED $GOOS/$GOARCH $*" > "$STAND_IN"
while [ "$1" != -o ]; do shift; done
printf 'program' > "$2"
`;

test("a Go app is one program, and a host without go is told so", async () => {
  const app = new Project(temp.path, "goer");
  app.write("go.mod", "module goer\n");
  const bin = join(temp.path, "bin");
  mkdirSync(bin);
  // Without what may be installed on this host.
  symlinkSync("/usr/bin/ldd", join(bin, "ldd"));
  vi.stubEnv("PATH", bin);
  await expect(app.build()).rejects.toMatchObject({
    code: "build_tool_missing",
    message: expect.stringMatching(/needs go, which is not in the PATH\. Install it.*golang-go/),
  });
  writeFileSync(join(bin, "go"), GO);
  chmodSync(join(bin, "go"), 0o755);
  vi.stubEnv("STAND_IN", join(temp.path, "call"));
  const built = await app.build();
  vi.unstubAllEnvs();
  const { settings, files } = app.opened(built);
  expect(settings.Cmd).toEqual(["/app/app"]);
  expect(files(1)).toEqual(["app/", "app/app"]);
  expect(readFileSync(join(temp.path, "call"), "utf8")).toMatch(/^0 linux\/amd64 build -trimpath .* -o .* \.\n$/);
});
