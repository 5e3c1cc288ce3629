/** A host that cannot tell whether something is there has not said that it is absent: what follows from absence is destructive. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isInCluster, readDraft } from "@hibernaut/cluster/home";
import { takenBytes } from "@hibernaut/machines/disk-quota";
import { MachineFiles } from "@hibernaut/machines/files";
import { hasLink } from "@hibernaut/network/bridge/commands";
import { readKey } from "@hibernaut/secrets/key";
import { SnapshotStore } from "@hibernaut/snapshots";
import { readMachines } from "@hibernaut/store/read";
import { VolumeFiles } from "@hibernaut/volumes/files";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { arrivingVolumes, readPapers } from "../../cluster/src/moves/papers.ts";
import { FailedCarryOvers } from "../../hypervisor/src/qemu/failed-carry-overs.ts";
import { ImageDirectory } from "../../images/src/image-directory.ts";
import { readSubnets } from "../../network/src/bridge/state.ts";
import { beginFault, endFault } from "../../platform/test/helpers/faulty-fs.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { readSeal } from "../../snapshots/src/seal.ts";
import { GENERATION, MACHINE, ORIGIN, Sealed } from "../../snapshots/test/sealed.ts";

vi.mock(import("node:fs"), async (original) =>
  (await import("../../platform/test/helpers/faulty-fs.ts")).faultySync(original),
);
vi.mock(import("node:fs/promises"), async (original) =>
  (await import("../../platform/test/helpers/faulty-fs.ts")).faulty(original),
);

const UNKNOWN = ["EMFILE", "ENFILE", "EACCES", "EIO", "ENOMEM"];
const never = new AbortController().signal;
const snapshotsIn = (folder: string) =>
  new SnapshotStore({
    machineFolder: (id) => join(folder, id),
    bootId: "boot-1",
    hotPages: async () => [],
    onTrouble() {},
  });

/** What the platform asks the host about, and what it takes for the answer when nothing is there. */
const QUESTIONS: [string, (folder: string) => unknown, absent: unknown][] = [
  ["the writable layer, which would be made again", (folder) => new MachineFiles(folder, 64).hasLayer(MACHINE), false],
  ["the layer's size", (folder) => new MachineFiles(folder, 64).layerBytes(MACHINE), 0],
  ["a machine's place in quarantine", (folder) => new MachineFiles(folder, 64).quarantine(MACHINE, 1), undefined],
  ["published snapshots", (folder) => snapshotsIn(folder).published(MACHINE), []],
  ["a snapshot's manifest", async (folder) => snapshotsIn(folder).fitting(GENERATION, ORIGIN), /^snapshot_missing/],
  ["what it was taken from", (folder) => snapshotsIn(folder).takenFrom(MACHINE, GENERATION), /^snapshot_missing/],
  ["what is recorded of it", (folder) => snapshotsIn(folder).describe(MACHINE, GENERATION), undefined],
  ["when it was read", (folder) => snapshotsIn(folder).verifiedAt(MACHINE, GENERATION), undefined],
  ["snapshots to discard", (folder) => snapshotsIn(folder).discardOthers(MACHINE, GENERATION), undefined],
  ["a seal", (folder) => readSeal(join(folder, "seal.json")), undefined],
  ["the key of the secrets", async (folder) => readKey(join(folder, "secrets.key")), undefined],
  ["versions between which a resume failed", async (folder) => (await FailedCarryOvers.open(folder)).all, []],
  ["the machines' subnet", (folder) => readSubnets(folder), {}],
  ["an interface", (folder) => hasLink(`../../..${folder}/nothing`), false],
  ["the host's cluster", async (folder) => isInCluster(folder), false],
  ["a draft of its place there", (folder) => readDraft(folder), undefined],
  ["papers of a machine on its way", (folder) => readPapers(folder), undefined],
  ["volumes on their way", async (folder) => [...(await arrivingVolumes(folder))], []],
  ["directories of volumes", (folder) => new VolumeFiles(folder).folders(), []],
  ["the database", async (folder) => readMachines(join(folder, "hibernaut.db")), []],
  ["when an image was used", async (folder) => new ImageDirectory(folder).usedAt(`sha256:${"0".repeat(64)}`), 0],
  ["the space that files take, which may be none in memory", async (folder) => takenBytes([folder]) >= 0, true],
];

let folder: string;
beforeEach(async () => {
  folder = await tempFolder("absence");
});
afterEach(() => endFault());

describe.each(QUESTIONS)("%s:", (_, ask, absent) => {
  test("absence is an answer, and no answer is an error", async () => {
    const answer = await ask(folder);
    if (absent instanceof RegExp) expect(answer).toMatch(absent);
    else expect(answer).toEqual(absent);
    for (const code of UNKNOWN) {
      beginFault(code, new RegExp(`${folder}(/|$)`));
      await expect(
        Promise.resolve().then(() => ask(folder)),
        code,
      ).rejects.toThrow(code);
      endFault();
    }
  });
});

test.each(UNKNOWN)("%s says nothing about a snapshot's files", async (code) => {
  const sealed = await Sealed.make();
  try {
    for (const name of ["memory", "devices", "seal.json"]) {
      const fitting = await sealed.store("boot-2").fitting(GENERATION, ORIGIN);
      if (typeof fitting === "string") throw new Error(fitting);
      beginFault(code, new RegExp(`/${name}$`));
      await expect(fitting.files.flaw(), name).rejects.toMatchObject({ code });
      if (name !== "devices") await expect(fitting.files.damage(never), name).rejects.toMatchObject({ code });
      endFault();
    }
    expect((await sealed.refusal("boot-2")).reason, "nothing was wrong with it").toBeUndefined();
  } finally {
    await sealed.dispose();
  }
});

test("a directory that takes the place of a file is damage, not a host in trouble", async () => {
  await mkdir(join(folder, MACHINE, "snapshots", GENERATION, "manifest.json"), { recursive: true });
  expect(await snapshotsIn(folder).fitting(GENERATION, ORIGIN)).toMatch(
    /^snapshot_corrupt: the manifest cannot be read/,
  );
  await writeFile(join(folder, "file"), "");
  expect(await readSeal(join(folder, "file", "seal.json")), "a path through a file leads nowhere").toBeUndefined();
});
