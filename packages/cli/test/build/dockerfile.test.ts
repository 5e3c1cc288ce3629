/** A Dockerfile becomes an image: with the real buildah, and with a stand-in for docker. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { findTool, toolEnvironment } from "../../../../scripts/lib/test-tools.mjs";
import { useTempFolder } from "../../../platform/test/helpers/temp.ts";
import { Project } from "./project.ts";

const temp = useTempFolder("dockerfile");
let shop: Project;
beforeAll(() => {
  shop = new Project(temp.path, "shop");
  shop.write("hello", "hello\n");
  shop.write("notes.md", "");
  shop.write(
    "Dockerfile",
    `FROM scratch AS first
ARG GREETING=none
ENV GREETING=$GREETING
COPY . /app/
FROM first AS second
COPY hello /app/second
CMD ["/app/hello"]
`,
  );
});
afterEach(() => vi.unstubAllEnvs());

/** Puts programs in front of the PATH. */
function withPrograms(name: string, programs: Record<string, string>): void {
  const folder = join(temp.path, name);
  mkdirSync(folder, { recursive: true });
  for (const [program, script] of Object.entries(programs)) {
    writeFileSync(join(folder, program), `#!/bin/sh\n${script}`);
    chmodSync(join(folder, program), 0o755);
  }
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
}

describe("with buildah", () => {
  const begin = () => {
    vi.stubEnv("LD_LIBRARY_PATH", toolEnvironment().LD_LIBRARY_PATH);
    withPrograms("buildah", { docker: "exit 1\n", buildah: `exec ${findTool("buildah")} "$@"\n` });
  };

  test("stages, variables and ignored files count, and the same files give the same image from cached layers", async () => {
    begin();
    shop.write(".dockerignore", "*.md\n");
    const built = await shop.build({ args: { GREETING: "hi" }, target: "first" });
    const { settings, files } = shop.opened(built);
    expect(settings.Env).toContain("GREETING=hi");
    expect(settings.Cmd).toBeUndefined();
    expect(files(0).filter((name) => name.endsWith("hello"))).toEqual(["app/hello"]);
    expect(files(0).join(" ")).not.toContain("notes.md");
    expect(await shop.build({ args: { GREETING: "hi" }, target: "first" })).toEqual(built);
    expect(shop.log).toContain("Using cache");

    const whole = await shop.build({});
    expect(shop.opened(whole).settings.Cmd).toEqual(["/app/hello"]);
    expect(readdirSync(shop.home).sort()).toEqual(["build.log", "buildah", "layout"]);
    // The earlier image is still there.
    expect(shop.opened(built).files(0)).toContain("app/hello");
  });

  test("a step that fails ends the build with its output, and a wrong name says what to correct", async () => {
    begin();
    shop.write("Broken", "FROM scratch\nCOPY nowhere /\n");
    const failure = await shop.build({ dockerfile: "Broken" }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "build_failed" });
    expect(String(failure)).toMatch(/The build of the Dockerfile failed[^]*nowhere[^]*The whole log: /);
    await expect(shop.build({ dockerfile: "Gone" })).rejects.toThrow(/Gone does not exist\. Correct dockerfile/);
    await expect(shop.build({ secrets: ["id=npm,env=NOT_SET_HERE"] })).rejects.toThrow(/NOT_SET_HERE.*is not set/);
  });
});

test("without docker and buildah, the error says what to install", async () => {
  withPrograms("none", { docker: "exit 1\n", buildah: "exit 127\n" });
  await expect(shop.build()).rejects.toMatchObject({
    code: "build_tool_missing",
    message: expect.stringContaining("apt-get install buildah"),
  });
});

/** The stand-in records its arguments, and saves an archive that it got from elsewhere. */
describe("with a stand-in for docker", () => {
  const STAND_IN = `
echo "$*" >> "$STAND_IN/calls"
case "$1" in
  version) echo 27.0 ;;
  build) cp "$STAND_IN/id" "$3"; for word; do case "$word" in id=*,src=*) cat "\${word#*src=}" > "$STAND_IN/secret" ;; esac; done ;;
  save) cp "$STAND_IN/archive" "$3" ;;
esac
`;

  test("docker gets what the app file and the options ask for, and its archive is the image", async () => {
    const folder = join(temp.path, "stand-in");
    mkdirSync(folder);
    const id = `sha256:${"ab".repeat(32)}`;
    writeFileSync(join(folder, "id"), id);
    writeFileSync(join(folder, "archive"), "an archive");
    withPrograms("docker", { docker: STAND_IN });
    vi.stubEnv("STAND_IN", folder);
    vi.stubEnv("TOKEN", "sesame");
    shop.write("other.ignore", "*.txt\n");
    const request = { args: { A: "b" }, target: "second", secrets: ["id=npm,env=TOKEN"], ignorefile: "other.ignore" };
    const built = await shop.build({ ...request, fresh: true });
    const archive = join(shop.home, "archives/abababababab.tar");
    expect(built).toEqual({ image: `docker-archive:${archive}`, digest: id, builder: "dockerfile" });
    expect(readFileSync(archive, "utf8")).toBe("an archive");
    expect(readFileSync(join(folder, "secret"), "utf8")).toBe("sesame");
    expect(shop.log).not.toContain("sesame");
    expect(existsSync(join(shop.home, "work"))).toBe(false);

    const calls = readFileSync(join(folder, "calls"), "utf8").trim().split("\n");
    expect(calls.map((call) => call.split(" ")[0])).toEqual(["version", "build", "save"]);
    for (const part of ["--target second", "--build-arg A=b", "--no-cache", "--platform linux/amd64", shop.path])
      expect(calls[1]).toContain(part);
    // The same image is not saved again.
    copyFileSync(join(folder, "calls"), join(folder, "before"));
    expect(await shop.build()).toEqual(built);
    expect(
      readFileSync(join(folder, "calls"), "utf8")
        .trim()
        .split("\n")
        .slice(3)
        .map((call) => call.split(" ")[0]),
    ).toEqual(["version", "build"]);
  });
});
