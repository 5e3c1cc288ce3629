/** Volumes of sandboxes on real QEMU, used by the program that E2B publishes for it, unchanged. */
import { type ConnectionOpts, Sandbox, type SandboxOpts, Volume, VolumeError, VolumePathNotFoundError } from "e2b";
import { beforeAll, expect, test } from "vitest";
import { sandboxTemplate, tenant, WITH_SANDBOXES } from "../helpers/e2b.ts";
import { Place } from "../helpers/served.ts";

const place = Place.forTests(WITH_SANDBOXES);

let agents: ConnectionOpts;
beforeAll(async () => {
  agents = await tenant(place, "agents");
  await sandboxTemplate(place, "agents");
});

const create = (options: SandboxOpts = {}) => Sandbox.create({ ...agents, ...options });
/** Where files of volumes are reached. */
const at = () => ({ apiUrl: place.served.sandboxUrl ?? "" });

test("files on a volume outlive the sandboxes that have it, and are reached from outside before, with and after them", async () => {
  const volume = await Volume.create("my-data", agents);
  expect(await Volume.list(agents)).toEqual([{ volumeId: volume.volumeId, name: "my-data" }]);
  await expect(Volume.create("my-data", agents)).rejects.toThrow(VolumeError);
  await volume.writeFile("/before.txt", "before any sandbox", at());

  const first = await create({ volumeMounts: { "/mnt/data": volume } });
  expect(await first.getInfo()).toMatchObject({ volumeMounts: [{ name: "my-data", path: "/mnt/data" }] });
  expect((await first.commands.run("cat /mnt/data/before.txt; stat -c %U /mnt/data/before.txt")).stdout).toBe(
    "before any sandboxuser\n",
  );
  await volume.remove("/before.txt", at());
  await first.commands.run("mkdir /mnt/data/notes; echo 'from inside' > /mnt/data/notes/a.txt");
  expect(await volume.readFile("notes/a.txt", at())).toBe("from inside\n");
  const written = await volume.writeFile("/notes/b.txt", "from outside", { ...at(), mode: 0o640 });
  expect(written).toMatchObject({
    name: "b.txt",
    type: "file",
    path: "/notes/b.txt",
    size: 12,
    uid: 1000,
    mode: 0o640,
  });
  expect((await first.commands.run("cat /mnt/data/notes/b.txt; stat -c %U /mnt/data/notes/b.txt")).stdout).toBe(
    "from outsideuser\n",
  );
  await expect(volume.writeFile("/notes/b.txt", "again", at())).rejects.toThrow(/force/);
  await volume.writeFile("/notes/b.txt", new Blob(["x".repeat(3_000_000)]), { ...at(), force: true });
  expect((await volume.readFile("/notes/b.txt", { ...at(), format: "bytes" })).length).toBe(3_000_000);
  expect(await volume.makeDir("/deep/er", { ...at(), force: true })).toMatchObject({ type: "directory", uid: 1000 });
  expect((await volume.list("/", { ...at(), depth: 2 })).map(({ path }) => path).toSorted()).toEqual([
    ...["/deep", "/deep/er", "/notes", "/notes/a.txt", "/notes/b.txt"],
  ]);
  expect(await volume.updateMetadata("/deep", { uid: 0, mode: 0o700 }, at())).toMatchObject({ uid: 0, mode: 0o700 });
  await volume.remove("/deep", at());
  expect(await volume.exists("/deep", at())).toBe(false);
  await expect(volume.remove("/deep", at())).rejects.toThrow(VolumePathNotFoundError);

  // One sandbox has it at a time, also one that is paused.
  await expect(create({ volumeMounts: { "/data": "my-data" } })).rejects.toThrow(`sandbox ${first.sandboxId}`);
  expect(await first.pause()).toBe(true);
  await expect(volume.readFile("/notes/a.txt", at())).rejects.toThrow(/paused/);
  await expect(Volume.destroy(volume.volumeId, agents)).rejects.toThrow(VolumeError);
  const again = await Sandbox.connect(first.sandboxId, agents);
  expect((await again.commands.run("cat /mnt/data/notes/a.txt")).stdout).toBe("from inside\n");
  await again.kill();

  const second = await create({ volumeMounts: { "/data": "my-data" } });
  expect(await second.files.read("/data/notes/a.txt")).toBe("from inside\n");
  await second.kill();
  expect(await volume.readFile("/notes/a.txt", at())).toBe("from inside\n");
  expect(await Volume.destroy(volume.volumeId, agents)).toBe(true);
  expect(await Volume.destroy(volume.volumeId, agents)).toBe(false);
});

test("a sandbox with a volume has the files of its template, and nothing is forked or kept of it", {
  tags: "again",
}, async () => {
  const parent = await create();
  await parent.files.write("installed.txt", "by the template");
  const { snapshotId } = await parent.createSnapshot();
  const volume = await Volume.create("more", agents);
  const sandbox = await Sandbox.create(snapshotId, { ...agents, volumeMounts: { "/data": volume } });
  expect(await sandbox.files.read("installed.txt")).toBe("by the template");
  expect(await sandbox.files.write("/data/x", "y")).toMatchObject({ path: "/data/x" });
  await expect(sandbox.createSnapshot()).rejects.toThrow(/volumes/);
  // What leads out of the volume does not lead into the sandbox.
  await sandbox.commands.run("ln -s /etc /data/etc", { user: "root" });
  await expect(volume.readFile("/etc/passwd", at())).rejects.toThrow(/leads out of the volume/);
  await expect(volume.readFile("/../bin/sh", at())).rejects.toThrow(VolumePathNotFoundError);
  await Promise.all([parent.kill(), sandbox.kill()]);
  await expect(create({ volumeMounts: { "/data": "unknown" } })).rejects.toThrow(/There is no volume 'unknown'/);
  await expect(create({ volumeMounts: { "/proc/x": "more" } })).rejects.toThrow(/400/);
  // What opens the volume goes with the platform, too, which ends with this file.
  expect(await volume.readFile("/x", at())).toBe("y");
});
