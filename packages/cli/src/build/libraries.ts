/** Shared libraries of programs that are packed into an image. */
import { execFile } from "node:child_process";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { CliError } from "../failure.ts";

export interface Library {
  /** Its path on this host. */
  from: string;
  /** Where the loader finds it in the image. */
  to: string;
}

/** `ldd` runs the loader, which answers at once. */
const LDD_MS = 30_000;

/** The libraries of all these programs and modules, each of them once. `libraryPath` is as in LD_LIBRARY_PATH. */
export async function librariesOf(binaries: readonly string[], libraryPath = ""): Promise<Library[]> {
  const all = await Promise.all(binaries.map((binary) => findLibraries(binary, libraryPath)));
  return [...new Map(all.flat().map((library) => [library.to, library])).values()];
}

/**
 * Finds the libraries in what `ldd` prints. They all go next to libc, into a directory that the loader searches by
 * default, because the image has no loader cache. The loader itself keeps its path, which is part of the program.
 * Undefined for a program that uses another C library than GNU's.
 */
export function readLdd(output: string): Library[] | undefined {
  const paths = [...output.matchAll(/(?:=> |^\s+)(\/\S+) \(0x/gm)].map((match) => String(match[1]));
  if (paths.length === 0) return []; // a static program, or a module that calls nothing
  const libc = paths.find((path) => basename(path) === "libc.so.6");
  if (libc === undefined) return undefined;
  return paths.map((from) => ({
    from,
    to: basename(from).startsWith("ld-linux") ? from : join(dirname(libc), basename(from)),
  }));
}

async function findLibraries(binary: string, libraryPath: string): Promise<Library[]> {
  const env = libraryPath === "" ? process.env : { ...process.env, LD_LIBRARY_PATH: libraryPath };
  const { stdout } = await promisify(execFile)("ldd", [binary], { env, timeout: LDD_MS }).catch(
    (error: NodeJS.ErrnoException) => {
      throw new CliError(
        "build_tool_missing",
        error.code === "ENOENT"
          ? "The build needs ldd, which is not in the PATH. Install the package libc-bin and deploy again."
          : `The libraries of ${binary} cannot be listed: ${error.message.trim()}. Use a program that is linked dynamically.`,
      );
    },
  );
  const libraries = readLdd(stdout);
  if (libraries === undefined)
    throw new CliError(
      "build_tool_missing",
      `${binary} does not use the GNU C library, so its libraries cannot be packed. Use a program that does, such as one of Debian's.`,
    );
  return libraries;
}
