/** What the agent says of a file: fields that end with a zero byte each, in the order of `packages/guest/agent/entries.h`. */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type EntryInfo, EntryInfoSchema, FileType } from "./protocol/files_pb.js";

const TYPES: Record<string, FileType> = {
  file: FileType.FILE,
  directory: FileType.DIRECTORY,
  link: FileType.SYMLINK,
};
/** What `ls -l` begins a line with. */
const LETTERS: Record<string, string> = { file: "-", directory: "d", link: "L" };
/** The most attributes that a file may seem to have. The kernel allows 64 KiB of them. */
const MOST_ATTRIBUTES = 4096;

/** Reads fields one after the other. Throws when there are no more: the guest, which is not trusted, said too little. */
export class Fields {
  readonly #fields: readonly string[];
  #at = 0;

  constructor(said: Buffer) {
    this.#fields = said.toString("utf8").split("\0").slice(0, -1);
  }

  get more(): boolean {
    return this.#at < this.#fields.length;
  }

  next(): string {
    const field = this.#fields[this.#at];
    if (field === undefined) throw new Error("the machine's agent said too little");
    this.#at += 1;
    return field;
  }

  entry(): EntryInfo {
    const [kind, size, mode, owner, group, mtime, path, target, attributes] = Array.from({ length: 9 }, () =>
      this.next(),
    );
    const count = number(attributes);
    if (count > MOST_ATTRIBUTES) throw new Error("the machine's agent said nonsense");
    const metadata: Record<string, string> = {};
    for (let index = 0; index < count; index += 1) metadata[this.next()] = this.next();
    const bits = Number.parseInt(mode ?? "0", 8) & 0o7777;
    return create(EntryInfoSchema, {
      name: (path ?? "").slice((path ?? "").lastIndexOf("/") + 1),
      type: TYPES[kind ?? ""] ?? FileType.UNSPECIFIED,
      path: path ?? "",
      size: BigInt(number(size)),
      mode: bits,
      permissions: permissionsOf(kind ?? "", bits),
      owner: owner ?? "",
      group: group ?? "",
      modifiedTime: timestampFromMs(Math.floor(number(mtime) / 1e6)),
      ...(target !== undefined && target !== "" && { symlinkTarget: target }),
      metadata,
    });
  }
}

function permissionsOf(kind: string, mode: number): string {
  const bits = "rwxrwxrwx".split("").map((letter, index) => ((mode >> (8 - index)) & 1 ? letter : "-"));
  return (LETTERS[kind] ?? "-") + bits.join("");
}

function number(text: string | undefined): number {
  const value = Number(text);
  if (text === "" || !Number.isFinite(value)) throw new Error("the machine's agent said nonsense");
  return value;
}
