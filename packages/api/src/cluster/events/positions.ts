/** Where a reader is in the streams of several hosts: after which sequence number of each. Pure. */

/** By host. A host that is absent begins with what comes. */
export type Positions = Map<string, number>;

/** What `since` may be: a number, or one for each host as in `a:1042,b:77`. */
export const POSITION_PATTERN = "^(?:\\d{1,15}|[a-z0-9.-]{1,64}:\\d{1,15}(?:,[a-z0-9.-]{1,64}:\\d{1,15}){0,999})$";

/** Returns `a:1042,b:77`. */
export function positionsText(positions: Positions): string {
  return [...positions]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([host, at]) => `${host}:${at}`)
    .join(",");
}

/** Returns the reverse. A number alone is that of the host that was asked; 0 is the beginning on all hosts. */
export function positionsOf(text: string, { own, hosts }: { own: string; hosts: readonly string[] }): Positions {
  if (text === "0") return new Map([own, ...hosts].map((host) => [host, 0]));
  if (!text.includes(":")) return new Map([[own, Number(text)]]);
  return new Map(
    text.split(",").map((part) => {
      const colon = part.lastIndexOf(":");
      return [part.slice(0, colon), Number(part.slice(colon + 1))];
    }),
  );
}
