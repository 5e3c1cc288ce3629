/** Headers of the PROXY protocol, versions 1 and 2, as HAProxy's specification has them. Pure. */
import { isIPv4, isIPv6, SocketAddress } from "node:net";
import type { ProxyProtocolVersion } from "@hibernaut/domain/tcp-handlers";

/** One end of a connection. */
export interface Endpoint {
  /** An IP address; IPv4 in its usual form. */
  readonly address: string;
  readonly port: number;
}

/** A client's connection. */
export interface Origin {
  /** The client. */
  readonly source: Endpoint;
  /** What it connected to. */
  readonly destination: Endpoint;
}

/** What a connection begins with. */
type HeaderReading =
  /** The header has not come to its end. */
  | { kind: "more" }
  /**
   * `origin` is undefined if the header says nothing about the client that could be used. `local` then: it may be a check
   * of the balancer's own.
   */
  | { kind: "header"; length: number; origin: Origin | undefined; local: boolean }
  | { kind: "bad"; reason: string };

const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
const V1_START = Buffer.from("PROXY ", "latin1");
/** With its line end: what the specification says is enough. */
const V1_MAX_BYTES = 107;
const V2_HEAD_BYTES = 16;
/** Addresses take up to 216 bytes. The rest is for extensions, such as the client's certificate. */
const V2_MAX_BYTES = 16 * 1024;

const MORE: HeaderReading = { kind: "more" };
const COMMANDS = { local: 0x0, proxy: 0x1 } as const;
const TCP4 = { byte: 0x11, bytes: 4 } as const;
const TCP6 = { byte: 0x21, bytes: 16 } as const;
/** Families with the length of their addresses: unspecified, IPv4, IPv6, Unix. */
const FAMILY_BYTES = [0, 12, 36, 216] as const;

/** Reads the header that a connection begins with. */
export function readProxyHeader(bytes: Buffer): HeaderReading {
  if (startsLike(bytes, SIGNATURE)) return readVersion2(bytes);
  if (startsLike(bytes, V1_START)) return readVersion1(bytes);
  return bad("it does not begin with a PROXY protocol header");
}

/** Whether the bytes begin with the expected ones, as far as they have come. */
function startsLike(bytes: Buffer, expected: Buffer): boolean {
  const length = Math.min(bytes.length, expected.length);
  return bytes.compare(expected, 0, length, 0, length) === 0;
}

function bad(reason: string): HeaderReading {
  return { kind: "bad", reason };
}

function readVersion2(bytes: Buffer): HeaderReading {
  if (bytes.length < V2_HEAD_BYTES) return MORE;
  const [version, command] = [(bytes[12] ?? 0) >> 4, (bytes[12] ?? 0) & 0xf];
  if (version !== 2) return bad(`the PROXY protocol has no version ${version} in this form`);
  if (command !== COMMANDS.local && command !== COMMANDS.proxy)
    return bad(`the PROXY protocol has no command ${command}`);
  const length = V2_HEAD_BYTES + bytes.readUInt16BE(14);
  if (length > V2_MAX_BYTES) return bad(`its PROXY protocol header has ${length} bytes`);
  const family = bytes[13] ?? 0;
  const needed = FAMILY_BYTES[family >> 4];
  if (needed === undefined || (family & 0xf) > 2) return bad(`the PROXY protocol has no address family ${family}`);
  const local = command === COMMANDS.local;
  if (!local && length < V2_HEAD_BYTES + needed) return bad("its PROXY protocol header is too short for its addresses");
  if (bytes.length < length) return MORE;
  if (!local && !hasWholeExtensions(bytes.subarray(V2_HEAD_BYTES + needed, length)))
    return bad("an extension of its PROXY protocol header has no end");
  const origin = local ? undefined : origin2(bytes, family);
  return { kind: "header", length, origin, local: origin === undefined };
}

/** Each has a type, a length of two bytes, and a value. Nobody here reads them. */
function hasWholeExtensions(bytes: Buffer): boolean {
  let at = 0;
  while (at + 3 <= bytes.length) at += 3 + bytes.readUInt16BE(at + 1);
  return at === bytes.length;
}

/** Undefined for what is not a TCP connection. */
function origin2(bytes: Buffer, family: number): Origin | undefined {
  const found = [TCP4, TCP6].find(({ byte }) => byte === family);
  if (found === undefined) return undefined;
  const ports = V2_HEAD_BYTES + 2 * found.bytes;
  const address = (index: number) => {
    const from = V2_HEAD_BYTES + index * found.bytes;
    return textOf(bytes.subarray(from, from + found.bytes));
  };
  return {
    source: { address: address(0), port: bytes.readUInt16BE(ports) },
    destination: { address: address(1), port: bytes.readUInt16BE(ports + 2) },
  };
}

function textOf(bytes: Buffer): string {
  if (bytes.length === TCP4.bytes) return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16));
  return new SocketAddress({ address: groups.join(":"), family: "ipv6" }).address;
}

function readVersion1(bytes: Buffer): HeaderReading {
  const end = bytes.subarray(0, V1_MAX_BYTES).indexOf("\r\n");
  if (end === -1) return bytes.length < V1_MAX_BYTES ? MORE : bad("its PROXY protocol header has no end");
  const length = end + 2;
  const [, family, source = "", destination = "", from = "", to = "", ...more] = bytes
    .toString("latin1", 0, end)
    .split(" ");
  // A proxy that checks whether the port is open has nothing else to say in this version.
  if (family === "UNKNOWN") return { kind: "header", length, origin: undefined, local: true };
  const isAddress = family === "TCP4" ? isIPv4 : family === "TCP6" ? isIPv6 : undefined;
  const origin = {
    source: { address: source, port: portOf(from) },
    destination: { address: destination, port: portOf(to) },
  };
  const ports = [origin.source.port, origin.destination.port];
  const valid = isAddress?.(source) && isAddress(destination) && more.length === 0 && !ports.some(Number.isNaN);
  if (valid !== true) return bad("its PROXY protocol header cannot be understood");
  return { kind: "header", length, origin, local: false };
}

function portOf(text: string): number {
  const port = /^(?:0|[1-9]\d{0,4})$/.test(text) ? Number(text) : Number.NaN;
  return port <= 0xffff ? port : Number.NaN;
}

/** Returns the header for a connection. One whose ends are not known, or not of one family, is only announced. */
export function proxyHeader(version: ProxyProtocolVersion, { source, destination }: Origin): Buffer {
  const addresses = [source.address, destination.address];
  const family = addresses.every((one) => isIPv4(one))
    ? TCP4
    : addresses.every((one) => isIPv6(one))
      ? TCP6
      : undefined;
  if (version === "v1") {
    if (family === undefined) return Buffer.from("PROXY UNKNOWN\r\n");
    const name = family === TCP4 ? "TCP4" : "TCP6";
    const ports = [source.port, destination.port];
    return Buffer.from(`PROXY ${[name, ...addresses.map(withoutZone), ...ports].join(" ")}\r\n`);
  }
  if (family === undefined) return Buffer.concat([SIGNATURE, Buffer.from([0x20 | COMMANDS.proxy, 0, 0, 0])]);
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(source.port, 0);
  ports.writeUInt16BE(destination.port, 2);
  const parts = [...addresses.map((address) => bytesOf(address, family)), ports];
  const length = 2 * family.bytes + ports.length;
  return Buffer.concat([SIGNATURE, Buffer.from([0x20 | COMMANDS.proxy, family.byte, 0, length]), ...parts]);
}

/** A link-local address may end with the name of this host's interface. */
function withoutZone(address: string): string {
  return address.replace(/%.*$/, "");
}

function bytesOf(address: string, family: typeof TCP4 | typeof TCP6): Buffer {
  if (family === TCP4) return Buffer.from(address.split(".").map(Number));
  const [front = "", back] = withDots(withoutZone(address)).split("::");
  const groups = (text: string | undefined) => (text ? text.split(":") : []);
  const [head, tail] = [groups(front), groups(back)];
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0");
  return Buffer.from([...head, ...zeros, ...tail].map((group) => group.padStart(4, "0")).join(""), "hex");
}

/** The last two groups may be written as an IPv4 address. */
function withDots(address: string): string {
  return address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (...parts) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts.slice(1, 5).map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
}
