import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NOUNS } from "../src/registry.ts";
import { startCli, type TestCli } from "./helpers.ts";

let cli: TestCli;
let hibernaut: TestCli["hibernaut"];
let json: TestCli["json"];

beforeAll(async () => {
  cli = await startCli();
  ({ hibernaut, json } = cli);
}, 60_000);
afterAll(() => cli.close());

describe("help", () => {
  const all = NOUNS.flatMap(({ name, commands }) =>
    commands.map((command) => [...(name === "" ? [] : [name]), command.name]),
  );

  test.each(all.map((words) => [words.join(" ")]))("of %s has an example", async (words) => {
    const { code, stdout, stderr } = await hibernaut([...words.split(" "), "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`^Usage: hibernaut ${words} `));
    expect(stdout).toMatch(new RegExp(`Examples:\n.*(\\$ |\\()hibernaut ${words}|${words}`));
    expect(stdout).toContain("--json");
  });

  test("of all and of a noun have examples too", async () => {
    for (const args of [["--help"], ["-h"], [], ["machine", "--help"], ["apps", "-h"], ["tokens", "-h"]]) {
      const { code, stdout } = await hibernaut(args);
      expect(code).toBe(0);
      expect(stdout).toContain("Examples:\n  $ hibernaut");
    }
    expect(await hibernaut(["--version"])).toMatchObject({ code: 0, stdout: "0.1.0\n" });
  });
});

test("a reader that stops early is no failure", async () => {
  const program = join(import.meta.dirname, "../bin/hibernaut.js");
  const script = `"$0" "$1" --help | true; "$0" "$1" --help | head -n 1`;
  const { stdout, stderr } = await promisify(execFile)("sh", ["-c", script, process.execPath, program]);
  expect({ stdout, stderr }).toEqual({ stdout: "Usage: hibernaut [options] [command]\n", stderr: "" });
});

describe("wrong usage ends with 2", () => {
  test.each([
    [["machin"], "Error: Unknown command 'machin'. Did you mean machine?\n"],
    [["machine", "suspendd", "x"], "Error: Unknown command 'suspendd'. Did you mean suspend?\n"],
    [["machine", "list", "--jsno"], "Error: Unknown option '--jsno'. Did you mean --json?\n"],
    [["machine", "destroy"], "Error: Missing required argument 'id'. See `hibernaut --help`.\n"],
    [
      ["machine", "run", "x", "--memory", "lots"],
      /^Error: .*'lots' is invalid.* It takes a size of at least 1 MB, in whole MB: 512, 512mb or 1gb\./,
    ],
    [
      ["machine", "run", "x", "--autostop", "sleep"],
      /^Error: .*'sleep' is invalid. Allowed choices are suspend, stop, off\./,
    ],
    [["machine", "run"], /^Error: No image is named\./],
    [["machine", "run", "x", "-e", "A"], "Error: --env takes NAME=value, not `A`.\n"],
    [["machine", "update", "x"], /^Error: Nothing is to be changed\./],
    [["machine", "wait", "x", "--state", "asleep"], /^Error: --state knows no `asleep`\./],
    [["apps", "create"], /^Error: Missing required argument 'name'\./],
    [["apps", "create", "a", "b"], /^Error: Too many arguments/],
  ])("%j", async (args, message) => {
    const { code, stdout, stderr } = await hibernaut(args);
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain("    at ");
  });

  test("a noun alone shows its help", async () => {
    const { code, stderr } = await hibernaut(["machine"]);
    expect(code).toBe(2);
    expect(stderr).toContain("Usage: hibernaut machine");
  });

  test("no app at all", async () => {
    expect(await hibernaut(["machine", "list"], { HIBERNAUT_APP: "" })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^Error: No app is named\. Add --app/),
    });
  });

  test("is one document with --json", async () => {
    expect(await json(["machine", "strat"])).toMatchObject({
      code: 2,
      document: { error: "usage", message: expect.stringContaining("start") },
    });
  });
});
