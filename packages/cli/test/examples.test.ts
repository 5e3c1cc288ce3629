/** The examples in the help of every command: the parser takes them, and they do what they show. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HibernautClient } from "@hibernaut/client";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { Receiver } from "../../events/test/webhooks/receiver.ts";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import type { Command, Noun } from "../src/command.ts";
import { NOUNS } from "../src/commands.ts";
import { complete } from "../src/completion/complete.ts";
import { Context, type GlobalOptions } from "../src/context.ts";
import { buildProgram } from "../src/program.ts";
import { useCli } from "./helpers.ts";

interface Listed {
  path: string[];
  command: Command;
}

const ALL = NOUNS.flatMap((noun) => listed(noun, []));

function listed({ name, commands, nouns = [] }: Noun, above: string[]): Listed[] {
  const path = name === "" ? above : [...above, name];
  return [
    ...commands.map((command) => ({ path: [...path, command.name], command })),
    ...nouns.flatMap((below) => listed(below, path)),
  ];
}

/** The words after `hibernaut` in a line of a shell. */
function wordsOf(example: string): string[] {
  const [, after = ""] = /(?:^|[ (])hibernaut(?: |$)([^|)]*)/.exec(example) ?? [];
  return after
    .replace(/ [<>] .*$/, "")
    .split(" ")
    .filter(Boolean);
}

interface Parsed {
  command: Command;
  args: string[];
  options: object;
  globals: GlobalOptions;
}

async function parse(words: readonly string[]): Promise<Parsed> {
  let parsed: Parsed | undefined;
  const program = buildProgram(NOUNS, "1", async (command, args, options, globals) => {
    parsed = { command, args, options, globals };
  });
  await program.parseAsync([...words], { from: "user" });
  if (parsed === undefined) throw new Error(`no command: ${words.join(" ")}`);
  return parsed;
}

const PUBLIC = ALL.filter(({ command }) => !command.name.startsWith("_"));

const EACH = PUBLIC.map((one) => [one.path.join(" "), one] as const);

test.each(EACH)("%s: every example is accepted, and help shows them", async (words, { path, command }) => {
  expect(command.examples.length).toBeGreaterThan(0);
  const meant = await Promise.all(command.examples.map(async (example) => (await parse(wordsOf(example))).command));
  expect(meant).toContain(command);
  let help = "";
  const program = buildProgram(
    NOUNS,
    "1",
    async () => {},
    (text) => (help += text),
  );
  await expect(program.parseAsync([...path, "--help"], { from: "user" })).rejects.toMatchObject({ exitCode: 0 });
  expect(help.startsWith(`Usage: hibernaut ${words} `), help).toBe(true);
  for (const example of command.examples) expect(help).toContain(`\n  $ ${example}`);
  expect(help).toContain("--json");
});

test.each(EACH)("%s: Tab offers it and all its options", (_, { path, command }) => {
  const offered = (...words: string[]) => complete(NOUNS, words).choices.map(({ word }) => word);
  expect(offered(...path)).toContain(command.name);
  const flags = (command.options ?? []).filter(({ hidden }) => hidden !== true).map(({ flags: text }) => text);
  const long = flags.map((text) => /--[a-z-]+/.exec(text)?.[0]);
  expect(offered(...path, "--")).toEqual(expect.arrayContaining([...long, "--json"]));
});

/** What this test does not run, and why, or which test does. */
const ELSEWHERE: Record<string, string> = {
  serve: "runs until Ctrl-C",
  proxy: "runs until Ctrl-C",
  doctor: "examines the host",
  uninstall: "changes the host",
  deploy: "needs a directory to build: test/deploy",
  "backup restore": "writes a directory of the host: backup.test.ts",
  "machine exec": "reads standard input",
  "machine console": "needs a terminal",
  "backup drill": "needs machines that reach nobody: backup-app.qemu.test.ts",
  ...Object.fromEntries(
    [
      "backup run",
      "backup cancel",
      ...["add", "show", "update", "check", "remove"].map((verb) => `backup targets ${verb}`),
    ].map((path) => [path, "needs a target: backup-targets.test.ts"]),
  ),
  "machine cp": "reads and writes files: copy.test.ts",
  "machine forward": "runs until Ctrl-C",
  "machine lease take": "holds back what other examples do: machine-lease.test.ts",
  "machine lease show": "needs a lease: machine-lease.test.ts",
  "machine lease release": "needs a lease: machine-lease.test.ts",
  "machine lease clear": "needs a lease: machine-lease.test.ts",
  "machine move": "needs a cluster: commands.qemu.test.ts",
  "cluster init": "needs a cluster: commands.qemu.test.ts",
  "cluster token": "needs a cluster: commands.qemu.test.ts",
  "cluster join": "needs a cluster: commands.qemu.test.ts",
  "cluster status": "needs a cluster: commands.qemu.test.ts",
  "cluster leave": "needs a cluster: commands.qemu.test.ts",
  "cluster remove": "needs a cluster: commands.qemu.test.ts",
  "cluster drop": "needs a cluster with a disputed machine: restored.qemu.test.ts",
  "cluster etcd": "needs a cluster: commands.qemu.test.ts",
  "cluster sign": "needs a cluster: commands.qemu.test.ts",
  "hosts drain": "needs a cluster: commands.qemu.test.ts",
  "hosts undrain": "needs a cluster: commands.qemu.test.ts",
  "hosts evacuate": "needs a cluster: commands.qemu.test.ts",
  mcp: "runs until its client goes: mcp.qemu.test.ts",
  "sandbox create": "needs the port of sandboxes: sandbox-words.qemu.test.ts",
  "sandbox exec": "reads standard input, as `machine exec`",
  "sandbox cp": "copies files of a guest, as `machine cp`: sandbox-words.qemu.test.ts",
  "sandbox env": "reads the settings of the host: sandbox.test.ts",
  "fly env": "reads the settings of the host: fly.test.ts",
  "sandbox template": "builds an image: sandbox.test.ts",
  "secrets import": "reads standard input",
  "registry login": "reads standard input",
  "images push": "needs an image: test/upload",
  "images cancel": "needs an upload: test/upload",
};

/** The commands that `--json` gives no document of their own: they print one line per entry. */
const LINES = new Set(["audit", "events", "logs", "compose logs"]);

describe("with a platform, the first example of each command works, with a document for --json", () => {
  const cli = useCli();
  let client: HibernautClient;
  const temp = useTempFolder("examples");
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await Receiver.open();
    client = new HibernautClient({ apiUrl: cli.server.url, token: cli.server.token });
    await writeFile(join(temp.path, "fly.toml"), 'app = "shop"\n[build]\n  image = "app:1"\n');
    await writeFile(join(temp.path, "compose.yaml"), "services: {web: {image: 'app:1', expose: [8080]}}");
    await writeFile(join(temp.path, "key.txt"), "secret");
    await client.logInToRegistry("ghcr.io", { username: "me", password: "right" });
  });
  afterAll(() => receiver.close());

  /** What the examples talk about: an app with a running machine and a template of it, a volume with a snapshot, a token. */
  async function names(): Promise<[named: RegExp, is: string][]> {
    const { machine_id: id } =
      (await client.listMachines("shop")).find(({ name }) => name === "web") ??
      (await client.createMachine("shop", {
        name: "web",
        config: {
          image: "app:1",
          services: [{ internal_port: 8080 }],
          metadata: { hibernaut_process_group: "worker" },
        },
      }));
    await client.waitForMachine("shop", id, { state: ["settled"] });
    await client.startMachine("shop", id);
    await client.waitForMachine("shop", id, { state: ["running"] });
    const volume = (await client.listVolumes("shop"))[0] ?? (await client.createVolume("shop", { name: "data" }));
    const snapshots = await client.listVolumeSnapshots("shop", volume.id);
    const snapshot = snapshots[0] ?? (await client.createVolumeSnapshot("shop", volume.id));
    const [token] = await client.listTokens();
    const [hook] = await client.listWebhooks();
    const { id: webhook } = hook ?? (await client.createWebhook({ url: receiver.url }));
    const [kept] = await client.listTemplates("shop");
    if (kept === undefined) await client.createTemplate("shop", { from: id, name: "before-upgrade" });
    // Examples of certificates are about a hostname that others remove.
    await client.addHostname("shop", "www.example.com");
    return [
      [/\b3f9c01ab22de41\b/, id],
      [/^agents$/, "shop"],
      [/\bvol_0123456789abcdef\b/, volume.id],
      [/\bvs_0123456789abcdef\b/, snapshot.id],
      [/\bwh_0123456789abcdef\b/, webhook],
      [/\b3f9c01ab22de\b/, (await client.listTokens()).find(({ name }) => name === "ci")?.id ?? token?.id ?? ""],
      [/@key\.txt$/, `@${join(temp.path, "key.txt")}`],
    ];
  }

  /** In some examples, what is done to an app or waited for depends on what was done before. */
  const INSTEAD: Record<string, [string, string]> = {
    "apps create": ["shop", "blog"],
    "compose plan": ["compose.prod.yaml", "compose.yaml"],
    "apps destroy": ["shop", "blog"],
    "machine wait": ["suspended", "running"],
  };

  const here = PUBLIC.filter(({ path, command }) => command.hidden !== true && !(path.join(" ") in ELSEWHERE));

  test.each(here.map((one) => [one.path.join(" "), one] as const))("%s", async (path, { command }) => {
    const at = vi.spyOn(process, "cwd").mockReturnValue(temp.path);
    const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    const printed = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    vi.stubEnv("HIBERNAUT_API_URL", cli.server.url);
    vi.stubEnv("HIBERNAUT_API_TOKEN", cli.server.token);
    vi.stubEnv("HIBERNAUT_APP", path === "launch" ? "" : "shop");
    onTestFinished(() => {
      for (const spy of [at, said, printed]) spy.mockRestore();
      vi.unstubAllEnvs();
    });
    // A drain that an example began would refuse what the next one does.
    if (path !== "undrain") await client.endDrain();
    const known = await names();
    const [from, to] = INSTEAD[path] ?? [];
    const example = command.examples.find((line) => wordsOf(line).slice(0, path.split(" ").length).join(" ") === path);
    const words = wordsOf(example ?? "").map((word) =>
      known.reduce((text, [named, is]) => text.replace(named, is), word === from ? (to ?? "") : word),
    );
    // Nobody answers.
    const confirmed = (command.options ?? []).some(({ flags }) => flags.includes("--yes")) ? ["--yes"] : [];
    // There is an app file already, and nothing to build.
    const more = path === "launch" ? ["--force", "--image", "app:1"] : [];
    const { args, options, globals } = await parse([...words, ...confirmed, ...more]);
    const result = await command.run(new Context(globals), args, options);
    expect(result.failures ?? []).toEqual([]);
    expect(typeof result.text).toBe("string");
    if (LINES.has(path)) expect(result.document).toBeUndefined();
    else expect(JSON.stringify(result.document)).toMatch(/^[[{"]/);
  });

  test("what is not run here is run elsewhere, and there is no other reason", () => {
    const paths = PUBLIC.map(({ path }) => path.join(" "));
    expect(Object.keys(ELSEWHERE).filter((path) => !paths.includes(path))).toEqual([]);
  });
});
