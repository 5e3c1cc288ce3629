/** What the words of `machine forward` mean. Pure. */
import { UsageError } from "./failure.ts";

/** A port here, 0 for any that is free, and the port in the machine that it leads to. */
export interface ForwardedPort {
  here: number;
  there: number;
}

const MOST = 65_535;

/** Reads `5432`, or `15432:5432`. Undefined if the word is something else. */
export function readPort(word: string): ForwardedPort | undefined {
  const [, first, second] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(word) ?? [];
  if (first === undefined) return undefined;
  const here = Number(first);
  const there = Number(second ?? first);
  return here <= MOST && there <= MOST && there > 0 ? { here, there } : undefined;
}

/** Reads the words. The first one is a machine unless it is a port. */
export function readForward(words: readonly string[]): { machine: string | undefined; ports: ForwardedPort[] } {
  const [first, ...rest] = words;
  const named = first !== undefined && readPort(first) === undefined;
  const given = named ? rest : words;
  if (given.length === 0)
    throw new UsageError("No port. Name at least one, as in: hibernaut machine forward [id] 15432:5432");
  const ports = given.map((word) => {
    const port = readPort(word);
    if (port === undefined)
      throw new UsageError(`\`${word}\` is not a port. Use a number from 1 to ${MOST}, or <here>:<there>.`);
    return port;
  });
  return { machine: named ? first : undefined, ports };
}
