/** Where programs in a guest listen. `packages/guest/agent/listening.h` is the agent's side. */

/** A listening TCP socket. */
export interface Listener {
  /** For example `127.0.0.1`, `0.0.0.0` or `::`. */
  address: string;
  port: number;
}

/** Bytes of one listener: u8 family, u16 port, 16 bytes of address. */
export const LISTENER_BYTES = 19;
/** Agents report no more (LISTENERS_MAX in listening.h), but a guest is not trusted to. */
const MOST_LISTENERS = 64;
const IPV4 = 4;

/** Returns the listeners of an F_LISTENING payload, at most 64. Ignores bytes after the last complete one. */
export function decodeListeners(payload: Buffer): Listener[] {
  const count = Math.min(Math.floor(payload.length / LISTENER_BYTES), MOST_LISTENERS);
  return Array.from({ length: count }, (_, index) => {
    const bytes = payload.subarray(index * LISTENER_BYTES, (index + 1) * LISTENER_BYTES);
    const address = bytes[0] === IPV4 ? dotted(bytes.subarray(3, 7)) : ipv6(bytes.subarray(3));
    return { address, port: bytes.readUInt16LE(1) };
  });
}

/** Returns the payload for these listeners, as an agent writes it. For tests and the fake guest. */
export function encodeListeners(listeners: readonly Listener[]): Buffer {
  return Buffer.concat(
    listeners.map(({ address, port }) => {
      const bytes = Buffer.alloc(LISTENER_BYTES);
      bytes[0] = address.includes(":") ? 6 : IPV4;
      bytes.writeUInt16LE(port, 1);
      if (bytes[0] === IPV4) bytes.set(address.split(".").map(Number), 3);
      else if (address === "::1") bytes[LISTENER_BYTES - 1] = 1;
      return bytes;
    }),
  );
}

/** Whether only programs in the machine can connect to it. */
export function isLoopback({ address }: Listener): boolean {
  return address === "::1" || /^(::ffff:)?127\./.test(address);
}

/** Returns `127.0.0.1:4000` or `[::1]:4000`. */
export function listenerText({ address, port }: Listener): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

function dotted(bytes: Buffer): string {
  return [...bytes].join(".");
}

function ipv6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2));
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return `::ffff:${dotted(bytes.subarray(12))}`;
  // URL returns the shortest form, as in RFC 5952.
  const { hostname } = new URL(`http://[${groups.map((group) => group.toString(16)).join(":")}]`);
  return hostname.slice(1, -1);
}
