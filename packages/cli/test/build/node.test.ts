/** A directory with a Node app becomes an image, without a registry and without docker. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { openTempFolder, type TempFolder } from "../../../platform/test/helpers/temp.ts";
import { buildImage, type BuildRequest, type Built, IMAGES_KEPT } from "../../src/build/build.ts";
import { placeName } from "../../src/build/place.ts";

let temp: TempFolder;
let shop: string;
let count = 0;
let said: string[];
beforeAll(async () => {
  temp = await openTempFolder("build");
});
afterAll(() => temp.dispose());
beforeEach(() => {
  shop = join(temp.path, `shop${(count += 1)}`);
  said = [];
  write("server.js", "require('node:http').createServer((_, r) => r.end('hello')).listen(process.env.PORT);\n");
  write("package.json", { name: "shop", scripts: { start: "node server.js" } });
});

function write(name: string, content: string | object): void {
  mkdirSync(dirname(join(shop, name)), { recursive: true });
  writeFileSync(join(shop, name), typeof content === "string" ? content : JSON.stringify(content));
}

function build(changes: Partial<BuildRequest> = {}): Promise<Built> {
  const none = { builder: undefined, dockerfile: undefined, target: undefined, ignorefile: undefined };
  const request = {
    ...none,
    directory: shop,
    args: {},
    secrets: [],
    port: 8080,
    fresh: false,
    timeout: 60,
    ...changes,
  };
  const report = {
    step<T>(label: string, work: Promise<T>): Promise<T> {
      said.push(label);
      return work;
    },
    say: (line: string) => void said.push(line),
  };
  return buildImage(request, report, join(temp.path, "builds"));
}

const home = () => join(temp.path, "builds", placeName(shop));
const blob = (digest: string) => join(home(), "layout/blobs/sha256", digest.slice("sha256:".length));

/** What machines get: the settings, and the layers with what is in each. */
function opened({ digest }: Built) {
  const { config, layers } = JSON.parse(readFileSync(blob(digest), "utf8")) as {
    config: { digest: string };
    layers: { digest: string }[];
  };
  const { config: settings } = JSON.parse(readFileSync(blob(config.digest), "utf8")) as {
    config: { Cmd: string[]; Env: string[] };
  };
  const list = (one: string) =>
    execFileSync("tar", ["-tzf", blob(one)], { encoding: "utf8" })
      .trim()
      .split("\n");
  // Lists are read when they are needed: the one of Node's layer takes a while.
  return {
    settings,
    digests: layers.map((one) => one.digest),
    files: (layer: number) => list(layers[layer]?.digest ?? ""),
  };
}

test("the image has Node, a shell and the app, and nothing that is private", async () => {
  write(".env", "PASSWORD=secret");
  write(".git/HEAD", "ref");
  write("node_modules/left/index.js", "");
  write("public/page.html", "<p>");
  write("notes.md", "");
  write(".dockerignore", "*.md\n");
  symlinkSync("server.js", join(shop, "index.js"));
  const built = await build();
  expect(built).toMatchObject({ builder: "node", image: `oci:${home()}/layout:b${built.digest.slice(7, 19)}` });
  const { settings, files } = opened(built);
  expect(settings).toMatchObject({ Cmd: ["node", "server.js"], User: "app", WorkingDir: "/app" });
  expect(settings.Env).toEqual(expect.arrayContaining(["PORT=8080", "NODE_ENV=production"]));
  expect(files(0)).toEqual(
    expect.arrayContaining(["usr/local/bin/node", "bin/sh", "usr/bin/env", "tmp/", "etc/passwd"]),
  );
  expect(files(1)).toEqual([
    "app/",
    "app/index.js",
    "app/package.json",
    "app/public/",
    "app/public/page.html",
    "app/server.js",
  ]);
  expect(readdirSync(home()).sort()).toEqual(["build.log", "layout"]);
});

test("the same directory gives the same image, and a change only another layer of the app", async () => {
  const first = await build();
  expect(await build()).toEqual(first);
  write("server.js", "changed");
  const second = await build();
  expect(second.digest).not.toBe(first.digest);
  expect(opened(second).digests[0]).toBe(opened(first).digests[0]);
  expect(opened(second).digests[1]).not.toBe(opened(first).digests[1]);
});

test("the last few images are kept, and what only older ones needed is deleted", async () => {
  const images = [];
  for (let version = 0; version <= IMAGES_KEPT; version += 1) {
    write("server.js", `version ${version}`);
    images.push(await build());
  }
  expect(existsSync(blob(images[0]?.digest ?? ""))).toBe(false);
  for (const image of images.slice(1)) expect(opened(image).digests).toHaveLength(2);
  // For each image: its manifest, its settings and its app; and Node.
  expect(readdirSync(join(home(), "layout/blobs/sha256"))).toHaveLength(3 * IMAGES_KEPT + 1);
});

describe("dependencies", () => {
  beforeEach(() => {
    // Directories of this kind need no registry.
    write("lib/package.json", { name: "greeting", version: "1.0.0", main: "index.js" });
    write("lib/index.js", "module.exports = 'hello';");
    write("package.json", {
      name: "shop",
      scripts: {
        start: "node server.js",
        build: "node -e \"require('fs').writeFileSync('built.txt', process.version)\"",
      },
      dependencies: { greeting: "file:./lib" },
    });
  });

  test("are installed and built in a copy, and again only after a change", async () => {
    write("node_modules/mine/index.js", "stays");
    const built = await build();
    const { files } = opened(built);
    expect(files(1)).toContain("app/node_modules/greeting");
    expect(files(2)).toEqual(expect.arrayContaining(["app/built.txt", "app/lib/index.js"]));
    expect([...files(1), ...files(2)]).not.toContain("app/node_modules/mine/index.js");
    expect(readdirSync(join(shop, "node_modules"))).toEqual(["mine"]);
    expect(existsSync(join(shop, "built.txt"))).toBe(false);
    expect(said.join("\n")).toMatch(/no lock file[^]*Running npm install[^]*Running npm run build/);
    said = [];
    expect(await build()).toEqual(built);
    expect(said.join("\n")).not.toContain("Running");
  });

  test("that cannot be installed fail the build, with the output, and leave the earlier image", async () => {
    const built = await build();
    rmSync(join(shop, "lib"), { recursive: true });
    write("package.json", { scripts: { start: "node .", build: "echo the reason; exit 3" } });
    const failure = await build().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "build_failed" });
    expect(String(failure)).toMatch(
      /`npm run build` failed with exit code 3\. Last output:[^]*the reason[^]*The whole log: /,
    );
    expect(readFileSync(join(home(), "build.log"), "utf8")).toContain("the reason");
    expect(opened(built).digests).toHaveLength(3);
    expect(existsSync(join(home(), "work"))).toBe(false);
  });

  test("of a package manager that is not there are an error that names it", async () => {
    write("pnpm-lock.yaml", "lockfileVersion: 9");
    // Only what finds libraries, which has a shell of its own.
    mkdirSync(join(shop, "bin"));
    symlinkSync("/usr/bin/ldd", join(shop, "bin/ldd"));
    vi.stubEnv("PATH", join(shop, "bin"));
    try {
      await expect(build()).rejects.toMatchObject({
        code: "build_tool_missing",
        message: expect.stringMatching(/needs pnpm.*Install it/),
      });
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

test("a directory is built once at a time, and a build that was killed is in nobody's way", async () => {
  mkdirSync(home(), { recursive: true });
  const start = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ")[19];
  writeFileSync(join(home(), "lock"), `${process.pid} ${start}`);
  await expect(build()).rejects.toThrow(`Process ${process.pid} is building ${shop} now.`);
  writeFileSync(join(home(), "lock"), `${process.pid} 1`);
  mkdirSync(join(home(), "work/left"), { recursive: true });
  await build();
  expect(existsSync(join(home(), "work"))).toBe(false);
});
