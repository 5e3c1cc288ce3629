/** What becomes of an image's layers: the same files that umoci makes of them, and no more than they may have. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, statfs, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { zstdCompressSync } from "node:zlib";
import type { HibernautError } from "@hibernaut/domain/errors";
import { findJail } from "@hibernaut/hypervisor/qemu/jail/find";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { openImageStore } from "../src/open.ts";
import { isRoot, leftovers, listRootfs, makeTool, readRootfs } from "./fixtures.ts";
import { gzipped, layoutOf, type Part, tarOf, writeLayout } from "./layers.ts";

const run = promisify(execFile);
const MB = 1024 * 1024;

let folder: string;
let dataDir: string;

beforeEach(async () => {
  folder = await tempFolder("images");
  dataDir = join(folder, "data");
});

afterEach(async () => {
  expect(await leftovers(dataDir)).toEqual([]);
});

const directory = (name: string, more: Partial<Part> = {}): Part => ({ name, type: "directory", mode: 0o755, ...more });
const file = (name: string, content: string, more: Partial<Part> = {}): Part => ({
  name,
  mode: 0o644,
  content,
  ...more,
});
const link = (name: string, linkname: string): Part => ({ name, type: "symlink", linkname });
const hardLink = (name: string, linkname: string): Part => ({ name, type: "link", linkname });
const removed = (name: string): Part => file(name.replace(/([^/]+)$/, ".wh.$1"), "");

/** Everything that images do to each other's files. */
const LOWER: Part[] = [
  directory("./", { mode: 0o711, uid: 7, gid: 42 }),
  directory("usr/bin", { mode: 0o711 }),
  link("bin", "usr/bin"),
  link("absolute", `/${"long/".repeat(50)}`),
  link("up", "../../etc/passwd"),
  directory("etc"),
  file("etc/passwd", "root"),
  file("etc/shadow", "secret", { mode: 0o000, uid: 0, gid: 42 }),
  file("usr/bin/sudo", "sudo", { mode: 0o4755, uid: 0, gid: 0 }),
  hardLink("usr/bin/sudoedit", "usr/bin/sudo"),
  file("home/app/notes", "mine", { gid: 42, pax: { uid: "4000000" } }),
  { name: "dev/null", type: "character-device", mode: 0o666, devmajor: 1, devminor: 3 },
  { name: "dev/disk", type: "block-device", mode: 0o660, devmajor: 259, devminor: 300 },
  { name: "run/fifo", type: "fifo", mode: 0o600 },
  file(`${"d".repeat(120)}/${"e".repeat(200)}`, "long"),
  file("capable", "x", { mode: 0o755, pax: { "SCHILY.xattr.user.note": "a=b\nc" } }),
  directory("tmp", { mode: 0o1777 }),
  directory("opt/gone"),
  file("opt/gone/file", "gone"),
  directory("opt/emptied"),
  file("opt/emptied/old", "old"),
  directory("opt/becomes-file"),
  file("opt/becomes-file/inside", "x"),
  file("opt/becomes-directory", "x"),
  file("kept", "of the lower layer"),
  hardLink("kept-too", "kept"),
  file("empty", ""),
];
const UPPER: Part[] = [
  // Through the link, into usr/bin.
  file("bin/sh", "shell", { mode: 0o755 }),
  removed("opt/gone"),
  file("opt/emptied/new", "new"),
  file("opt/emptied/.wh..wh..opq", ""),
  file("opt/becomes-file", "a file now"),
  directory("opt/becomes-directory", { mode: 0o700 }),
  file("opt/becomes-directory/inside", "y"),
  // The other name keeps the content.
  file("kept", "of the upper layer"),
  hardLink("etc/passwd-", "etc/passwd"),
  removed("etc/shadow"),
  directory("usr/bin", { mode: 0o755, uid: 7 }),
];

test("files are those that umoci makes of the same layers", async () => {
  const layout = await layoutOf(folder, "image", [LOWER, UPPER]);
  const { rootfs } = await (await openImageStore({ dataDir })).ensure(`oci:${layout}`);
  const ours = (await listRootfs(rootfs)).map(withoutTime);
  expect(await readRootfs(rootfs, "kept-too")).toBe("of the lower layer");
  expect(await readRootfs(rootfs, "kept")).toBe("of the upper layer");
  expect(await readRootfs(rootfs, "usr/bin/sh")).toBe("shell");
  expect(ours.filter((line) => /gone|old$|shadow/.test(line))).toEqual([]);
  if (!isRoot) return;
  const other = join(folder, "umoci");
  await run("umoci", ["raw", "unpack", "--image", `${layout}:latest`, other]);
  await run("mksquashfs", [other, `${other}.squashfs`, "-quiet", "-no-progress"]);
  expect(ours).toEqual((await listRootfs(`${other}.squashfs`)).map(withoutTime));
  // Names of one file, and attributes, which the list does not show.
  const [mine, theirs] = [join(folder, "mine"), join(folder, "theirs")];
  await run("unsquashfs", ["-quiet", "-d", mine, rootfs]);
  await run("unsquashfs", ["-quiet", "-d", theirs, `${other}.squashfs`]);
  const details = async (at: string) =>
    (await run("sh", ["-c", 'find . -type f -printf "%p %n %T@\\n" | sort', "sh"], { cwd: at })).stdout;
  expect(await details(mine)).toBe(await details(theirs));
  await run("diff", ["-r", "--no-dereference", mine, theirs], { cwd: folder }).catch((error) => {
    // Devices differ by nothing but being two.
    expect(String(error.stdout)).not.toMatch(/^(?:Only|Files)/m);
  });
});

/** Directories that no layer names have the time at which they are made. */
const withoutTime = (line: string) => line.replace(/\d{4}-\d\d-\d\d \d\d:\d\d /, "").replace(/^(d.* )\s*\d+ /, "$1");

describe("refused, with nothing kept on the disk", () => {
  const limits = { imageMaxMb: 20, imageMaxEntries: 1000 };
  const errorOf = async (layout: string, more: Parameters<typeof openImageStore>[0] | object = {}) => {
    const store = await openImageStore({ dataDir, ...limits, ...more });
    return store.ensure(`oci:${layout}`).then(
      () => expect.fail("it was imported"),
      (error: HibernautError) => error,
    );
  };
  const zeros = (bytes: number) => tarOf([file("zeros", "\0".repeat(bytes))]);

  test("a few kilobytes that unpack to more than an image may have, however they are compressed", async () => {
    const content = await zeros(21 * MB);
    const diffId = createHash("sha256").update(content).digest("hex");
    const half = await zeros(11 * MB);
    const bombs = {
      gzip: [gzipped(content)],
      zstd: [{ blob: zstdCompressSync(content), diffId }],
      "two-layers": [gzipped(half), gzipped(half)],
      "after-the-end": [gzipped(Buffer.concat([await tarOf([file("a", "")]), Buffer.alloc(21 * MB)]))],
    };
    for (const [name, layers] of Object.entries(bombs)) {
      const error = await errorOf(await writeLayout(folder, name, layers));
      expect(error, name).toMatchObject({ code: "payload_too_large", details: { limit_bytes: 20 * MB } });
      expect(error.message).toMatch(/more than 20971520 bytes when it is unpacked.*HIBERNAUT_IMAGE_SIZE/);
    }
    // What is just within the limit is not refused.
    const store = await openImageStore({ dataDir, ...limits });
    const image = await store.ensure(`oci:${await writeLayout(folder, "fits", [gzipped(await zeros(19 * MB))])}`);
    expect(image.sizeBytes).toBeLessThan(20 * MB);
  });

  test("more entries than an image may have, and fewer with long names", async () => {
    const many = Array.from({ length: 1001 }, (_, index) => file(`file-${index}`, ""));
    const long = Array.from({ length: 400 }, (_, index) => link(`link-${index}`, "x".repeat(4000)));
    for (const parts of [many, long]) {
      const error = await errorOf(await layoutOf(folder, `entries-${parts.length}`, [parts]));
      expect(error).toMatchObject({ code: "payload_too_large", details: { limit_entries: 1000 } });
    }
  });

  test("an image for which the disk has no room, before anything of it is written", async () => {
    const { bavail, bsize } = await statfs(folder);
    const diskReserveMb = Math.ceil((bavail * bsize) / MB) + 1000;
    const error = await errorOf(await layoutOf(folder, "image", [LOWER]), { diskReserveMb });
    expect(error).toMatchObject({ code: "unavailable", details: { reason: "disk full" } });
    expect(error.message).toMatch(/lacks \d+ bytes .*HIBERNAUT_DISK_RESERVE/);
  });

  test.each([
    ["a hard link to what is not there", [hardLink("a", "b")], /hard link to "b"/],
    ["a file below a file", [file("a", ""), file("a/b", "")], /"a\/b" is below something/],
    ["links that lead in a circle", [link("a", "b"), link("b", "a"), file("a/c", "")], /too many links/],
    ["a name that is too long", [file("n".repeat(256), "")], /longer than 255 bytes/],
  ])("%s", async (_, parts, message) => {
    const error = await errorOf(await layoutOf(folder, "image", [parts]));
    expect(error).toMatchObject({ code: "invalid_argument", message: expect.stringMatching(message) });
  });

  test("a layer that is not what the configuration says", async () => {
    const layout = await writeLayout(folder, "image", [{ blob: await tarOf(LOWER), diffId: "0".repeat(64) }]);
    expect((await errorOf(layout)).message).toContain("does not match its digest");
  });
});

test("nothing leads out of the image", async () => {
  const outside = join(folder, "outside");
  await mkdir(outside);
  await symlink(outside, join(folder, "link"));
  const layout = await layoutOf(folder, "image", [
    [
      file("../../escaped", "a"),
      link("out", outside),
      file("out/file", "b"),
      link("far", "../../../../.."),
      file("far/c", "c"),
    ],
  ]);
  const { rootfs } = await (await openImageStore({ dataDir })).ensure(`oci:${layout}`);
  expect(await readRootfs(rootfs, "escaped")).toBe("a");
  expect(await readRootfs(rootfs, join(outside.slice(1), "file"))).toBe("b");
  expect(await readRootfs(rootfs, "c")).toBe("c");
  expect((await run("ls", ["-A", outside])).stdout).toBe("");
});

test("what unpacks an image is nobody, without a network, and sees only its work", async () => {
  const settings = { jail: "auto", jailFirstUid: 1_900_000_000, qemu: "qemu-system-x86_64", dataDir } as const;
  const { jail } = await findJail({ ...settings, accelerator: "tcg", look: true });
  if (jail === undefined) throw new Error("this host allows no jail");
  const confine = (task: Parameters<typeof jail.confine>[0]) => jail.confine(task);
  const layout = await layoutOf(folder, "image", [LOWER, UPPER]);
  const look = `
    id -u; ls -A "${folder}/data/images" | grep -v tmp-; ls /root /home /etc/passwd /proc 2>&1; ls /sys/class/net 2>&1
    for file in "${folder}"/data/images/tmp-*/parts/manifest.json; do echo x >> "$file" && echo changed the manifest; done
    echo x > "${folder}/data/images/new" && echo made a file
    cat > /dev/null; exit 1`;
  const spy = await makeTool(
    folder,
    "spy",
    `{ ${look.trim().split("\n").join("\n")}\n} 2>&1 | tr '\\n' ' ' >&2; exit 1`,
  );
  const spying = await openImageStore({ dataDir, confine, tools: { sqfstar: spy } });
  const error = await spying.ensure(`oci:${layout}`).catch((thrown: HibernautError) => thrown);
  const said = String((error as HibernautError).details.reason);
  expect(said).toContain(isRoot ? "1900000000 " : `${process.getuid?.()} `);
  for (const place of ["/root", "/home", "/etc/passwd", "/proc", "/sys/class/net"])
    expect(said).toMatch(new RegExp(`cannot access '${place}': No such file`));
  expect(said).not.toMatch(/changed the manifest|made a file/);

  const { rootfs } = await (await openImageStore({ dataDir, confine })).ensure(`oci:${layout}`);
  expect(await readRootfs(rootfs, "usr/bin/sh")).toBe("shell");
  expect((await listRootfs(rootfs))[0]).toMatch(/^drwx--x--x 7\/42 .* 2020-09-13 /);
  // Nothing in it is root's, nor of the user that packs: its root is.
  const layer = [file("theirs", "x", { uid: 5, gid: 5 })];
  const other = await (await openImageStore({ dataDir, confine })).ensure(
    `oci:${await layoutOf(folder, "other", [layer])}`,
  );
  const owners = (await listRootfs(other.rootfs)).map((line) => line.split(/ +/)[1]);
  expect(owners).toEqual(["0/0", "5/5"]);
  expect((await run("stat", ["-c", "%u", rootfs])).stdout.trim()).toBe(String(process.getuid?.()));
  expect((await readFile(rootfs)).length).toBeGreaterThan(1000);
});
