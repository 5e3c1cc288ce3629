/** Configuration records, the content of F_SET and F_EXEC. `packages/guest/agent/config.h` is the agent's side. */
import type { GuestFile } from "@hibernaut/domain/guest-files";
import type { Subnet } from "@hibernaut/lib/ipv4";
import { wipe, wiping } from "@hibernaut/lib/wipe";
import { MAX_PAYLOAD } from "./frame.ts";
import type { CommandSpec, GuestConfig, GuestIdentity } from "./protocol.ts";

/** Keys of records. config.h says what each value is. */
export const Key = {
  hostname: 1,
  arg: 2,
  env: 3,
  user: 4,
  workdir: 5,
  address: 6,
  gateway: 7,
  dns: 8,
  port: 9,
  clock: 10,
  hosts: 11,
  terminal: 12,
  timeout: 13,
  input: 14,
  hooks: 15,
  volume: 16,
  file: 17,
  fileData: 18,
  swap: 19,
  task: 20,
  mac: 21,
  entropy: 22,
  login: 23,
  label: 24,
} as const;

/** Bytes of a record before its value: key and length. */
const HEAD_BYTES = 5;
/** How many bytes a value may have to fit into a frame. */
const MAX_VALUE = MAX_PAYLOAD - HEAD_BYTES;
/** How many bytes a label may have. The same as CONFIG_MAX_LABEL in config.h. */
export const MAX_LABEL = 8192;
/** Bytes of a file per record: half of a frame, so that frames are filled well. */
const FILE_CHUNK = MAX_PAYLOAD / 2 - HEAD_BYTES;

/** Returns a time in the agent's form: nanoseconds in 8 bytes, little endian. */
export function nanoseconds(ms: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(Math.round(ms * 1_000_000)));
  return bytes;
}

/** Returns a time that the agent sent, in milliseconds. */
export function milliseconds(bytes: Buffer): number {
  return Number(bytes.readBigUInt64LE()) / 1_000_000;
}

/**
 * Returns a configuration as payloads of one or more frames, which have secrets: the caller wipes them. Throws a RangeError
 * when a value is too long for a frame.
 */
export function encodeRecords(config: GuestConfig): Buffer[] {
  return payloadsOf([
    ...identityRecords(config),
    ...config.args.map((arg) => record(Key.arg, arg)),
    record(Key.user, config.user),
    record(Key.workdir, config.workdir),
    ...config.ports.map((port) => record(Key.port, String(port))),
    ...config.volumes.map(({ serial, path }) => record(Key.volume, `${serial} ${path}`)),
    ...((config.swapMb ?? 0) > 0 ? [record(Key.swap, uint32(config.swapMb ?? 0))] : []),
    ...(config.files ?? []).flatMap(fileRecords),
    record(Key.clock, nanoseconds(Date.now())),
  ]);
}

/** Returns a subnet in the agent's form: base and mask in 4 bytes each, little endian. */
export function encodeSubnet({ base, prefix }: Subnet): Buffer {
  return Buffer.concat([uint32(base), uint32(2 ** 32 - 2 ** (32 - prefix))]);
}

/** Returns an identity and entropy in the same way. */
export function encodeIdentity(identity: GuestIdentity, entropy: Buffer): Buffer[] {
  const own = [record(Key.mac, identity.mac), record(Key.entropy, entropy)];
  return payloadsOf([...identityRecords(identity), ...own]);
}

function identityRecords({ hostname, env, network }: Omit<GuestIdentity, "mac">): Buffer[] {
  return [
    record(Key.hostname, hostname),
    ...Object.entries(env).map(([name, value]) => record(Key.env, `${name}=${value}`)),
    record(Key.address, network.address),
    record(Key.gateway, network.gateway),
    record(Key.dns, network.dns),
    ...network.hosts.map((line) => record(Key.hosts, line)),
  ];
}

/** Joins records into as few payloads as they fit. */
function payloadsOf(records: readonly Buffer[]): Buffer[] {
  const payloads: Buffer[] = [];
  let current: Buffer[] = [];
  let size = 0;
  for (const next of records) {
    if (size + next.length > MAX_PAYLOAD) {
      payloads.push(joined(current));
      current = [];
      size = 0;
    }
    current.push(next);
    size += next.length;
  }
  return [...payloads, joined(current)];
}

/** Returns the payload that starts a command. Throws a RangeError when it is too long for a frame. */
export function encodeCommand(spec: CommandSpec): Buffer {
  const { terminal, timeoutMs = 0, label } = spec;
  if (label !== undefined && label.length > MAX_LABEL)
    throw new RangeError(`a label may have ${MAX_LABEL} bytes, not ${label.length}`);
  const records = [
    ...spec.args.map((arg) => record(Key.arg, arg)),
    ...Object.entries(spec.env ?? {}).map(([name, value]) => record(Key.env, `${name}=${value}`)),
    record(Key.timeout, uint32(timeoutMs)),
  ];
  if (spec.user !== undefined) records.push(record(Key.user, spec.user));
  if (spec.workdir !== undefined) records.push(record(Key.workdir, spec.workdir));
  if (spec.hooks !== undefined) records.push(record(Key.hooks, spec.hooks));
  if (spec.task !== undefined) records.push(record(Key.task, spec.task));
  if (spec.login === true) records.push(record(Key.login, ""));
  if (label !== undefined) records.push(record(Key.label, label));
  if (spec.input === true) records.push(record(Key.input, ""));
  if (terminal !== undefined) records.push(record(Key.terminal, uint32(terminal.rows + terminal.columns * 65_536)));
  const payload = Buffer.concat(records);
  if (payload.length > MAX_PAYLOAD)
    throw new RangeError(`a command and its environment may have ${MAX_PAYLOAD} bytes, not ${payload.length}`);
  return payload;
}

/** Returns the records of a payload. For the fake guest. */
export function decodeRecords(payload: Buffer): [key: number, value: Buffer][] {
  const records: [number, Buffer][] = [];
  for (let at = 0; at < payload.length; ) {
    const end = at + HEAD_BYTES + payload.readUInt32LE(at + 1);
    records.push([payload.readUInt8(at), payload.subarray(at + HEAD_BYTES, end)]);
    at = end;
  }
  return records;
}

/** A file begins with its permissions and path, and its content follows in pieces. */
function fileRecords({ path, mode, content }: GuestFile): Buffer[] {
  const pieces = Array.from({ length: Math.ceil(content.length / FILE_CHUNK) }, (_, index) =>
    record(Key.fileData, content.subarray(index * FILE_CHUNK, (index + 1) * FILE_CHUNK)),
  );
  return [record(Key.file, `${mode.toString(8)} ${path}`), ...pieces];
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Joins records into a payload. Nobody needs them any more. */
function joined(records: readonly Buffer[]): Buffer {
  const payload = Buffer.concat(records);
  wipe(...records);
  return payload;
}

function record(key: number, value: string | Buffer): Buffer {
  return wiping(Buffer.from(value as string), (bytes) => {
    if (bytes.length > MAX_VALUE) throw new RangeError(`a value is longer than ${MAX_VALUE} bytes`);
    const head = Buffer.alloc(HEAD_BYTES);
    head[0] = key;
    head.writeUInt32LE(bytes.length, 1);
    return Buffer.concat([head, bytes]);
  });
}
