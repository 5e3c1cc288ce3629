/** What the two words of `machine cp` mean. Pure. */
import { UsageError } from "../failure.ts";

export type End =
  /** `machine` is undefined for the only machine of the app. The path is absolute. */
  | { at: "machine"; machine: string | undefined; path: string }
  | { at: "here"; path: string }
  /** A tar archive on standard input or output. */
  | { at: "stream" };

/** A copy between a machine and this computer. */
export type Ends =
  | { into: true; from: Exclude<End, { at: "machine" }>; to: End & { at: "machine" } }
  | { into: false; from: End & { at: "machine" }; to: Exclude<End, { at: "machine" }> };

/** Reads one word. A path with a colon in it begins with `/` or `.`, so that it is not taken for a machine. */
function readEnd(word: string): End {
  if (word === "-") return { at: "stream" };
  const [, machine, path] = /^([^/.:][^/:]*)?:(.*)$/s.exec(word) ?? [];
  if (path === undefined) {
    if (word === "") throw new UsageError("A path is empty. Use a path, `<id>:<path>` for one in a machine, or -.");
    return { at: "here", path: word };
  }
  if (path === "") throw new UsageError(`\`${word}\` has no path. Add one, as in \`${word}/srv/data\`.`);
  return { at: "machine", machine, path: path.startsWith("/") ? path : `/${path}` };
}

/** Reads both words. Throws a usage error unless exactly one is in a machine. */
export function readEnds(fromWord: string, toWord: string): Ends {
  const from = readEnd(fromWord);
  const to = readEnd(toWord);
  if (from.at === "machine" && to.at !== "machine") return { into: false, from, to };
  if (to.at === "machine" && from.at !== "machine") return { into: true, from, to };
  const why = from.at === "machine" ? "Both paths are in machines" : "Neither path is in a machine";
  const example = "hibernaut machine cp ./a 3f9c01ab22de41:/srv/a";
  throw new UsageError(`${why}. One is, in the form \`<id>:<path>\`, and the other is here, as in: ${example}`);
}
