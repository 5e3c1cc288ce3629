/** What a program needs of the host's file system to run: itself, its libraries and its data. Nothing is written. */
import { constants } from "node:fs";
import { access, lstat, readlink, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ifAbsent, isThere } from "@hibernaut/lib/absence";
import { programEnvironment } from "@hibernaut/lib/exec";
import type { Places } from "./arguments.ts";

/** Next to /usr: links to it on current systems, directories on older ones. */
const LIBRARY_FOLDERS = ["/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"];
/** Which libraries there are. Without it, the dynamic linker looks in its usual directories. */
const LINKER_CACHE = "/etc/ld.so.cache";
/** Every one of them is harmless, and libraries expect them. */
const DEVICES = ["/dev/null", "/dev/zero", "/dev/urandom"];
/** QEMU's own network reads the host's name servers here. */
const NAME_SERVERS = "/etc/resolv.conf";

/** Returns the program's real path, as a shell would find it. Undefined when there is none. */
export async function findProgram(program: string): Promise<string | undefined> {
  const folders = program.includes("/") ? [""] : (programEnvironment().PATH ?? "").split(":");
  for (const folder of folders) {
    const path = resolve(folder, program);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return realpath(path);
  }
  return undefined;
}

/** Returns what a program at this real path needs. */
export async function hostPlaces(program: string): Promise<Places> {
  const read = ["/usr"];
  const links: Record<string, string> = {};
  const add = async (path: string) => {
    const found = await lstat(path).catch(ifAbsent(undefined));
    if (found?.isSymbolicLink()) links[path] = await readlink(path);
    else if (found !== undefined) read.push(path);
  };
  for (const path of [...LIBRARY_FOLDERS, LINKER_CACHE, NAME_SERVERS]) await add(path);
  // A link leads to a file that is replaced, not changed: only its directory shows the new one.
  const servers = await realpath(NAME_SERVERS).catch(() => NAME_SERVERS);
  if (NAME_SERVERS in links && dirname(servers) !== "/etc") read.push(dirname(servers));
  if (!program.startsWith("/usr/")) read.push(...(await placesOf(program)));
  return { read, write: [], devices: DEVICES, links };
}

/**
 * A program in `<prefix>/bin` has its libraries and data in the same prefix. Never all of that, because it may be
 * someone's home directory.
 */
async function placesOf(program: string): Promise<string[]> {
  const prefix = dirname(dirname(program));
  const places = ["lib", "lib64", "libexec", "share/qemu", "share/seabios"].map((name) => join(prefix, name));
  const there = await Promise.all(places.map((path) => isThere(path)));
  return [program, ...(basename(dirname(program)) === "bin" ? places.filter((_, index) => there[index]) : [])];
}
