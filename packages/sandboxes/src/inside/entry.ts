/** What the agent says of a file: fields that end with a zero byte each, in the order of `packages/guest/agent/entries.h`. */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Refusal } from "../failure.ts";
import { type EntryInfo, EntryInfoSchema, FileType } from "./protocol/files_pb.js";

const TYPES: Record<string, FileType> = {
  file: FileType.FILE,
  directory: FileType.DIRECTORY,
  link: FileType.SYMLINK,
};
/** What `ls -l` begins a line with. */
const LETTERS: Record<string, string> = { file: "-", directory: "d", link: "L" };
/** The most attributes that a file may seem to have: the kernel allows 64 KiB of them, the shortest of some 16 bytes. */
export const MOST_ATTRIBUTES = 4096;

/** Reads fields one after the other. Throws when there are no more: the guest, which is not trusted, said too little. */
export class Fields {
  readonly #said: Buffer;
  #at = 0;

  constructor(said: Buffer) {
    this.#said = said;
  }

  get more(): boolean {
    return this.#at < this.#said.length;
  }

  next(): string {
    const end = this.#said.indexOf(0, this.#at);
    if (end < 0) throw nonsense();
    const field = this.#said.toString("utf8", this.#at, end);
    this.#at = end + 1;
    return field;
  }

  entry(): EntryInfo {
    const [kind = "", size, mode = "0", owner = "", group = "", mtime, path = "", target = "", attributes] = Array.from(
      { length: 9 },
      () => this.next(),
    );
    const count = number(attributes);
    if (count > MOST_ATTRIBUTES) throw nonsense();
    const metadata: Record<string, string> = {};
    for (let index = 0; index < count; index += 1) metadata[this.next()] = this.next();
    const bits = Number.parseInt(mode, 8) & 0o7777;
    return create(EntryInfoSchema, {
      ...{ name: path.slice(path.lastIndexOf("/") + 1), type: TYPES[kind] ?? FileType.UNSPECIFIED, path },
      ...{ size: BigInt(number(size)), mode: bits, permissions: permissionsOf(kind, bits), owner, group, metadata },
      modifiedTime: timestampFromMs(Math.floor(number(mtime) / 1e6)),
      ...(target !== "" && { symlinkTarget: target }),
    });
  }
}

function permissionsOf(kind: string, mode: number): string {
  const bits = "rwxrwxrwx".split("").map((letter, index) => ((mode >> (8 - index)) & 1 ? letter : "-"));
  return (LETTERS[kind] ?? "-") + bits.join("");
}

function number(text: string | undefined): number {
  const value = Number(text);
  if (text === "" || !Number.isInteger(value) || value < 0) throw nonsense();
  return value;
}

/** The guest is to blame, not the platform. */
function nonsense(): Refusal {
  return new Refusal(502, "The machine's agent gave an answer that makes no sense.");
}
