/** Where the files in a tar file are, so that each can be read from any byte on without reading the others. */
import { type FileHandle, open } from "node:fs/promises";
import { posix } from "node:path";
import { Header } from "tar/header";
import { Pax } from "tar/pax";
import { CliError } from "../failure.ts";

interface Entry {
  /** Its first byte, counted from the beginning of the tar file. */
  start: number;
  /** Bytes. */
  size: number;
}

const BLOCK = 512;
/** An image has a few hundred. This bounds memory and time for any other tar file. */
const MAX_ENTRIES = 100_000;
/** Names and other attributes that do not fit into a header. */
const MAX_ATTRIBUTES = 1024 * 1024;

/** Reads the headers of a tar file. Links count as the files that they lead to. Rejects with a CliError. */
export async function indexTar(file: string): Promise<Map<string, Entry>> {
  await using handle = await open(file);
  const { size: total } = await handle.stat();
  const files = new Map<string, Entry>();
  const links = new Map<string, string>();
  let extended: Pax | undefined;
  let [longPath, longLink]: (string | undefined)[] = [];
  let entries = 0;
  for (let at = 0; at + BLOCK <= total; ) {
    const header = new Header(await bytesAt(handle, at, BLOCK), 0, extended);
    if (header.nullBlock) break;
    if (!header.cksumValid) throw unreadable(file, "it is not a tar file, or damaged");
    if ((entries += 1) > MAX_ENTRIES) throw unreadable(file, `it has more than ${MAX_ENTRIES} entries`);
    const { size = 0, type } = header;
    const start = at + BLOCK;
    if (start + size > total) throw unreadable(file, "it ends too early");
    at = start + Math.ceil(size / BLOCK) * BLOCK;
    const attributes = async () => {
      if (size > MAX_ATTRIBUTES) throw unreadable(file, "the name of an entry is too long");
      return (await bytesAt(handle, start, size)).toString("utf8").replace(/\0.*$/s, "");
    };
    if (type === "GlobalExtendedHeader") continue;
    if (type === "ExtendedHeader") extended = Pax.parse(await attributes(), extended);
    else if (type === "NextFileHasLongPath") longPath = await attributes();
    else if (type === "NextFileHasLongLinkpath") longLink = await attributes();
    else {
      const name = plain(longPath ?? header.path ?? "");
      const target = longLink ?? header.linkpath ?? "";
      if (type === "SymbolicLink") links.set(name, plain(posix.join(posix.dirname(name), target)));
      else if (type === "Link") links.set(name, plain(target));
      else if (type === "File" || type === "OldFile") files.set(name, { start, size });
      extended = longPath = longLink = undefined;
    }
  }
  // Old versions of docker save link to a layer that is there twice.
  for (const [name, target] of links) {
    const found = files.get(target);
    if (found !== undefined) files.set(name, found);
  }
  return files;
}

function plain(name: string): string {
  return posix.normalize(name).replace(/^(?:\.\/|\/)+/, "");
}

async function bytesAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await handle.read(buffer, 0, length, position);
  return buffer.subarray(0, bytesRead);
}

function unreadable(file: string, why: string): CliError {
  return new CliError("invalid_argument", `${file} cannot be read: ${why}. Save the image again.`);
}
