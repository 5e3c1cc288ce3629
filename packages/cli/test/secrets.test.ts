/**
 * @module-tag again
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { beforeEach, describe, expect, test } from "vitest";
import { parseSecrets, readSecrets } from "../src/secret-arguments.ts";
import { useCli } from "./helpers.ts";

const cli = useCli();
const { hibernaut, json } = cli;
beforeEach(() => {
  const { secrets } = cli.server.platform;
  for (const { name } of secrets.list("shop")) secrets.unset("shop", name);
});

const VALUE = "s3cret-value";
const names = async () => (await json("secrets list")).document.map(({ name }: { name: string }) => name);

async function suspendedMachine(): Promise<string> {
  const id = await cli.run();
  await hibernaut(`machine suspend ${id}`);
  return id;
}

test("are set, listed and unset, and no value is ever shown", async () => {
  expect((await hibernaut("secrets list")).stdout).toBe("App shop has no secrets.\n");
  const set = await hibernaut(`secrets set A=${VALUE} B=x=y C=`);
  expect(set).toMatchObject({ code: 0, stdout: "Set: A, B, C.\n", stderr: "" });
  const list = await hibernaut("secrets list");
  expect(list.stdout).toMatch(/^NAME +DIGEST +UPDATED\nA +[0-9a-f]{16} +.* ago\nB /);
  expect(set.stdout + list.stdout).not.toContain(VALUE);
  expect(await hibernaut("secrets unset A B")).toMatchObject({ code: 0, stdout: "Unset: A, B.\n" });
  expect(await names()).toEqual(["C"]);
  expect(await hibernaut("secrets unset C NONE")).toMatchObject({ code: 1 });
  expect(await names()).toEqual(["C"]);
});

describe("a snapshot that would go", () => {
  test("is named first; without a terminal and without --yes nothing happens", async () => {
    const id = await suspendedMachine();
    const refused = await hibernaut(`secrets set A=${VALUE}`);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain(`The snapshots of ${id} will be discarded`);
    expect(refused.stderr).toContain("Add --yes");
    expect(await names()).toEqual([]);
    const done = await hibernaut(`secrets set A=${VALUE} --yes`);
    expect(done).toMatchObject({ code: 0, stdout: `Set: A.\nSnapshots discarded: ${id}.\n` });
    expect(done.stderr).toContain(`The snapshots of ${id} will be discarded`);
    await hibernaut(`machine destroy ${id}`);
  });

  test("is named before an unset, too", async () => {
    await hibernaut("secrets set A=1");
    const id = await suspendedMachine();
    expect(await hibernaut("secrets unset A")).toMatchObject({ code: 2 });
    expect(await json("secrets unset A --yes")).toEqual({
      code: 0,
      document: { secrets: ["A"], discarded: [id], pending: [] },
    });
    await hibernaut(`machine destroy ${id}`);
  });
});

test("machines that run are told of", async () => {
  const id = await cli.run();
  const { stdout } = await hibernaut("secrets set A=1");
  expect(stdout).toBe(`Set: A.\nRunning machines see the change after: hibernaut machine restart ${id}\n`);
  await hibernaut(`machine destroy ${id} --force`);
});

test("a value comes from standard input", async () => {
  expect(await hibernaut("secrets set A=-", {}, `${VALUE}\n`)).toMatchObject({ code: 0, stdout: "Set: A.\n" });
  await hibernaut(`secrets set B=${VALUE}`);
  const [a, b] = (await json("secrets list")).document;
  expect(a.digest).toBe(b.digest);
});

describe("words", () => {
  const read = async (words: string[], input = "") =>
    (await readSecrets(words, Readable.from([Buffer.from(input)]))).values;

  test("are read as they are, from a file or from standard input", async () => {
    const file = join(cli.server.world.folder, "value");
    writeFileSync(file, "two\nlines\n");
    expect(await read(["A=a=b", "B=", "C=-", `D=@${file}`], "in\r\n")).toEqual({
      A: "a=b",
      B: "",
      C: "in",
      D: "two\nlines",
    });
    expect((await readSecrets(["A=1"])).usedStdin).toBe(false);
  });

  test.each([[[VALUE]], [[`=${VALUE}`]], [["A=1", "A=2"]], [["A=-", "B=-"]], [[`A=@/no/${VALUE}`]]])(
    "that are wrong are a usage error that repeats none: %#",
    async (words) => {
      const failure = await read(words).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: "usage", message: expect.not.stringContaining(VALUE) });
    },
  );

  test("bytes that are not text are refused", async () => {
    await expect(readSecrets(["A=-"], Readable.from([Buffer.from([0xff, 0xfe])]))).rejects.toMatchObject({
      code: "usage",
    });
  });
});

describe("a .env file", () => {
  test("sets all that is in it, and leaves the rest", async () => {
    await hibernaut("secrets set OLD=1");
    const file = "# of the shop\nDB_URL='postgres://a:b@c/d'\n\nexport KEY=x=y\n";
    const imported = await hibernaut("secrets import", {}, file);
    expect(imported).toMatchObject({ code: 0, stdout: "Set: DB_URL, KEY.\n" });
    expect(await names()).toEqual(expect.arrayContaining(["DB_URL", "KEY", "OLD"]));
  });

  test("may have quotes, comments and values of several lines", () => {
    expect(parseSecrets("A=\"one\ntwo\"\n  # none\nexport B= b \r\nC='#c'\n")).toEqual({
      A: "one\ntwo",
      B: "b",
      C: "#c",
    });
  });

  test.each([
    [`A=1\n${VALUE}\n`, "Line 2 is not NAME=value."],
    ["\n# nothing\n", "contains no NAME=value"],
  ])("that is not valid is refused, and its content is not repeated: %#", (content, message) => {
    expect(() => parseSecrets(content)).toThrow(message);
    expect(() => parseSecrets(content)).not.toThrow(VALUE);
  });
});
