/** What counts as an app's on the disk. Pure. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { imagesOf } from "./in-use.ts";

/** Where things are on the disk. */
interface Folders {
  files: { paths(id: string): { folder: string } };
  volumeFiles: { folder(id: string): string };
  imageFolder(digest: string): string;
}

type CountedMachine = Pick<MachineRecord, "id" | "imageDigest" | "pending">;

/**
 * Returns the directories of an app's machines, of its volumes, and of the images of its machines. An image that several
 * apps use counts for each of them: none takes less because another one came before.
 */
export function appFolders(
  machines: readonly { record: CountedMachine }[],
  volumes: readonly { id: string }[],
  { files, volumeFiles, imageFolder }: Folders,
): string[] {
  const records = machines.map(({ record }) => record);
  return [
    ...records.map(({ id }) => files.paths(id).folder),
    ...volumes.map(({ id }) => volumeFiles.folder(id)),
    ...[...imagesOf(records)].map(imageFolder),
  ];
}
