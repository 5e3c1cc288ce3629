/** What the agent says of a file, as E2B's clients expect it. */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { EntryFields } from "@hibernaut/guest";
import { type EntryInfo, EntryInfoSchema, FileType } from "./protocol/files_pb.ts";

const TYPES: Record<string, FileType> = {
  file: FileType.FILE,
  directory: FileType.DIRECTORY,
  link: FileType.SYMLINK,
};
/** What `ls -l` begins a line with. */
const LETTERS: Record<string, string> = { file: "-", directory: "d", link: "L" };

/** Reads fields one after the other. Throws when there are no more: the guest, which is not trusted, said too little. */
export class Fields extends EntryFields {
  entry(): EntryInfo {
    const { kind, size, mode, owner, group, modifiedMs, path, target, metadata } = this.read();
    return create(EntryInfoSchema, {
      ...{ name: path.slice(path.lastIndexOf("/") + 1), type: TYPES[kind] ?? FileType.UNSPECIFIED, path },
      ...{ size: BigInt(size), mode, permissions: permissionsOf(kind, mode), owner, group, metadata },
      modifiedTime: timestampFromMs(modifiedMs),
      ...(target !== "" && { symlinkTarget: target }),
    });
  }
}

function permissionsOf(kind: string, mode: number): string {
  const bits = "rwxrwxrwx".split("").map((letter, index) => ((mode >> (8 - index)) & 1 ? letter : "-"));
  return (LETTERS[kind] ?? "-") + bits.join("");
}
