/** IPv4 addresses and subnets as numbers. Pure. */

/** A range of addresses, as in `10.213.4.0/22`. */
export interface Subnet {
  /** The first address, as a 32-bit number. */
  base: number;
  /** Length of the prefix in bits, 0 to 32. */
  prefix: number;
}

const PRIVATE: Subnet[] = [
  { base: 0x0a000000, prefix: 8 },
  { base: 0xac100000, prefix: 12 },
  { base: 0xc0a80000, prefix: 16 },
];

/** Parses `a.b.c.d/n`. Undefined when the text is not a subnet or has bits set below its prefix. */
export function parseSubnet(text: string): Subnet | undefined {
  const match = /^(\d+\.\d+\.\d+\.\d+)\/(\d{1,2})$/.exec(text);
  const base = parseAddress(match?.[1] ?? "");
  const prefix = Number(match?.[2]);
  if (base === undefined || prefix > 32) return undefined;
  return base % size({ prefix }) === 0 ? { base, prefix } : undefined;
}

/** Parses `a.b.c.d` to a number. Undefined when the text is not an address. */
export function parseAddress(text: string): number | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)) return undefined;
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** Writes an address as `a.b.c.d`. */
export function formatAddress(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
}

/** Writes a subnet as `a.b.c.d/n`. */
export function formatSubnet({ base, prefix }: Subnet): string {
  return `${formatAddress(base)}/${prefix}`;
}

/** The number of addresses, including the first and the last, which no machine can have. */
export function size({ prefix }: Pick<Subnet, "prefix">): number {
  return 2 ** (32 - prefix);
}

/** Whether two subnets have an address in common. */
export function overlap(a: Subnet, b: Subnet): boolean {
  return a.base < b.base + size(b) && b.base < a.base + size(a);
}

/** Whether the whole subnet is set aside for private networks (RFC 1918). */
export function isPrivate(subnet: Subnet): boolean {
  return PRIVATE.some((range) => subnet.prefix >= range.prefix && overlap(subnet, range));
}
