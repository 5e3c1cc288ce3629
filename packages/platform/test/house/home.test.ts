/** Tests and what they start have a home of their own, and never that of the person who runs them. */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { lookAtHome } from "../../../../scripts/lib/real-home.mjs";
import { atHome } from "../../../../scripts/lib/test-home.mjs";
import { tempFolder } from "../helpers/temp.ts";

const REAL = userInfo().homedir;
const TELL = ["-p", "JSON.stringify([os.homedir(), process.env.HIBERNAUT_DATA_DIR, process.env.HIBERNAUT_API_URL])"];

test("the home of a test is not the real one, and no setting of a platform reaches it", () => {
  expect(homedir()).not.toBe(REAL);
  const settings = { HIBERNAUT_API_URL: "http://127.0.0.1:4280", HIBERNAUT_DATA_DIR: "/var/lib/hibernaut" };
  const choices = { HIBERNAUT_LONG_TESTS: "1", HIBERNAUT_TEST_THROUGH: "peer", PATH: "/bin" };
  const own = atHome({ HOME: REAL, XDG_CONFIG_HOME: join(REAL, ".config"), ...settings, ...choices }, "/run/home");
  expect(own).toMatchObject({ ...choices, HOME: "/run/home", XDG_CONFIG_HOME: "/run/home/.config" });
  expect(Object.keys(own)).not.toEqual(expect.arrayContaining(Object.keys(settings)));
});

test("a program that a test starts with few variables gets that home and a data directory in it", async () => {
  const env = { PATH: process.env["PATH"] };
  const waited = await promisify(execFile)(process.execPath, TELL, { env });
  const expected = [homedir(), join(homedir(), "data"), null];
  expect(JSON.parse(waited.stdout)).toEqual(expected);
  expect(JSON.parse(execFileSync(process.execPath, TELL, { env, encoding: "utf8" }))).toEqual(expected);
  expect(JSON.parse(spawnSync(process.execPath, TELL, { env, encoding: "utf8" }).stdout)).toEqual(expected);
});

test("a test that starts a program in the real home fails", () => {
  const env = { PATH: process.env["PATH"], HOME: REAL };
  expect(() => execFileSync("true", [], { env })).toThrow(`HOME=${REAL}`);
  expect(() => execFile("true", [], { env })).toThrow(`HOME=${REAL}`);
});

test("what a test writes to the real home is found", async () => {
  const home = await tempFolder("home");
  const config = join(home, "hibernaut");
  const look = () => lookAtHome([config]);
  expect(look()).toEqual([]);
  await mkdir(config);
  await writeFile(join(config, "config.json"), "{}");
  const before = look();
  expect(before).toHaveLength(2);
  await appendFile(join(config, "config.json"), "\n");
  expect(look()).not.toEqual(before);
});
