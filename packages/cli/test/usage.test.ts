/**
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { NOUNS } from "../src/commands.ts";
import { closest } from "../src/suggest.ts";
import { PROGRAM, useCli } from "./helpers.ts";

const cli = useCli();
const { hibernaut, json } = cli;

describe("help", () => {
  test("of all and of a noun has examples", async () => {
    for (const words of ["--help", "-h", "", "machine --help", "apps -h", "tokens -h"]) {
      const { code, stdout } = await hibernaut(words);
      expect(code).toBe(0);
      expect(stdout).toContain("Examples:\n  $ hibernaut");
    }
    for (const words of ["--version", "-V", "-v", "version"])
      expect(await hibernaut(words)).toMatchObject({ code: 0, stdout: "0.1.0\n" });
  });

  test("is also what help shows, before or after a noun", async () => {
    const status = await hibernaut("machine status --help");
    expect(await hibernaut("help machine status")).toEqual(status);
    expect(await hibernaut("machine help status")).toEqual(status);
    expect(await hibernaut("help machines")).toEqual(await hibernaut("machine --help"));
    expect(await hibernaut("help")).toEqual(await hibernaut("--help"));
    expect(await hibernaut("help machine stauts")).toMatchObject({
      code: 2,
      stderr: "Error: Unknown command 'stauts'. Did you mean status?\n",
    });
  });

  test("begins with what one needs first", async () => {
    const [, first = "", more = ""] = (await hibernaut("")).stdout.split(
      /^(?:Commands to begin with|More commands):$/m,
    );
    const names = (text: string) => [...text.matchAll(/^ {2}(\w+)/gm)].map(([, name = ""]) => name);
    expect(names(first).toSorted().join(" ")).toBe("deploy doctor launch logs machine open ps secrets serve status");
    expect(names(more)).toEqual(expect.arrayContaining(["volumes", "usage", "completion"]));
  });

  test("shows every option that is not short for another", async () => {
    expect((await hibernaut("machine list --help")).stdout).toMatch(/-q, --quiet/);
    expect((await hibernaut("logs --help")).stdout).not.toContain("--tail");
  });
});

test("a reader that stops early is not a failure", async () => {
  const script = `"$0" "$1" --help | true; "$0" "$1" --help | head -n 1`;
  const { stdout, stderr } = await promisify(execFile)("sh", ["-c", script, process.execPath, PROGRAM]);
  expect({ stdout, stderr }).toEqual({ stdout: "Usage: hibernaut [options] [command]\n", stderr: "" });
});

describe("wrong usage ends with 2", () => {
  test.each([
    ["machin", "Error: Unknown command 'machin'. Did you mean machine?\n"],
    ["machine suspendd x", "Error: Unknown command 'suspendd'. Did you mean suspend?\n"],
    ["machine list --jsno", "Error: Unknown option '--jsno'. Did you mean --json?\n"],
    ["machine destroy", "Error: Missing required argument 'id'. See `hibernaut machine destroy --help`.\n"],
    ["destroy", "Error: Missing required argument 'id'. See `hibernaut destroy --help`.\n"],
    ["nosuch", "Error: Unknown command 'nosuch'. See `hibernaut --help`.\n"],
    ["machine nosuch", "Error: Unknown command 'nosuch'. See `hibernaut machine --help`.\n"],
    ["volumes list --colour", "Error: Unknown option '--colour'. See `hibernaut volumes list --help`.\n"],
    ["machine start --wait-timeout", /argument missing\. See `hibernaut machine start --help`\.\n$/],
    ["ssh console", /^Error: Unknown command 'ssh'\. A shell in a machine: hibernaut console/],
    ["auth login", /^Error: Unknown command 'auth'\. For images: hibernaut registry login/],
    ["rollback", /hibernaut deploy --image <reference>/],
    ["fork", "Error: Unknown command 'fork'. Did you mean hibernaut machine fork or hibernaut sandbox fork?\n"],
    ["list", "Error: Unknown command 'list'. See `hibernaut --help`.\n"],
    ["launch --org personal", "Error: Unknown option '--org'. Leave it out: a platform has no organizations.\n"],
    ["launch --ha=false", /^Error: Unknown option '--ha=false'\. Leave it out: one machine is created\./],
    ["launch -r fra", /^Error: Unknown option '-r'\. Leave it out, and name the region when you deploy/],
    ["deploy --remote-only", /^Error: Unknown option '--remote-only'\. Leave it out: images are built on this machine/],
    ["scale vm shared", /^Error: Unknown command 'vm'\. Memory: hibernaut scale memory/],
    [
      "machine run x --memory lots",
      /^Error: .*'lots' is invalid.* Use at least 128 MB and at most 32768 MB, in whole megabytes, as in 512, 512mb or 1gb\./,
    ],
    ["machine run x --autostop sleep", /^Error: .*'sleep' is invalid. Allowed choices are suspend, stop, off\./],
    ["machine run", /^Error: No image\./],
    ["machine start x --wait-timeout soon", /Use at least 1 second, .*5m/],
    ["machine run x --restart sometimes", /Allowed choices are never, on-failure, always, no\./],
    ["machine run x --check health", "Error: --check takes a path that begins with /, as in /health.\n"],
    ["machine console", /^Error: A shell needs a terminal\. To run one command: hibernaut machine exec/],
    ["machine exec -t -- sh", /^Error: --tty needs a terminal/],
    ["scale memory much", /^Error: `much` is not valid\. Use at least 128 MB/],
    ["secrets set FOO", /One argument has no value: there is no = in it\.\n$/],
    ["secrets set =FOO", /One argument has no name\.\n$/],
    ["machine run x -e A", "Error: --env takes NAME=value, not `A`.\n"],
    ["machine update x", /^Error: Nothing to change\./],
    ["machine wait x --state asleep", /^Error: `asleep` is not a valid --state\./],
    ["apps create", /^Error: Missing required argument 'name'\./],
    ["apps create a b", /^Error: Too many arguments/],
  ])("%s", async (words, message) => {
    const { code, stdout, stderr } = await hibernaut(words);
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain("    at ");
  });

  test("a noun alone shows its help", async () => {
    const { code, stderr } = await hibernaut("machine");
    expect(code).toBe(2);
    expect(stderr).toContain("Usage: hibernaut machine");
  });

  test("no app at all", async () => {
    await hibernaut("apps destroy shop --yes");
    const refused = await hibernaut("machine list", { HIBERNAUT_APP: "" });
    await hibernaut("apps create shop");
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /^Error: No app\. The platform has none yet: create one with `hibernaut apps create/,
      ),
    });
  });

  test("is one document with --json", async () => {
    expect(await json("machine strat")).toMatchObject({
      code: 2,
      document: { error: "usage", message: expect.stringContaining("start") },
    });
  });
});

describe("what other words do", () => {
  test.each([
    ["machines ls", "machine list"],
    ["app ls", "apps list"],
    ["volume ls", "volumes list"],
    ["secret ls", "secrets list"],
    ["ls", "ps"],
    ["machine rm nosuch", "machine destroy nosuch"],
    ["destroy nosuch", "machine destroy nosuch"],
    ["restart nosuch", "machine restart nosuch"],
    ["exec nosuch -- ls", "machine exec nosuch -- ls"],
    ["logs --tail 3", "logs -n 3"],
    ["secrets rm NOSUCH", "secrets unset NOSUCH"],
    ["hostnames rm no.such", "hostnames remove no.such"],
  ])("%s is %s", async (short, long) => {
    // A second may pass between the two.
    const ageless = async (words: string) => {
      const { code, stdout, stderr } = await hibernaut(words);
      return { code, stdout: stdout.replace(/\d+ s ago/g, "N s ago"), stderr };
    };
    expect(await ageless(short)).toEqual(await ageless(long));
  });

  test("--restart never is the app file's word", async () => {
    const { document } = await json("machine create x --restart never --stop-timeout 1m");
    expect(document.config).toMatchObject({ restart: { policy: "no" }, stop_config: { timeout: 60 } });
  });
});

describe("a suggestion is given where the spelling is close, and nowhere else", () => {
  const words = NOUNS.flatMap(({ name, commands }) => (name === "" ? commands.map((one) => one.name) : [name]));

  test.each([
    ["machin", "machine"],
    ["mahcine", "machine"],
    ["delpoy", "deploy"],
    ["volums", "volumes"],
    ["log", "logs"],
    ["auth", undefined],
    ["ssh", undefined],
    ["vm", undefined],
    ["", undefined],
  ])("%s: %s", (word, expected) => expect(closest(word, words)).toBe(expected));
});

test("what the platform refuses in an argument ends with 2 as well", async () => {
  expect(await hibernaut(["apps", "create", "Not A Name"])).toMatchObject({ code: 2, stdout: "" });
  expect(await hibernaut("logs --since soon")).toMatchObject({ code: 2 });
  expect(await hibernaut("apps destroy nosuch")).toMatchObject({ code: 1 });
});
