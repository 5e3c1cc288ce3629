import { execFile } from "node:child_process";
import { existsSync, lstatSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { linkFolder, linkReport, makeLinks, removeLinks } from "../bin/links.js";

const ROOT = join(import.meta.dirname, "../../..");
const LAUNCHER = join(ROOT, "packages/cli/bin/hibernaut");
const run = promisify(execFile);

test("links belong in a directory on everyone's PATH, or in one of the user's own", () => {
  expect(linkFolder({ HOME: "/root" }, 0)).toBe("/usr/local/bin");
  expect(linkFolder({ HOME: "/home/me" }, 1000)).toBe("/home/me/.local/bin");
  expect(linkFolder({ HOME: "/root", HIBERNAUT_LINK_FOLDER: "/opt/bin" }, 0)).toBe("/opt/bin");
});

describe("links", () => {
  test("are created where there was no directory, run from anywhere, and may be made again", async () => {
    const folder = join(await tempFolder("links"), ".local/bin");
    const links = [join(folder, "hibernaut"), join(folder, "hib")];
    for (const _ of ["first", "again"]) {
      expect(makeLinks(folder)).toEqual({ links, foreign: [] });
      for (const link of links) {
        expect(readlinkSync(link)).toBe(LAUNCHER);
        expect(await run(link, ["--version"], { cwd: "/" })).toEqual({ stdout: "0.1.0\n", stderr: "" });
      }
    }
    expect(removeLinks(folder)).toEqual(links);
    expect(removeLinks(folder), "once more").toEqual([]);
    expect(links.map((link) => existsSync(link))).toEqual([false, false]);
  });

  test("replace those that led here by another way", async () => {
    const folder = await tempFolder("links");
    symlinkSync(join(ROOT, "node_modules/.bin/hibernaut"), join(folder, "hibernaut"));
    symlinkSync(`${LAUNCHER}.js`, join(folder, "hib"));
    expect(makeLinks(folder).foreign).toEqual([]);
    expect(["hibernaut", "hib"].map((name) => readlinkSync(join(folder, name)))).toEqual([LAUNCHER, LAUNCHER]);
  });

  test("never replace or remove what belongs to someone else", async () => {
    const folder = await tempFolder("links");
    const [file, link] = [join(folder, "hibernaut"), join(folder, "hib")];
    writeFileSync(file, "mine");
    symlinkSync("/nowhere/hib", link);
    const made = makeLinks(folder);
    expect(made).toEqual({ links: [], foreign: [file, link] });
    expect(removeLinks(folder)).toEqual([]);
    expect([lstatSync(file).isFile(), readlinkSync(link)]).toEqual([true, "/nowhere/hib"]);
    expect(linkReport(folder, made, {})).toEqual([
      `${file} is something else and was left alone. Move it away and run this again.`,
      `${link} is something else and was left alone. Move it away and run this again.`,
    ]);
  });

  test("come with the line that puts their directory on the PATH, when it is not there", () => {
    const folder = "/home/me/.local/bin";
    const made = { links: [`${folder}/hibernaut`, `${folder}/hib`], foreign: [] };
    const where = `On the PATH: ${folder}/hibernaut and ${folder}/hib.`;
    expect(linkReport(folder, made, { HOME: "/home/me", PATH: `/bin:${folder}` })).toEqual([where]);
    expect(linkReport(folder, made, { HOME: "/home/me", PATH: "/bin" })).toEqual([
      where,
      `${folder} is not in your PATH yet. Add this line to ~/.profile, and run it in this terminal:`,
      '  export PATH="$HOME/.local/bin:$PATH"',
    ]);
  });
});

test("a directory that cannot be created is reported with the way out", async () => {
  const folder = await tempFolder("links");
  writeFileSync(join(folder, "file"), "");
  const env = { ...process.env, HIBERNAUT_LINK_FOLDER: join(folder, "file/bin") };
  const failed = await run(process.execPath, [join(ROOT, "scripts/setup.mjs"), "--link", "--quiet"], { env }).then(
    () => undefined,
    (error: { stderr: string }) => error.stderr,
  );
  expect(failed).toContain(`Cannot make links in ${folder}/file/bin (ENOTDIR). Set HIBERNAUT_LINK_FOLDER`);
});

test("setup --link makes them and says so, uninstall takes them back", async () => {
  const folder = await tempFolder("links");
  const env = {
    ...process.env,
    HOME: folder,
    HIBERNAUT_LINK_FOLDER: join(folder, "bin"),
    HIBERNAUT_DATA_DIR: join(folder, "data"),
  };
  const link = join(folder, "bin/hibernaut");
  const { stderr } = await run(process.execPath, [join(ROOT, "scripts/setup.mjs"), "--link", "--quiet"], { env });
  expect(stderr).toContain(`On the PATH: ${link} and ${folder}/bin/hib.\n`);
  expect(stderr).toContain('  export PATH="$HOME/bin:$PATH"\n');
  await run(link, ["uninstall", "--keep-link"], { env, cwd: folder });
  expect(existsSync(link), "another platform may need it").toBe(true);
  const { stdout } = await run(link, ["uninstall"], { env, cwd: folder });
  expect(stdout).toContain(`Removed from the PATH: ${link}, ${folder}/bin/hib; `);
  expect(existsSync(link)).toBe(false);
});
