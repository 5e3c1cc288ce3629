/** An app whose file names no port, and that listens elsewhere than was assumed. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import type { Context } from "../../src/context.ts";
import { foundPort, onlyPort } from "../../src/deploy/found-port.ts";
import { freshCli } from "../helpers.ts";

const at = (address: string, port: number) => ({ address, port });

test.each<[string, { address: string; port: number }[] | undefined, number | undefined]>([
  ["at all addresses", [at("0.0.0.0", 3000)], 3000],
  ["at those of IPv6, which take IPv4 too", [at("::", 3000), at("0.0.0.0", 3000)], 3000],
  ["at two ports", [at("0.0.0.0", 3000), at("0.0.0.0", 9090)], undefined],
  ["at two ports, one of them inside only", [at("0.0.0.0", 3000), at("127.0.0.1", 9229)], undefined],
  ["inside only", [at("127.0.0.1", 3000)], undefined],
  ["at one address", [at("10.0.2.15", 3000)], undefined],
  ["on a port that Linux chose", [at("0.0.0.0", 40_123)], undefined],
  ["for its debugger, for now", [at("0.0.0.0", 9229)], undefined],
  ["for metrics, for now", [at("::", 9090)], undefined],
  ["nowhere", undefined, undefined],
])("an app that listens %s", (_what, listening, port) =>
  expect(onlyPort(listening === undefined ? {} : { listening })).toBe(port),
);

const FILE =
  'app = "shop" # mine\n[build]\nimage = "app:1"\n\n# The web.\n[http_service]\n  # Sleep.\n  auto_stop_machines = "suspend"\n';
const FOUND = FILE.replace("[http_service]\n", "[http_service]\n  internal_port = 3000\n");
let folder: string;
let file: string;
beforeEach(async () => {
  folder = await tempFolder("port");
  file = join(folder, "hibernaut.toml");
});

describe("after a machine did not work", () => {
  const said: string[] = [];
  let listening: () => ReturnType<typeof at>[];
  beforeEach(() => {
    said.splice(0);
    listening = () => [at("0.0.0.0", 3000)];
  });

  /** What is found for a machine that listens on 3000, of an app with releases that ended so, and this file. */
  function find(text: string | Buffer, ...releases: string[]): Promise<number | undefined> {
    writeFileSync(file, text);
    return lookFor(0, ...releases);
  }

  async function lookFor(onlyForMs: number, ...releases: string[]): Promise<number | undefined> {
    const client = {
      getMachine: async () => ({ listening: listening() }),
      listReleases: async (_app: string, { limit = 25 } = {}) => releases.slice(0, limit).map((status) => ({ status })),
    };
    const context = { app: "shop", client: async () => client, say: (line: string) => said.push(line) };
    const named = { preferring: () => context } as unknown as Context;
    return foundPort(named, "m1", file, onlyForMs);
  }

  test("its port is taken, said, and written into the file that names none", async () => {
    expect(await find(FILE, "failed", "abandoned")).toBe(3000);
    expect(readFileSync(file, "utf8")).toBe(FOUND);
    expect(said).toEqual([
      `The app listens on port 3000, and ${file} names no port. Wrote \`internal_port = 3000\` into it. That port is open to everybody at the app's hostname. Deploying again.`,
    ]);
    said.splice(0);
    expect(await find(`${FILE}[env]\nPORT = "8080"\n`)).toBe(3000);
    expect(readFileSync(file, "utf8")).toBe(`${FOUND}[env]\nPORT = "3000"\n`);
    expect(said[0]).toContain('Wrote `internal_port = 3000` and `PORT = "3000"` into it.');
  });

  test("an interruption ends the second look at once, and the file stays", async () => {
    writeFileSync(file, FILE);
    const looking = lookFor(HOUR_MS);
    await vi.waitFor(() => expect(process.listenerCount("SIGTERM")).toBeGreaterThan(before));
    process.emit("SIGTERM");
    await expect(looking).rejects.toThrow("The deploy was interrupted.");
    expect(process.listenerCount("SIGTERM")).toBe(before);
    expect(readFileSync(file, "utf8")).toBe(FILE);
  });
  const before = process.listenerCount("SIGTERM");
  const HOUR_MS = 3_600_000;

  test("it is not taken where the app opens another one a moment later", async () => {
    const looks = [[at("0.0.0.0", 3000)], [at("0.0.0.0", 3000), at("0.0.0.0", 5000)]];
    listening = () => looks.shift() ?? [];
    expect(await find(FILE)).toBeUndefined();
    expect(readFileSync(file, "utf8")).toBe(FILE);
  });

  test("a port that the file names, or with which a release worked, is left alone", async () => {
    const named = FOUND.replace("3000", "8080");
    expect(await find(named, "failed")).toBeUndefined();
    expect(readFileSync(file, "utf8")).toBe(named);
    expect(await find(FILE, "failed", "complete")).toBeUndefined();
    expect(await find(FILE, ...Array(30).fill("failed"), "complete")).toBeUndefined();
    expect(readFileSync(file, "utf8")).toBe(FILE);
    expect(said).toEqual([]);
  });

  test("what is left to do is said where the file has no place for it", async () => {
    const inline = 'http_service = { auto_stop_machines = "off" }\n';
    expect(await find(inline, "failed")).toBe(3000);
    expect(readFileSync(file, "utf8")).toBe(inline);
    expect(said[0]).toContain(
      "could not be written into the file: add `internal_port = 3000` to the service yourself.",
    );
  });

  test("and where the file is not UTF-8, whose bytes would not stay what they are", async () => {
    const bytes = Buffer.from(`# caf\xe9\n${FILE}`, "latin1");
    expect(await find(bytes, "failed")).toBe(3000);
    expect(readFileSync(file)).toEqual(bytes);
    expect(said[0]).toContain("add `internal_port = 3000` to the service yourself.");
  });
});

describe("a deploy of an app that listens on 3000, whatever it should", () => {
  const cli = freshCli();
  beforeEach(() => listens("0.0.0.0", 3000));
  function listens(...where: Parameters<typeof at>): void {
    cli.server.world.host.stubborn = [at(...where)];
  }
  const deploy = (options = "") => cli.hibernaut(`deploy --config ${file} ${options}`);

  test("finds that, and the next one changes nothing, from another copy of the file neither", async () => {
    writeFileSync(file, FILE);
    listens("127.0.0.1", 8080);
    expect((await deploy()).stderr).toContain("have it listen on 0.0.0.0:8080");
    // While it was mended, the machine fell asleep: it is started, as nobody knows whether it works.
    await cli.hibernaut("machine suspend");
    listens("0.0.0.0", 3000);
    writeFileSync(file, FILE.replace("app:1", "app:2"));
    const first = await deploy();
    expect(first.code, first.stderr).toBe(0);
    expect(readFileSync(file, "utf8")).toBe(FOUND.replace("app:1", "app:2"));
    expect((await cli.json("releases")).document).toMatchObject([
      { status: "complete" },
      { status: "failed", description: "The app listens on port 3000, which the next release has." },
      { status: "failed" },
    ]);
    expect((await deploy()).stdout).toContain("1 kept");
    writeFileSync(file, FILE.replace("app:1", "app:2"));
    expect((await deploy()).stdout).toContain("1 kept");
    expect((await cli.json("machine list")).document).toMatchObject([
      { config: { services: [{ internal_port: 3000 }] } },
    ]);
  });

  test.each([
    ["suspend", "is started, with its memory, to see whether it works", "running"],
    ["stop", "stays so, as its owner wants it", "stopped"],
  ])("before any release worked, a machine after `%s` that is current %s", async (how, _what, state) => {
    writeFileSync(file, FOUND.replace("3000", "8080"));
    listens("127.0.0.1", 8080);
    expect((await deploy()).code).toBe(1);
    const machine = async () => (await cli.json("machine list")).document[0];
    const { version } = await machine();
    await cli.hibernaut(`machine ${how}`);
    expect((await deploy()).stdout).toContain("1 kept");
    expect(await machine()).toMatchObject({ version, state });
  });

  test("is deployed once more only: an app that takes another port each time ends it with what is wrong", {
    tags: "again",
  }, async () => {
    writeFileSync(
      file,
      `${FILE.split("# The web")[0]}http_service = { auto_stop_machines = "off" }\n`.replace(
        "[build]\nimage",
        "build.image",
      ),
    );
    let port = 3000;
    Object.defineProperty(cli.server.world.host, "stubborn", { get: () => [at("0.0.0.0", port++)] });
    const { code, stderr } = await deploy();
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("0.0.0.0:3001: name that port"),
    });
    expect(stderr.split("Deploying again")).toHaveLength(2);
  });

  test("fails with a port that the file names, also when it is repeated without a change", {
    tags: "again",
  }, async () => {
    writeFileSync(file, FOUND.replace("3000", "8080"));
    for (const _ of [1, 2])
      expect(await deploy()).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("0.0.0.0:3000: name that port"),
      });
  });
});
