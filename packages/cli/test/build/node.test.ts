/**
 * A directory with a Node app becomes an image, without a registry and without docker.
 *
 * @module-tag again
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { useTempFolder } from "../../../platform/test/helpers/temp.ts";
import { IMAGES_KEPT } from "../../src/build/layout.ts";
import { Project } from "./project.ts";

const temp = useTempFolder("build");
let shop: Project;
let count = 0;
beforeEach(() => {
  shop = new Project(temp.path, `shop${(count += 1)}`);
  shop.write("server.js", "require('node:http').createServer((_, r) => r.end('hi')).listen(process.env.PORT);\n");
  shop.write("package.json", { name: "shop", scripts: { start: "node server.js" } });
});

test("the image has Node, a shell and the app, and nothing that is private", async () => {
  shop.write(".env", "PASSWORD=secret");
  shop.write(".git/HEAD", "ref");
  shop.write("node_modules/left/index.js", "");
  shop.write("public/page.html", "<p>");
  shop.write("notes.md", "");
  shop.write(".dockerignore", "*.md\n");
  symlinkSync("server.js", join(shop.path, "index.js"));
  const built = await shop.build();
  expect(built).toMatchObject({ builder: "node", image: `oci:${shop.home}/layout:b${built.digest.slice(7, 19)}` });
  const { settings, files } = shop.opened(built);
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
  expect(readdirSync(shop.home).sort()).toEqual(["build.log", "layout"]);
});

test("the same directory gives the same image, and a change only another layer of the app", async () => {
  const first = await shop.build();
  expect(await shop.build()).toEqual(first);
  shop.write("server.js", "changed");
  const second = await shop.build();
  expect(second.digest).not.toBe(first.digest);
  expect(shop.opened(second).digests[0]).toBe(shop.opened(first).digests[0]);
  expect(shop.opened(second).digests[1]).not.toBe(shop.opened(first).digests[1]);
});

test("the last few images are kept, and what only older ones needed is deleted", async () => {
  const images = [];
  for (let version = 0; version <= IMAGES_KEPT; version += 1) {
    shop.write("server.js", `version ${version}`);
    images.push(await shop.build());
  }
  expect(existsSync(shop.blob(images[0]?.digest ?? ""))).toBe(false);
  for (const image of images.slice(1)) expect(shop.opened(image).digests).toHaveLength(2);
  // For each image: its manifest, its settings and its app; and Node.
  expect(readdirSync(join(shop.home, "layout/blobs/sha256"))).toHaveLength(3 * IMAGES_KEPT + 1);
});

describe("dependencies", () => {
  beforeEach(() => {
    // Directories of this kind need no registry.
    shop.write("lib/package.json", { name: "greeting", version: "1.0.0", main: "index.js" });
    shop.write("lib/index.js", "module.exports = 'hello';");
    shop.write("package.json", {
      name: "shop",
      scripts: {
        start: "node server.js",
        build: "node -e \"require('fs').writeFileSync('built.txt', process.version)\"",
      },
      dependencies: { greeting: "file:./lib" },
    });
  });

  test("are installed and built in a copy, and again only after a change", async () => {
    shop.write("node_modules/mine/index.js", "stays");
    const built = await shop.build();
    const { files } = shop.opened(built);
    // A link to the directory, or a copy of it, as npm sees fit.
    expect(files(1).join("\n")).toMatch(/^app\/node_modules\/greeting\/?$/m);
    expect(files(2)).toEqual(expect.arrayContaining(["app/built.txt", "app/lib/index.js"]));
    expect([...files(1), ...files(2)]).not.toContain("app/node_modules/mine/index.js");
    expect(readdirSync(join(shop.path, "node_modules"))).toEqual(["mine"]);
    expect(existsSync(join(shop.path, "built.txt"))).toBe(false);
    expect(shop.said.join("\n")).toMatch(/no lock file[^]*Running npm install[^]*Running npm run build/);
    shop.said = [];
    expect(await shop.build()).toEqual(built);
    expect(shop.said.join("\n")).not.toContain("Running");
  });

  test("that cannot be installed fail the build, with the output, and leave the earlier image", async () => {
    const built = await shop.build();
    rmSync(join(shop.path, "lib"), { recursive: true });
    shop.write("package.json", { scripts: { start: "node .", build: "echo the reason; exit 3" } });
    const failure = await shop.build().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "build_failed" });
    expect(String(failure)).toMatch(
      /`npm run build` failed with exit code 3\. Last output:[^]*the reason[^]*The whole log: /,
    );
    expect(shop.log).toContain("the reason");
    expect(shop.opened(built).digests).toHaveLength(3);
    expect(existsSync(join(shop.home, "work"))).toBe(false);
  });

  test("of a package manager that is not there are an error that names it", async () => {
    shop.write("pnpm-lock.yaml", "lockfileVersion: 9");
    // Only what finds libraries, which has a shell of its own.
    mkdirSync(join(shop.path, "bin"));
    symlinkSync("/usr/bin/ldd", join(shop.path, "bin/ldd"));
    vi.stubEnv("PATH", join(shop.path, "bin"));
    try {
      await expect(shop.build()).rejects.toMatchObject({
        code: "build_tool_missing",
        message: expect.stringMatching(/needs pnpm.*Install it/),
      });
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

test("a directory is built once at a time, and a build that was killed is in nobody's way", async () => {
  mkdirSync(shop.home, { recursive: true });
  const start = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ")[19];
  writeFileSync(join(shop.home, "lock"), `${process.pid} ${start}`);
  await expect(shop.build()).rejects.toThrow(`Process ${process.pid} is building ${shop.path} now.`);
  writeFileSync(join(shop.home, "lock"), `${process.pid} 1`);
  mkdirSync(join(shop.home, "work/left"), { recursive: true });
  await shop.build();
  expect(existsSync(join(shop.home, "work"))).toBe(false);
});
