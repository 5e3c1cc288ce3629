/** What a shell offers after Tab: by the rules, and in the shells themselves. */
import { execFile } from "node:child_process";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { findTool, TEST_TOOLS, toolEnvironment } from "../../../scripts/lib/test-tools.mjs";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import { NOUNS } from "../src/commands.ts";
import { complete } from "../src/completion/complete.ts";
import { SCRIPTS, SHELLS } from "../src/completion/scripts.ts";
import { useCli } from "./helpers.ts";

/** Types a line and Tab into an interactive zsh, and prints what became of the line. */
const ASK_ZSH = `
module_path=(${TEST_TOOLS}/usr/lib/*/zsh/*(N) $module_path)
zmodload zsh/zpty
zpty shell "$commands[zsh] -f -i"
zpty -w shell "module_path=($module_path); fpath=(${TEST_TOOLS}/usr/share/zsh/functions/**/*(N/) \\$fpath)
  autoload -Uz compinit; compinit -u -D; source ./completion.zsh
  dump() { print -r -- \\$BUFFER > line.new; mv line.new line }; zle -N dump; bindkey '^X' dump"
zpty -w -n shell "$1"$'\\t\\x18'
repeat 400; do [[ -e line ]] && break; sleep 0.05; done
cat line
zpty -d shell
`;
const FISH_FUNCTIONS = join(TEST_TOOLS, "usr/share/fish/functions");

const offered = (words: readonly string[]) => complete(NOUNS, words).choices.map(({ word }) => word);

describe("commands and options", () => {
  test.each([
    ["mach", "machine"],
    ["sta", "status start"],
    ["machine sta", "status start"],
    ["volumes snapshots c", "create"],
    ["m sta", "status start"],
    ["ma sta", ""],
    ["nothing ", ""],
    ["--h", "--help"],
    ["machine run --autosto", "--autostop --autostop-fallback"],
    ["machine run --autostop s", "suspend stop"],
    ["machine run --autostop=s", "--autostop=suspend --autostop=stop"],
    ["machine run --autostart ", "on off"],
    ["deploy --env A=1 --en", "--env"],
    ["deploy --image x --imag", ""],
    ["exec -- --", ""],
    ["__", ""],
  ])("%j: %s", (line, expected) => {
    expect(offered(line.split(" ")).join(" ")).toBe(expected);
  });

  test("no words make it fail, and all it offers begins with the last word", () => {
    const known = NOUNS.flatMap(({ name, commands }) => [name, ...commands.map((command) => command.name)]);
    const word = fc.oneof(fc.constantFrom(...known, "-", "--", "--app", "--env", "--app=", "-a", ""), fc.string());
    fc.assert(
      fc.property(fc.array(word, { maxLength: 6 }), (words) => {
        for (const choice of offered(words)) expect(choice.startsWith(words.at(-1) ?? "")).toBe(true);
      }),
    );
  });
});

describe("names", () => {
  test.each<[string, object | undefined]>([
    ["stop ", { kind: "machine", app: undefined, before: "" }],
    ["stop --app shop one ", { kind: "machine", app: "shop", before: "" }],
    ["stop --app=shop ", { kind: "machine", app: "shop", before: "" }],
    ["stop --app ", { kind: "app", app: undefined, before: "" }],
    ["stop --app=", { kind: "app", app: undefined, before: "--app=" }],
    ["apps destroy ", { kind: "app", app: undefined, before: "" }],
    ["apps destroy shop ", undefined],
    ["apps create ", undefined],
    ["secrets unset A ", { kind: "secret", app: undefined, before: "" }],
    ["deploy -c ", { kind: "file", app: undefined, before: "" }],
  ])("%j: %j", (line, expected) => {
    expect(complete(NOUNS, line.split(" ")).names).toEqual(expected);
  });
});

describe("in the shells", { tags: "again" }, () => {
  const cli = useCli();
  const temp = useTempFolder("completion");
  let folder: string;
  let environment: NodeJS.ProcessEnv;
  beforeAll(async () => {
    await cli.hibernaut("machine create app:1 --name hushed-newt");
    folder = temp.path;
    await mkdir(join(folder, "bin"));
    await symlink(join(import.meta.dirname, "../bin/hibernaut"), join(folder, "bin/hibernaut"));
    await writeFile(join(folder, "hibernaut.toml"), "");
    environment = {
      ...toolEnvironment(),
      PATH: `${join(folder, "bin")}:${dirname(findTool("zsh"))}:${process.env.PATH ?? ""}`,
      HOME: folder,
      XDG_CONFIG_HOME: folder,
      HIBERNAUT_API_URL: cli.server.url,
      HIBERNAUT_API_TOKEN: cli.server.token,
      HIBERNAUT_APP: "shop",
    };
    await writeFile(join(folder, "ask.zsh"), ASK_ZSH);
    for (const shell of SHELLS) await writeFile(join(folder, `completion.${shell}`), SCRIPTS[shell]);
  });

  const run = async (shell: string, args: string[]) => {
    const { stdout } = await promisify(execFile)(findTool(shell), args, {
      env: environment,
      cwd: folder,
      timeout: 30_000,
    });
    return stdout.split("\n").filter((line) => line !== "");
  };

  /** Each returns the words that the shell would offer for the line. */
  const ASK: Record<string, (line: string) => Promise<string[]>> = {
    bash: (line) =>
      run("bash", [
        "--norc",
        "-c",
        `source completion.bash; COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE}; _hibernaut; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ]),
    zsh: async (line) => {
      await rm(join(folder, "line"), { force: true });
      const [completed = ""] = await run("zsh", ["-f", "ask.zsh", line]);
      return [completed.trimEnd().split(" ").at(-1) ?? ""];
    },
    fish: async (line) =>
      (
        await run("fish", [
          "--no-config",
          "-c",
          `set -p fish_function_path ${FISH_FUNCTIONS}; source completion.fish; complete -C '${line}'`,
        ])
      ).map((found) => found.split("\t")[0] ?? ""),
  };

  test.each(Object.keys(ASK))("%s offers commands, options, names of the platform, and files", async (shell) => {
    const ask = ASK[shell] ?? expect.fail();
    expect(await ask("hibernaut mach")).toEqual(["machine"]);
    expect(await ask("hibernaut machine run --autostop sus")).toEqual(["suspend"]);
    expect(await ask("hibernaut stop h")).toEqual(["hushed-newt"]);
    expect(await ask("hibernaut logs --app sh")).toEqual(["shop"]);
    expect(await ask("hibernaut deploy --config hib")).toEqual(["hibernaut.toml"]);
  });

  test.each(["bash", "fish"])("%s offers every word that fits", async (shell) => {
    expect((await ASK[shell]?.("hibernaut machine sta"))?.sort()).toEqual(["start", "status"]);
    expect((await ASK[shell]?.("hibernaut stop "))?.sort()).toEqual(["hushed-newt"]);
  });

  test("bash offers what follows the = at which it cuts words", async () => {
    expect(await ASK.bash?.("hibernaut machine run --autostop=s")).toEqual(["suspend", "stop"]);
  });

  test("nothing is offered, and nothing printed, when the platform does not answer", async () => {
    environment.HIBERNAUT_API_URL = "http://127.0.0.1:1";
    expect(await ASK.bash?.("hibernaut stop ")).toEqual([]);
    environment.HIBERNAUT_API_URL = cli.server.url;
  });

  test("a shell without a script is refused with those that have one", async () => {
    const { code, stderr } = await cli.hibernaut("completion tcsh");
    expect(stderr).toBe('Error: There is no completion for "tcsh". Use bash, zsh, fish.\n');
    expect(code).toBe(2);
  });
});
