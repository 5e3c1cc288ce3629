/** A file of the user's that a command changes, whatever happens to the disk meanwhile. */
import * as fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { rewrite } from "../../src/appfile/rewrite.ts";

const disk = vi.hoisted(() => ({ isFull: false }));
vi.mock("node:fs", async (original) => {
  const real = await original<typeof fs>();
  return {
    ...real,
    writeFileSync(file: fs.PathOrFileDescriptor, text: string | Buffer) {
      if (!disk.isFull) return real.writeFileSync(file, text);
      real.writeFileSync(file, text.slice(0, text.length / 2));
      throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    },
  };
});

let directory: string;
let file: string;
beforeEach(async () => {
  directory = await tempFolder("rewrite");
  file = join(directory, "app.toml");
  fs.writeFileSync(file, 'app = "shop"\n');
  fs.chmodSync(file, 0o640);
});
afterEach(() => {
  disk.isFull = false;
});

test("through a link, which stays one, the file is changed, and has the mode that it had", () => {
  const link = join(directory, "hibernaut.toml");
  fs.symlinkSync("app.toml", link);
  expect(rewrite(link, (text) => `${text}# more\n`)).toBe('app = "shop"\n# more\n');
  expect(fs.readFileSync(file, "utf8")).toBe('app = "shop"\n# more\n');
  expect(fs.lstatSync(link).isSymbolicLink()).toBe(true);
  expect(fs.statSync(file).mode & 0o777).toBe(0o640);
  expect(fs.readdirSync(directory)).toEqual(["app.toml", "hibernaut.toml"]);
});

test("on a disk that is full, the old one stays whole, and nothing is left", () => {
  disk.isFull = true;
  expect(() => rewrite(file, (text) => `${text}# more\n`)).toThrow("no space left");
  expect(fs.readFileSync(file, "utf8")).toBe('app = "shop"\n');
  expect(fs.readdirSync(directory)).toEqual(["app.toml"]);
});

test("one that is not UTF-8 is left alone", () => {
  const bytes = Buffer.from("# caf\xe9\n", "latin1");
  fs.writeFileSync(file, bytes);
  expect(() => rewrite(file, (text) => `${text}# more\n`)).toThrow(TypeError);
  expect(fs.readFileSync(file)).toEqual(bytes);
});
