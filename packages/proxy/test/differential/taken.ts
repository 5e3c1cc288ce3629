/** A message as far as llhttp took it, and what the classes of refusals ask of it. */
import type { OracleMessage } from "./oracle.ts";
import type { Stream } from "./reading.ts";

export interface Taken {
  side: Stream["side"];
  theirs: OracleMessage;
  /** The bytes of the head, with the empty lines before it, as latin1; all bytes when the head has no end. */
  head: string;
  /** The bytes behind the head. */
  rest: string;
}

/** What llhttp accepts, and we refuse on purpose. */
export interface Class {
  name: string;
  reason: string;
  /** Streams of which we refuse a message for this reason, and for no other. */
  examples: readonly (Stream & { text: string })[];
  applies(taken: Taken): boolean;
}

export function request(text: string): Stream & { text: string } {
  return { side: "request", text };
}

export function response(text: string, method = "GET"): Stream & { text: string } {
  return { side: "response", method, text };
}

/** The values of all fields of a name, which is in lower case. */
export function values({ theirs }: { theirs: Pick<OracleMessage, "head"> }, key: string): string[] {
  return (theirs.head?.fields ?? []).filter(([name]) => name.toLowerCase() === key).map(([, value]) => value);
}

/** The empty lines before a head, and the head without them. */
export function withoutEmptyLines(head: string): { empty: number; head: string } {
  const length = /^(?:\r\n)*/.exec(head)?.[0].length ?? 0;
  return { empty: length / 2, head: head.slice(length) };
}

/** The lines of a chunked body, found by counting. */
export function chunkLines(taken: Taken): { sizes: string[]; extensions: string[]; trailers: string } {
  const found = { sizes: [] as string[], extensions: [] as string[], trailers: "" };
  if (values(taken, "transfer-encoding").length === 0) return found;
  const line = /([0-9a-f]+)([^\r]*)(?:\r\n)?/iy;
  for (let match = line.exec(taken.rest); match !== null; match = line.exec(taken.rest)) {
    const size = match[1] ?? "";
    found.sizes.push(size);
    found.extensions.push(match[2] ?? "");
    if (/^0+$/.test(size)) {
      found.trailers = taken.rest.slice(line.lastIndex);
      break;
    }
    line.lastIndex += Number.parseInt(size, 16) + 2;
  }
  return found;
}

/** As bounds of a head are kept: a section that is exactly as long must have ended. */
export function exceeds(section: string, limit: number): boolean {
  return section.length > limit || (section.length === limit && !section.endsWith("\r\n\r\n"));
}
