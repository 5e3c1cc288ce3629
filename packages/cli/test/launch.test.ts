import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { lookAt } from "../src/appfile/folder.ts";
import { launchText, nextSteps } from "../src/appfile/launch-text.ts";
import { machineConfigs } from "../src/appfile/machine-configs.ts";
import { appName, planLaunch } from "../src/appfile/plan.ts";
import { readAppFile } from "../src/appfile/read.ts";
import { launch } from "../src/commands/launch.ts";
import { Context } from "../src/context.ts";

let folder: string;

beforeEach(async () => {
  folder = join(await tempFolder("cli"), "My Shop");
  mkdirSync(folder);
});
afterEach(() => {
  vi.restoreAllMocks();
});

function write(name: string, content: unknown): void {
  mkdirSync(join(folder, name, ".."), { recursive: true });
  writeFileSync(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
}

/** A tar file with empty entries of these names. */
function tar(...names: string[]): string {
  const heads = names.map((name) => `${name.padEnd(124, "\0")}${"0".padStart(11, "0")}\0`.padEnd(512, "\0"));
  return `${heads.join("")}${"\0".repeat(1024)}`;
}

const plan = (options = {}) => planLaunch(lookAt(folder, undefined), options);

describe("what a directory is taken for", () => {
  test("nothing known", () => {
    expect(plan()).toEqual({
      kind: "unknown",
      app: "my-shop",
      image: undefined,
      build: undefined,
      port: 8080,
      portReason: undefined,
      setPort: false,
      memoryMb: 256,
      cpus: 1,
    });
  });

  test.each([
    [{ start: "PORT=3100 node server.js" }, 3100],
    [{ start: "next start -p 3200" }, 3200],
    [{ start: "serve --port=3300" }, 3300],
    [{ start: "node .", dev: "vite --port 3400" }, 3400],
    [{ start: "node --port-of-call 5" }, 8080],
    [{ start: "x --port 99999" }, 8080],
  ])("Node with scripts %j", (scripts, port) => {
    write("package.json", { name: "@me/Web_App", scripts });
    expect(plan()).toMatchObject({ kind: "node", app: "web-app", port, setPort: true });
  });

  test("a package.json without anything to start, and a broken one next to a server", () => {
    write("package.json", { name: "tool" });
    expect(plan()).toMatchObject({ kind: "unknown", app: "tool", build: undefined, setPort: true });
    write("package.json", "{ name");
    write("server.js", "");
    expect(plan()).toMatchObject({ kind: "node", app: "my-shop" });
  });

  test.each([
    ["FROM a\nEXPOSE 80\nFROM b\nexpose 3000/tcp 3001\n", 3000],
    ['FROM a\nENV NODE_ENV=production PORT="4000"\n', 4000],
    ["FROM a\nENV PORT 5000\n", 5000],
    ["FROM a\n# EXPOSE 1\nEXPOSE $PORT\n", 8080],
  ])("a Dockerfile %j", (dockerfile, port) => {
    write("Dockerfile", dockerfile);
    expect(plan()).toMatchObject({ kind: "dockerfile", port, image: undefined });
  });

  test("a Dockerfile of hardly anything but empty lines is read in a moment", () => {
    write("Dockerfile", `FROM a\n${"\n".repeat(100_000)}ENV PORT 4000\n`);
    const began = performance.now();
    expect(plan()).toMatchObject({ kind: "dockerfile", port: 4000 });
    expect(performance.now() - began).toBeLessThan(2000);
  });

  test("images that lie there", () => {
    write("Dockerfile", "FROM scratch\n");
    write("a-notes.tar", tar("readme"));
    write("b-old.tar", tar("./oci-layout", "index.json"));
    write("c-saved.tar", tar("blobs/", "manifest.json", "oci-layout"));
    write("d-layout/oci-layout", "{}");
    write("d-layout/index.json", "{}");
    expect(lookAt(folder, undefined).images).toEqual([
      `oci-archive:${folder}/b-old.tar`,
      `docker-archive:${folder}/c-saved.tar`,
      `oci:${folder}/d-layout`,
    ]);
    expect(plan()).toMatchObject({ kind: "dockerfile", image: `oci-archive:${folder}/b-old.tar` });
    expect(plan({ image: "redis:7", name: "cache" })).toMatchObject({ kind: "image", image: "redis:7", app: "cache" });
  });

  test("an OCI layout itself, and the root of a system", () => {
    for (const name of ["bin", "etc", "usr", "var"]) mkdirSync(join(folder, name));
    expect(plan().kind).toBe("rootfs");
    write("oci-layout", "{}");
    write("index.json", "{}");
    expect(plan()).toMatchObject({ kind: "image", image: `oci:${folder}` });
  });

  test.each([
    ["Shop", "shop"],
    ["@scope/the.shop", "the-shop"],
    ["--x--", "x"],
    ["ünï", "n"],
    ["???", "app"],
    ["a".repeat(80), "a".repeat(63)],
  ])("%s becomes the app %s", (text, name) => expect(appName(text)).toBe(name));
});

describe("what is written", () => {
  test.each([
    ["an image", { image: 'oci:/srv/a "b"', internalPort: 8080 }],
    ["no image", { internalPort: 8080 }],
  ])("is valid without a warning, with %s", (_, options) => {
    write("package.json", {});
    const { file, findings } = readAppFile(launchText(plan(options)));
    expect(findings).toEqual([]);
    if (file === undefined) throw new Error("the file was refused");
    expect(file).toMatchObject({ app: "my-shop", image: (options as { image?: string }).image });
    expect(machineConfigs(file, { image: "x" }).get("app")?.config).toMatchObject({
      guest: { cpus: 1, memory_mb: 256 },
      env: { PORT: "8080" },
      services: [{ protocol: "http", internal_port: 8080, autostop: "suspend", autostart: true, idle_timeout: 300 }],
      restart: { policy: "on-failure", max_retries: 10 },
    });
  });

  test("leaves out a port that nothing says, and the variable if the image has it", () => {
    write("server.js", "");
    const { file, findings } = readAppFile(launchText(plan()));
    expect(findings).toEqual([]);
    expect(file).toMatchObject({ env: {}, services: [{ portNamed: false, config: { internal_port: 8080 } }] });
    write("package.json", {});
    write("Dockerfile", "FROM scratch\n");
    const { file: other } = readAppFile(launchText(plan()));
    expect(other).toMatchObject({ env: { PORT: "8080" }, services: [{ portNamed: false }] });
  });

  test("has what the options say", () => {
    const { file } = readAppFile(launchText(plan({ internalPort: 3000, vmMemory: 512, vmCpus: 2 })));
    expect(file).toMatchObject({
      services: [{ portNamed: true, config: { internal_port: 3000 } }],
      sizes: [{ memoryMb: 512, cpus: 2 }],
    });
  });

  test.each([
    ["node", "package.json", { scripts: { start: "node server.js" } }, "package.json"],
    ["node", "server.js", "", "server.js"],
    ["static", "public/index.html", "", "public/index.html"],
    ["dockerfile", "Dockerfile", "FROM scratch\n", "Dockerfile"],
  ])("names the builder %s and its reason", (builder, file, content, because) => {
    write(file, content);
    const text = launchText(plan());
    expect(text).toContain(`because it has ${because}.`);
    const { file: read, findings } = readAppFile(text);
    expect(findings).toEqual([]);
    expect(read?.build.builder).toBe(builder);
    expect(nextSteps(plan())).toBe("Next:\n  hibernaut deploy");
  });

  test("is followed by the next steps", () => {
    expect(nextSteps(plan())).toContain("add a start script");
    expect(nextSteps(plan({ image: "x" }))).toBe("Next:\n  hibernaut deploy");
    expect(nextSteps({ ...plan(), kind: "rootfs" })).toContain("docker import");
  });
});

describe("the command", () => {
  const run = (options = {}) => launch.run(new Context({}), [], options);

  test("writes the file once, and again with --force only", async () => {
    vi.spyOn(process, "cwd").mockReturnValue(folder);
    expect((await run()).text).toMatch(
      /^Wrote hibernaut\.toml: app my-shop, the port to be found out, no image yet\.\nNext:/,
    );
    await expect(run({ name: "other" })).rejects.toThrow("hibernaut.toml already exists. Add --force to replace it.");
    expect(readFileSync(join(folder, "hibernaut.toml"), "utf8")).toContain('app = "my-shop"');
    expect((await run({ name: "other", force: true })).document).toEqual({
      file: "hibernaut.toml",
      kind: "unknown",
      app: "other",
      image: null,
      builder: null,
      port: 8080,
      port_guessed: true,
    });
    await expect(run({ now: true, deploy: false })).rejects.toThrow("--now deploys at once, and --no-deploy does not.");
  });

  test("does not shadow a fly.toml, and takes names only that the platform takes", async () => {
    vi.spyOn(process, "cwd").mockReturnValue(folder);
    write("fly.toml", "");
    await expect(run()).rejects.toThrow("fly.toml already exists and works as it is");
    await expect(run({ name: "My Shop" })).rejects.toThrow(
      "`My Shop` is not a valid name for an app: it must have 1 to 63",
    );
    expect(existsSync(join(folder, "hibernaut.toml"))).toBe(false);
  });

  test("in a directory with nothing but a compose file, shows what that becomes, and writes nothing", async () => {
    vi.spyOn(process, "cwd").mockReturnValue(folder);
    await expect(run({ plan: true })).rejects.toThrow("There is no compose.yaml here");
    write("docker-compose.yml", "services: {db: {image: 'postgres:16'}}");
    expect((await run()).text).toMatch(/^Project my-shop: 1 app in the network my-shop\./);
    expect(existsSync(join(folder, "hibernaut.toml"))).toBe(false);
    // One that is there for its developers does not take the place of the app.
    write("package.json", { scripts: { start: "node ." } });
    const { text } = await run();
    expect(text).toMatch(/^Wrote hibernaut\.toml/);
    expect(text).toContain("hibernaut compose plan");
    expect((await run({ plan: true })).text).toMatch(/^Project my-shop/);
  });
});
