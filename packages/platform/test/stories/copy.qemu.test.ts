/**
 * `machine cp` and `machine forward` with a machine whose image has no shell and no tar: only the app, as user 1000.
 *
 * @module-tag again
 */
import { type ChildProcess, execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { pack as newArchive } from "tar-stream";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { runCli, spawnCli } from "../../../cli/test/real-cli.ts";
import { Place } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const place = Place.forTests();
let id: string;
let here: string;
beforeAll(async () => {
  id = (await place.machine()).machine_id;
});
beforeEach(async () => {
  here = await tempFolder("copy");
});

const cp = (...words: string[]) => runCli(place, ["machine", "cp", ...words], { cwd: here });
const sum = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const local = (...parts: string[]) => join(here, ...parts);

/** Owner, permissions and kind of everything in the machine below a path, as the archive says. */
async function listed(path: string): Promise<string[]> {
  await writeFile(local("listed.tar"), await place.client.readArchive(place.app, id, path));
  const { stdout } = await promisify(execFile)("tar", ["--numeric-owner", "-tvf", local("listed.tar")]);
  return stdout.trimEnd().split("\n");
}

test("a file goes in and comes back the same, with its permissions, and belongs to the image's user", async () => {
  const content = randomBytes(3_000_001);
  await writeFile(local("a"), content);
  await chmod(local("a"), 0o640);
  expect(await cp("a", `${id}:/tmp/b`)).toMatchObject({ code: 0, out: `Copied 1 entry, 2.9 MB, to ${id}:/tmp/b.\n` });
  expect(await listed("/tmp/b")).toEqual([expect.stringMatching(/^-rw-r----- 1000\/1000 +3000001 /)]);
  const { code, out } = await cp("--json", ":/tmp/b", "c");
  expect({ code, ...JSON.parse(out) }).toEqual({
    code: 0,
    machine_id: id,
    target: local("c"),
    entries: 1,
    bytes: 3_000_001,
  });
  expect(sum(await readFile(local("c")))).toBe(sum(content));
  expect((await lstat(local("c"))).mode & 0o777).toBe(0o640);
});

test("a path that is not there, a target that is a file, and a machine that sleeps: the error says what to do", {
  tags: "again",
}, async () => {
  await mkdir(local("d"));
  expect(await cp(":/no/such", ".")).toMatchObject({
    code: 1,
    err: expect.stringMatching(/\/no\/such: No such file.*Check the path/),
  });
  expect(await cp("d", ":/app")).toMatchObject({ code: 2, err: expect.stringMatching(/\/app is a file/) });
  expect(await cp("d", ":/no/such")).toMatchObject({ code: 1, err: expect.stringMatching(/\/no: No such file/) });
  expect(await cp("a", "b")).toMatchObject({ code: 2, err: expect.stringMatching(/Neither path is in a machine/) });
  expect(await readdir(here)).toEqual(["d"]);
});

test("a copy that is cut off leaves the old file and nothing else", async () => {
  await writeFile(local("old"), "old");
  expect(await cp("old", ":/tmp/cut/")).toMatchObject({ code: 2 });
  await mkdir(local("cut"));
  await writeFile(local("cut/file"), "old");
  expect(await cp("cut", ":/tmp/cut")).toMatchObject({ code: 0 });
  const stop = new AbortController();
  const archive = newArchive();
  // The file never ends: 64 KB of a MB.
  const entry = archive.entry({ name: "file", size: 1 << 20 });
  entry.on("error", () => {}); // It is cut off, too.
  entry.write(Buffer.alloc(65_536));
  const body = archive as unknown as Readable;
  const writing = place.client.writeArchive(place.app, id, "/tmp/cut", body, { signal: stop.signal });
  const temporary = async () => (await listed("/tmp/cut")).filter((line) => line.includes(".hibernaut-"));
  await expect.poll(temporary, { timeout: 20_000 }).toHaveLength(1);
  stop.abort(new Error("enough"));
  await expect(writing).rejects.toThrow("enough");
  await expect.poll(temporary, { timeout: 20_000 }).toHaveLength(0);
  expect(await cp(":/tmp/cut/file", "now")).toMatchObject({ code: 0 });
  expect(await readFile(local("now"), "utf8")).toBe("old");
});

describe("forward", () => {
  let address: { host: string; port: number };
  let closed: { host: string; port: number };
  let forward: ChildProcess;
  let said = "";
  beforeAll(async () => {
    forward = spawnCli(place, ["machine", "forward", id, "0:8080", "0:9", "--json"]);
    forward.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")));
    const [line] = (await once(forward.stdout as Readable, "data")) as [Buffer];
    const { forwards } = JSON.parse(line.toString("utf8")) as { forwards: { listen: string; port: number }[] };
    expect(forwards.map(({ port }) => port)).toEqual([8080, 9]);
    const [first = "", other = ""] = forwards.map(({ listen }) => listen);
    address = addressOf(first);
    closed = addressOf(other);
  });
  afterAll(() => void forward.kill("SIGKILL"));

  /** The client has nothing more to say then. */
  const ask = (path: string) => {
    const socket = connect({ ...address, allowHalfOpen: true });
    socket.end(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    return text(socket);
  };

  test("several connections at once, and one whose client has nothing more to say", async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask("/health")));
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1.1 200 [^]*fine/);
    expect(await ask("/wait/300")).toMatch(/began [^]*ended/);
  });

  test("a port that nothing listens on: the connection is closed, and the command says why", {
    tags: "again",
  }, async () => {
    const socket = connect(closed);
    socket.on("error", () => {});
    await once(socket, "close");
    await expect.poll(() => said, { timeout: 30_000 }).toContain(`Nothing listens on port 9 of machine ${id}.`);
  });

  test("a connection wakes the machine, and an open one continues after a sleep", async () => {
    const open = connect(address);
    let heard = "";
    open.on("data", (chunk: Buffer) => (heard += chunk.toString("utf8")));
    const health = "GET /health HTTP/1.1\r\nhost: a\r\n\r\n";
    open.write(health);
    await expect.poll(() => heard, { timeout: 30_000 }).toContain("fine");
    await place.suspend(id);
    expect(await ask("/health")).toContain("fine");
    expect(await place.get(id)).toMatchObject({ state: "running", last_boot: { kind: "resume" } });
    await place.suspend(id);
    heard = "";
    open.write(health);
    await expect.poll(() => heard, { timeout: 30_000 }).toContain("fine");
    open.destroy();
  });

  test("Ctrl-C ends it, with connections that are open or were refused", async () => {
    expect(forward.exitCode, said).toBeNull();
    said = "";
    const [open, refused] = [connect(address), connect(closed)];
    for (const socket of [open, refused]) socket.on("error", () => {});
    open.write("GET /wait/3000 HTTP/1.1\r\nhost: a\r\n\r\n");
    await once(open, "data");
    refused.write("x");
    await expect.poll(() => said, { timeout: 30_000 }).toContain("Nothing listens on port 9");
    forward.kill("SIGINT");
    expect(await once(forward, "exit")).toEqual([0, null]);
  });
});

function addressOf(listen: string): { host: string; port: number } {
  const [host = "", port] = listen.split(":");
  return { host, port: Number(port) };
}
