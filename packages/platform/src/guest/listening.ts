/** Where programs in a guest listen; `packages/guest/agent/listening.h` is the twin. */

/** A listening TCP socket. */
export interface Listener {
  /** `127.0.0.1`, `0.0.0.0`, `::` */
  address: string;
  port: number;
}

/** u8 family, u16 port, 16 bytes of address. */
const LISTENER_BYTES = 19;
const IPV4 = 4;

/** The listeners of an F_LISTENING payload; bytes behind the last whole one are left out. */
export function decodeListeners(payload: Buffer): Listener[] {
  const count = Math.floor(payload.length / LISTENER_BYTES);
  return Array.from({ length: count }, (_, index) => {
    const bytes = payload.subarray(index * LISTENER_BYTES, (index + 1) * LISTENER_BYTES);
    const address = bytes[0] === IPV4 ? dotted(bytes.subarray(3, 7)) : ipv6(bytes.subarray(3));
    return { address, port: bytes.readUInt16LE(1) };
  });
}

/** The payload for these listeners, as an agent writes it. For tests and the fake guest. */
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

/** Whether only the machine itself reaches it. */
export function isLoopback({ address }: Listener): boolean {
  return address === "::1" || /^(::ffff:)?127\./.test(address);
}

/** `127.0.0.1:4000`, `[::1]:4000` */
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
  // The shortest form, as RFC 5952 wants it.
  const { hostname } = new URL(`http://[${groups.map((group) => group.toString(16)).join(":")}]`);
  return hostname.slice(1, -1);
}
