/** What decides about builds: steps, names, places of files, logs and links. */
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { Bytes, headsOf, nextEntry, padded, padding, TAR_END, type TarEntry } from "@hibernaut/images/tar";
import { describe, expect, test } from "vitest";
import { openArchive } from "../src/build/archive.ts";
import { expanded, variablesIn } from "../src/build/expand.ts";
import { LONGEST_LINE, MOST_LOG_ENTRIES } from "../src/build/limits.ts";
import { UploadLinks } from "../src/build/links.ts";
import { BuildLog, partOf } from "../src/build/log.ts";
import { parentOf, type SentParent } from "../src/build/parent.ts";
import { below, sourceOf } from "../src/build/place.ts";
import { after, stepsOf } from "../src/build/steps.ts";
import { builtName, namedTemplate } from "../src/life/names.ts";

const HASH = "a".repeat(64);

describe("steps", () => {
  test("are read as clients send them", () => {
    const steps = stepsOf([
      { type: "ENV", args: ["A", "1", "B", ""] },
      { type: "COPY", args: ["src/*", "/app", "node:node", "0755"], filesHash: HASH },
      { type: "RUN", args: ["make", "root"] },
      { type: "USER", args: ["node"] },
    ]);
    expect(steps).toEqual([
      { type: "ENV", env: { A: "1", B: "" } },
      { type: "COPY", source: "src/*", target: "/app", user: "node:node", mode: 0o755, hash: HASH },
      { type: "RUN", command: "make", user: "root" },
      { type: "USER", user: "node" },
    ]);
    const begun = { env: { A: "0", C: "3" } };
    expect(steps.reduce(after, begun)).toEqual({ user: "node", env: { A: "1", B: "", C: "3" } });
  });

  test.each([
    [{ type: "RUN", args: [""] }, /no command/],
    [{ type: "RUN", args: ["a\0b"] }, /zero byte/],
    [{ type: "RUN", args: ["a", "-u root"] }, /cannot be a user/],
    [{ type: "COPY", args: ["a", "b"] }, /filesHash/],
    [{ type: "COPY", args: ["a", "b"], filesHash: `../${HASH}` }, /filesHash/],
    [{ type: "COPY", args: ["a", "b", "", "rwx"], filesHash: HASH }, /octal/],
    [{ type: "ENV", args: ["A"] }, /no value/],
    [{ type: "ENV", args: ["A=B", "1"] }, /name of a variable/],
    [{ type: "WORKDIR", args: [] }, /path is missing/],
    [{ type: "FROM", args: ["x"] }, /is not a step/],
  ])("%j is refused with the number of the step", (step, why) => {
    expect(() => stepsOf([{ type: "RUN", args: ["true"] }, step])).toThrow(why);
    expect(() => stepsOf([{ type: "RUN", args: ["true"] }, step])).toThrow(/^Step 2 /);
  });

  test("variables of all steps together are bounded", () => {
    const [large] = stepsOf([{ type: "ENV", args: ["A", "x".repeat(30_000)] }]);
    const [more] = stepsOf([{ type: "ENV", args: ["B", "x".repeat(30_000), "C", "x".repeat(30_000)] }]);
    if (large === undefined || more === undefined) throw new Error("no steps");
    expect(() => after(after({}, large), more)).toThrow(/at most 65536 bytes/);
  });
});

test("variables in the values of others are replaced, and all else stays", () => {
  const values = ["/opt/bin:$PATH", "${HOME}/x $HOME", "5$ $5 \\$PATH ${bad-} $(id) `id` $NOT_THERE."];
  expect(variablesIn(values)).toEqual(["PATH", "HOME", "NOT_THERE"]);
  const known = new Map([
    ["PATH", "/bin"],
    ["HOME", "$PATH"],
  ]);
  expect(values.map((value) => expanded(value, known, { most: 100, tooLong: new Error("too long") }))).toEqual([
    "/opt/bin:/bin",
    "$PATH/x $PATH",
    "5$ $5 $PATH ${bad-} $(id) `id` .",
  ]);
  // Before there is a value of gigabytes.
  const long = new Map([["A", "x".repeat(30_000)]]);
  const limit = { most: 65_536, tooLong: new Error("too long") };
  expect(() => expanded("$A".repeat(16_000), long, limit)).toThrow("too long");
});

test("a name has a tag or none, and becomes a label that belongs to one build", () => {
  expect(namedTemplate("Team/My_App:v1.0")).toEqual({ name: "my_app", tag: "v1.0" });
  expect(namedTemplate("app")).toEqual({ name: "app", tag: undefined });
  for (const word of ["", ":v1", "app:", "a b", "app:v 1", "../app:x/y z", "x".repeat(129)])
    expect(() => namedTemplate(word)).toThrow(/cannot be/);
  const build = "01234567-89ab-4def-8123-456789abcdef";
  expect(builtName("my_app", build)).toBe("my-app-01234567");
  expect(builtName("__", build)).toBe("template-01234567");
  expect(builtName("x".repeat(128), build).length).toBeLessThanOrEqual(63);
});

test("a build begins from an image, from the base in another size, or from a template as it is", () => {
  const config = { image: "oci:/base", env: { A: "1" }, guest: { memory_mb: 512 } };
  const base = { id: "0".repeat(14), machine: { config } as unknown as MachineRecord };
  const from = (sent: SentParent, memoryMb?: number, parent = base) =>
    parentOf(
      sent,
      { cpus: undefined, memoryMb },
      () => parent,
      (image) => image === "oci:/base",
    );
  // What is on the host is not the tenant's, unless the operator gave it to the app.
  for (const image of [
    "docker-archive:/srv/other.tar",
    "docker-daemon:internal:latest",
    "oci:/srv/other",
    "oci-archive:/x",
  ])
    expect(() => from({ fromImage: image })).toThrow(expect.objectContaining({ status: 403 }));
  expect(from({ fromImage: "oci:/base" })).toMatchObject({ config: { image: "oci:/base" } });
  expect(from({ fromImage: "python:3" }, 1024)).toMatchObject({
    config: { image: "python:3", guest: { memory_mb: 1024 }, init: { exec: ["sleep", "infinity"] } },
  });
  expect(from({ fromImage: "e2bdev/base" })).toMatchObject({ template: base.id, asLarge: true });
  expect(from({ fromImage: "e2bdev/base:latest" }, 512)).toMatchObject({ template: base.id });
  expect(from({}, 1024)).toEqual({ title: "base", config: { ...config, guest: { memory_mb: 1024 } } });
  expect(from({ fromTemplate: "own" }, 1024)).toMatchObject({ template: base.id, asLarge: false });
  // One that is called base and is more than its configuration.
  const built = { ...base, machine: { ...base.machine, programs: { user: "root" } } };
  expect(from({}, 1024, built)).toMatchObject({ template: base.id, programs: { user: "root" }, asLarge: false });
  expect(() => from({ fromImage: "a", fromTemplate: "b" })).toThrow(/Leave one of them out/);
  expect(() => from({ fromImage: "a", fromImageRegistry: { type: "registry" } })).toThrow(/the operator's/);
});

describe("places", () => {
  test("are counted from what the step names, or from where its pattern begins", () => {
    const placed = (source: string, path: string) => below(sourceOf(source), path);
    expect(placed("site", "site")).toBe("");
    expect(placed("./site/", "site/a/b")).toBe("a/b");
    expect(placed(".", "a/b")).toBe("a/b");
    expect(placed("src/*.ts", "src/a.ts")).toBe("a.ts");
    expect(placed("src/**/*.ts", "src/deep/a.ts")).toBe("deep/a.ts");
    expect(placed("{a,b}/x", "a/x")).toBe("a/x");
    expect(sourceOf("app (1)/index.html")).toEqual({ from: "app (1)/index.html", pattern: false });
    for (const path of ["/etc/passwd", "site/../../x", "..", "other/x", "sitex/a"])
      expect(() => placed("site", path)).toThrow(/leads out|not what the step copies/);
    expect(() => sourceOf("../x")).toThrow(/leads out/);
  });
});

const NOTHING = {
  mode: 0o644,
  uid: 7,
  gid: 7,
  time: 5,
  size: 0,
  target: "",
  device: [0, 0],
  xattrs: new Map(),
} as const;

function archive(...entries: (Partial<TarEntry> & { path: string; content?: string })[]): Buffer {
  const parts = entries.flatMap(({ content = "", ...entry }) => {
    const body = Buffer.from(content);
    const whole = { ...NOTHING, kind: "file" as const, size: body.length, ...entry };
    return [headsOf(whole), body, padding(body.length)];
  });
  return Buffer.concat([...parts, TAR_END]);
}

/** What comes out of an archive whose chunks have that many bytes. */
async function rewritten(bytes: Buffer, mode?: number, chunk = 700) {
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunk) }, (_, at) =>
    bytes.subarray(at * chunk, (at + 1) * chunk),
  );
  const opened = await openArchive(Readable.from(chunks));
  const out = await Array.fromAsync(opened.rewritten({ nameOf: (path) => below(sourceOf("in"), path), mode }));
  const read = new Bytes(Readable.from(out));
  const found: unknown[] = [];
  for (let next = await nextEntry(read); next !== undefined; next = await nextEntry(read)) {
    let content = "";
    await read.each(next.size, (part) => void (content += part.toString()));
    await read.skip(padded(next.size) - next.size);
    found.push([next.kind, next.path, next.mode, next.target, content]);
  }
  return found;
}

describe("archives", () => {
  const long = `in/${"x".repeat(150)}/file`;
  const whole = archive(
    { kind: "directory", path: "in/", mode: 0o755 },
    { path: long, content: "a".repeat(1500) },
    { kind: "directory", path: "in/d" },
    { path: "in/d/f", content: "b" },
    { kind: "symlink", path: "in/l", target: "../../etc/passwd" },
    { kind: "hardlink", path: "in/h", target: "in/d/f" },
  );

  test("are written under other names, zipped or not, wherever they are cut", async () => {
    const expected = [
      ["file", long.slice(3), 0o600, "", "a".repeat(1500)],
      ["directory", "d", 0o700, "", ""],
      ["file", "d/f", 0o600, "", "b"],
      ["symlink", "l", 0o644, "../../etc/passwd", ""],
      ["hardlink", "h", 0o600, "d/f", ""],
    ];
    expect(await rewritten(whole, 0o600)).toEqual(expected);
    expect(await rewritten(gzipSync(whole), 0o600, 1)).toEqual(expected);
  });

  test.each([
    ["what is not one", Buffer.from("no archive at all"), /cannot? be read|not an archive/],
    ["half of one", whole.subarray(0, 2500), /cut short|not an archive/],
    ["half of a zipped one", gzipSync(whole).subarray(0, 60), /unzipped/],
    ["a device", archive({ kind: "character", path: "in/null" }), /cannot be copied/],
    ["a path that leads out", archive({ path: "in/../../x" }), /leads out/],
    ["a link to what is not there", archive({ kind: "hardlink", path: "in/x", target: "/etc/shadow" }), /leads out/],
    ["a file of 9 GB", headsOf({ ...NOTHING, kind: "file", path: "in/x", size: 9 * 1024 ** 3 }), /more than 8 GB/],
  ])("%s is refused", async (_what, bytes, why) => {
    await expect(rewritten(bytes)).rejects.toThrow(why);
  });
});

describe("logs", () => {
  test("costs no more than what is read of it, whatever a program prints", () => {
    const log = new BuildLog();
    const lines = log.lines("1", "info");
    const began = process.cpuUsage().user;
    lines.write(Buffer.from(`${"\r".repeat(256 * 1024)}x\nover\rwritten\r\r\n`));
    for (let times = 0; times < 200; times += 1) lines.write(Buffer.alloc(64 * 1024, "\n"));
    lines.write(Buffer.from("the end\n"));
    expect(process.cpuUsage().user - began).toBeLessThan(2_000_000);
    expect(log.entries.slice(0, 2).map(({ message }) => message)).toEqual(["x", "written"]);
    expect(log.last.at(-1)?.message).toBe("the end");
  });

  test("have lines, whatever the pieces are that programs print, and a line that is drawn again once", () => {
    const log = new BuildLog(() => 0);
    const lines = log.lines("1", "info");
    const text = "one\ntwö\r\n10%\r50%\r100%\n\x1b[31mred\x1b[0m\nrest";
    for (const byte of Buffer.from(text)) lines.write(Buffer.from([byte]));
    lines.end();
    expect(log.entries.map(({ message }) => message)).toEqual(["one", "twö", "100%", "red", "rest"]);
    expect(log.entries[0]).toEqual({ timestamp: "1970-01-01T00:00:00.000Z", level: "info", message: "one", step: "1" });
  });

  test("are bounded, and have room for what the platform says last", () => {
    const log = new BuildLog();
    const lines = log.lines("1", "warn");
    for (let count = 0; count < MOST_LOG_ENTRIES * 2; count += 1) lines.write(Buffer.from(`line ${count}\n`));
    lines.write(Buffer.alloc(20 * LONGEST_LINE, 46));
    lines.end();
    log.say("1", "error", "it failed");
    expect(log.entries.length).toBeLessThanOrEqual(MOST_LOG_ENTRIES);
    expect(log.entries.at(-2)?.message).toMatch(/log of this build is full/);
    expect(log.entries.at(-1)?.message).toBe("it failed");
    expect(log.last.at(-2)?.message).toHaveLength(LONGEST_LINE);
  });

  test("are told from an offset on, and from a level on", () => {
    const log = new BuildLog();
    for (const level of ["debug", "info", "warn", "info", "error"] as const) log.say("1", level, level);
    const told = (offset: number, limit: number, level?: "info" | "warn") =>
      partOf(log.entries, { offset, limit, level }).map(({ message }) => message);
    expect(told(1, 2)).toEqual(["info", "warn"]);
    expect(told(1, 9, "warn")).toEqual(["error"]);
    expect(told(9, 9)).toEqual([]);
  });
});

test("a link is for one archive of one app, until it ends, on one platform", () => {
  const links = new UploadLinks(Buffer.alloc(32, 1));
  const upload = { app: { name: "shop", createdAt: "2026-01-01T00:00:00.000Z" }, hash: HASH };
  const link = links.make(upload, 1000);
  expect(link).toMatch(/^[\w.-]+$/);
  expect(links.read(link, 2000)).toEqual(upload);
  expect(links.read(link, 1000 + 60 * 60_000)).toBeUndefined();
  expect(new UploadLinks(Buffer.alloc(32, 2)).read(link, 2000)).toBeUndefined();
  const [said = "", signature = ""] = link.split(".");
  const other = Buffer.from(said, "base64url").toString().replace("shop", "shoq");
  for (const forged of [
    `${Buffer.from(other).toString("base64url")}.${signature}`,
    said,
    "",
    ".",
    `${said}.`,
    `.${signature}`,
  ])
    expect(links.read(forged, 2000)).toBeUndefined();
});
