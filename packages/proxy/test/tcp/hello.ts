/** First messages of TLS connections: those of a real client, and those that no client sends. */
import { once } from "node:events";
import { Duplex } from "node:stream";
import { connect } from "node:tls";

/** The first message of Node's own client. */
export async function nodesHello(servername: string | undefined, ALPNProtocols?: string[]): Promise<Buffer> {
  const said = Promise.withResolvers<Buffer>();
  const wire = new Duplex({
    read() {},
    write(piece: Buffer, _encoding, done) {
      said.resolve(piece);
      done();
    },
  });
  const socket = connect({
    socket: wire,
    ...(servername !== undefined && { servername }),
    ...(ALPNProtocols && { ALPNProtocols }),
  });
  const first = await said.promise;
  const closed = once(socket, "close");
  socket.on("error", () => {}).destroy();
  await closed;
  return first;
}

export interface Extension {
  type: number;
  data: Buffer;
}

export interface HelloParts {
  /** Those of the message: names come first in `extensions`. Undefined: it has no extensions at all. */
  extensions?: readonly Extension[] | undefined;
  version?: number;
  session?: Buffer;
  ciphers?: Buffer;
  compressions?: Buffer;
}

/** A number with its bytes. */
export function number(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}

/** Bytes with their length before them. */
export function vector(data: Buffer, bytes: number): Buffer {
  return Buffer.concat([number(data.length, bytes), data]);
}

/** The extension that names hostnames: one, in what clients send. */
export function serverName(...names: string[]): Extension {
  const entries = names.map((name) => Buffer.concat([number(0, 1), vector(Buffer.from(name, "latin1"), 2)]));
  return { type: 0, data: vector(Buffer.concat(entries), 2) };
}

/** The extension that offers protocols. */
export function protocols(...names: string[]): Extension {
  return { type: 16, data: vector(Buffer.concat(names.map((name) => vector(Buffer.from(name), 1))), 2) };
}

/** A handshake message: a ClientHello, with its head. */
export function hello({ extensions, version = 0x0303, session, ciphers, compressions }: HelloParts): Buffer {
  const parts = [
    number(version, 2),
    Buffer.alloc(32, 7),
    vector(session ?? Buffer.alloc(0), 1),
    vector(ciphers ?? Buffer.from([0x13, 1]), 2),
    vector(compressions ?? Buffer.from([0]), 1),
  ];
  if (extensions !== undefined) {
    const all = extensions.map(({ type, data }) => Buffer.concat([number(type, 2), vector(data, 2)]));
    parts.push(vector(Buffer.concat(all), 2));
  }
  const body = Buffer.concat(parts);
  return Buffer.concat([number(1, 1), number(body.length, 3), body]);
}

/** Records of a handshake: the message is cut at each of the places. */
export function records(message: Buffer, cuts: readonly number[] = [], type = 22): Buffer {
  const places = [...new Set([0, ...cuts.filter((cut) => cut > 0 && cut < message.length), message.length])];
  places.sort((a, b) => a - b);
  const pieces = places.slice(0, -1).map((from, index) => message.subarray(from, places[index + 1]));
  return Buffer.concat(pieces.map((piece) => Buffer.concat([Buffer.from([type, 3, 1]), vector(piece, 2)])));
}
