/** Where the files of a step go. Pure. */
import { posix } from "node:path";
import { Refusal } from "../failure.ts";

/** What a step takes, as its client names it: a path, or a pattern of paths. */
export interface Source {
  /** The directory that places are counted from: the path itself, or the part of a pattern that has none of its signs. */
  from: string;
  pattern: boolean;
}

/** What makes a path a pattern. */
const MAGIC = /[*?[\]{}]|[!+@]\(/;

/** Reads what a client names. Throws a {@link Refusal} when it leads out of the client's directory. */
export function sourceOf(text: string): Source {
  const parts = bytesOf(text)
    .split("/")
    .filter((part) => part !== "" && part !== ".");
  const first = parts.findIndex((part) => MAGIC.test(part));
  const from = normal((first < 0 ? parts : parts.slice(0, first)).join("/"));
  return { from, pattern: first >= 0 };
}

/**
 * The path of an entry below the source: empty for the source itself. Throws a {@link Refusal} for an entry that is not of
 * the source, which no client sends.
 */
export function below({ from }: Source, path: string): string {
  const own = normal(path);
  if (from === "") return own;
  if (own === from) return "";
  if (own.startsWith(`${from}/`)) return own.slice(from.length + 1);
  throw new Refusal(400, `The uploaded files have '${printable(path)}', which is not what the step copies.`);
}

/** A relative path without `.`, `..` and slashes at its ends. */
function normal(path: string): string {
  const own = posix.normalize(`./${path}`).replace(/\/+$/, "");
  if (path.startsWith("/") || own === ".." || own.startsWith("../"))
    throw new Refusal(400, `'${printable(path)}' leads out of the directory that files are copied from.`);
  return own === "." ? "" : own;
}

/** A path as archives have it, whose paths are bytes. */
export function bytesOf(path: string): string {
  return Buffer.from(path, "utf8").toString("latin1");
}

export function printable(path: string): string {
  return Buffer.from(path, "latin1").toString("utf8").slice(0, 200);
}
