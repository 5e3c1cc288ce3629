/**
 * What `npm run package` makes, as far as it can be tried without installing it. The rest is in debian.long.test.ts.
 *
 * @module-tag again
 */
import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { PACKAGES } from "../../../../scripts/lib/debian.mjs";
import { DEPENDS, stageDebianPackage } from "../../../../scripts/lib/package/debian.mjs";
import { programDependencies } from "../../../../scripts/lib/package/npm.mjs";
import { oldNode } from "../../../../scripts/lib/test-nodes.mjs";
import { tempFolder, useTempFolder } from "../helpers/temp.ts";
import { userOf } from "./npm-user.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const run = promisify(execFile);

test("the npm package brings the database that the bundle leaves out, in the version that is tested", async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, "node_modules/better-sqlite3/package.json"), "utf8"));
  expect(await programDependencies()).toEqual({ "better-sqlite3": version });
});

describe("the Debian package", () => {
  const folder = useTempFolder("deb");
  let root: string;
  beforeAll(async () => {
    root = join(folder.path, "root");
    await stageDebianPackage(root, "1.2.3");
  });

  test("has a program that runs with nothing of the checkout", async () => {
    const program = join(root, "usr/bin/hibernaut");
    const dataDir = await tempFolder("deb-data");
    const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: dataDir, HIBERNAUT_DATA_DIR: dataDir };
    expect((await run(program, ["--version"], { env })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const { stdout } = await run(program, ["doctor", "--json"], { env }).catch((error: { stdout: string }) => error);
    const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; found: string }[] };
    const of = (name: string) => checks.find((check) => check.name === name);
    expect(of("guest bundle"), stdout).toMatchObject({ status: "ok" });
    expect(of("node"), stdout).toMatchObject({ status: "ok" });
  });

  test("depends on what the setup installs for running machines", () => {
    const build = ["gcc", "libc6-dev", "cpio", "lz4", "xz-utils", "zstd", "kmod", "tar", "ca-certificates"];
    const forTests = ["umoci"];
    const needed = Object.keys(PACKAGES).filter((name) => ![...build, ...forTests].includes(name));
    const named = DEPENDS.map((dependency) => dependency.replace(/ .*/, ""));
    expect(named).toEqual(expect.arrayContaining(needed));
  });

  test("has scripts that a shell understands", async () => {
    for (const name of ["preinst", "postinst", "prerm", "postrm"]) {
      const file = join(root, "DEBIAN", name);
      expect(spawnSync("sh", ["-n", file], { encoding: "utf8" }), name).toMatchObject({ status: 0, stderr: "" });
      expect(await readFile(file, "utf8")).not.toContain("@VERSION@");
    }
  });

  test.skipIf(!existsSync("/usr/bin/systemd-analyze"))("has units that systemd understands", async () => {
    const units = join(root, "usr/lib/systemd/system");
    for (const name of await readdir(units)) {
      const text = await readFile(join(units, name), "utf8");
      // systemd looks for programs where they will be installed.
      await writeFile(join(units, name), text.replaceAll("=hibernaut ", `=${join(root, "usr/bin/hibernaut")} `));
      const { stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", join(units, name)], {
        encoding: "utf8",
      });
      expect(
        stderr.split("\n").filter((line) => line.includes("hibernaut")),
        name,
      ).toEqual([]);
    }
  });

  test("has manual pages and completions", async () => {
    const share = join(root, "usr/share");
    expect(await readdir(join(share, "man/man1"))).toContain("hibernaut-machine.1.gz");
    expect(await readFile(join(share, "bash-completion/completions/hibernaut"), "utf8")).toContain("complete -F");
  });
});

test("the client's npm package works in Node 20, and has types", async () => {
  const { dependencies } = JSON.parse(await readFile(join(ROOT, "packages/client/package.json"), "utf8"));
  const folder = await userOf("@hibernaut/client", [...Object.keys(dependencies), "@types/node", "undici-types"]);
  const program = `import { ApiError, HibernautClient } from "@hibernaut/client";
    const client = new HibernautClient({ apiUrl: "http://127.0.0.1:9", token: "t" });
    const error = await client.getMachine("shop", "web").catch((error: unknown) => error);
    console.log(error instanceof ApiError && error.code);\n`;
  await writeFile(join(folder, "use.mts"), program);
  await writeFile(join(folder, "use.mjs"), program.replace(": unknown", ""));
  const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2024", "--types", "node", "use.mts"];
  await run(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), ...options], { cwd: folder });
  const { stdout } = await run(oldNode("20"), ["use.mjs"], { cwd: folder });
  expect(stdout).toBe("unavailable\n");
});
