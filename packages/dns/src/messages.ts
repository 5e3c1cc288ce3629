/** Encodes and decodes DNS messages with dns-packet. Pure. */
import type { Answered } from "@hibernaut/network";
import packet from "dns-packet";
import { lookUp, type Zone } from "./zone.ts";

/** Response codes (RFC 1035, section 4.1.1). */
export const Rcode = { noError: 0, formatError: 1, serverFailure: 2, nameError: 3, notImplemented: 4 } as const;

/** How long clients may cache an answer, in seconds. Short, because machines come and go. */
const TTL_S = 5;
/** Bytes over UDP: what a client without EDNS accepts, and the most that we send to a client that accepts more. */
const UDP_BYTES = { least: 512, most: 1232 };
const OPCODE_MASK = 0x7800;
const HEADER_BYTES = 12;

interface Query {
  /** The message as it was received, to be passed on. */
  bytes: Buffer;
  id: number;
  name: string;
  type: string;
  /** The longest reply that the client accepts over UDP, in bytes. */
  udpBytes: number;
}

/** Parses a query. Returns the code to refuse it with when it is not valid, or undefined when it deserves no reply. */
export function parseQuery(bytes: Buffer): Query | number | undefined {
  if (bytes.length < HEADER_BYTES || (bytes.readUInt8(2) & 0x80) !== 0) return undefined;
  if ((bytes.readUInt16BE(2) & OPCODE_MASK) !== 0) return Rcode.notImplemented;
  try {
    const { id = 0, questions = [], additionals = [] } = packet.decode(bytes);
    const [question] = questions;
    if (question === undefined || questions.length > 1) return Rcode.formatError;
    const opt = additionals.find((record) => record.type === "OPT");
    const offered = opt?.type === "OPT" ? opt.udpPayloadSize : 0;
    const udpBytes = Math.min(Math.max(offered, UDP_BYTES.least), UDP_BYTES.most);
    return { bytes, id, name: question.name, type: question.type, udpBytes };
  } catch {
    return Rcode.formatError;
  }
}

/** Returns the reply to a question about `.internal`. Undefined when another name server has to answer. */
export function answer(zone: Zone, query: Query, asker: string): Buffer | undefined {
  const found = lookUp(zone, query.name, asker);
  if (found === "elsewhere") return undefined;
  if (found === undefined) return reply(query.bytes, Rcode.nameError);
  const wanted = query.type === "A" || query.type === "ANY" ? found : [];
  const records = wanted.map((data) => ({ type: "A" as const, name: query.name, ttl: TTL_S, data }));
  return packet.encode({
    type: "response",
    id: query.id,
    flags: packet.AUTHORITATIVE_ANSWER | packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE,
    questions: [{ type: query.type as "A", name: query.name }],
    answers: records,
  });
}

/** Returns the IPv4 addresses of a reply. Empty when it has none, or cannot be decoded. */
export function addressesIn(response: Buffer): Answered[] {
  try {
    const records = packet.decode(response).answers ?? [];
    return records.flatMap((record) => (record.type === "A" ? [{ address: record.data, ttlS: record.ttl ?? 0 }] : []));
  } catch {
    return [];
  }
}

/** Turns a query into a reply that has only a code. Also works on messages that cannot be decoded. */
export function reply(query: Buffer, code: number): Buffer {
  const bytes = query.length > HEADER_BYTES ? withQuestionOnly(query) : Buffer.from(query.subarray(0, HEADER_BYTES));
  bytes.writeUInt16BE(
    (bytes.readUInt16BE(2) & (OPCODE_MASK | packet.RECURSION_DESIRED)) | 0x8000 | packet.RECURSION_AVAILABLE | code,
    2,
  );
  return bytes;
}

/** Makes a reply fit into UDP: one over `limit` bytes loses its answers, and tells the client to ask again over TCP. */
export function forUdp(response: Buffer, limit: number): Buffer {
  if (response.length <= limit) return response;
  const bytes = withQuestionOnly(response);
  bytes.writeUInt16BE(bytes.readUInt16BE(2) | packet.TRUNCATED_RESPONSE, 2);
  return bytes;
}

/** Whether `response` answers `query`: it has the same id and, byte by byte, the same question. */
export function answers(query: Buffer, response: Buffer): boolean {
  if (response.length < HEADER_BYTES || (response.readUInt8(2) & 0x80) === 0) return false;
  const [asked, answered] = [questionOf(query), questionOf(response)];
  return query.readUInt16BE(0) === response.readUInt16BE(0) && asked !== undefined && answered?.equals(asked) === true;
}

function withQuestionOnly(message: Buffer): Buffer {
  const question = questionOf(message) ?? Buffer.alloc(0);
  const bytes = Buffer.concat([message.subarray(0, HEADER_BYTES), question]);
  bytes.writeUInt16BE(question.length > 0 ? 1 : 0, 4);
  bytes.fill(0, 6, HEADER_BYTES);
  return bytes;
}

/** Returns the bytes of the first question. Undefined when there is none or it is incomplete. */
function questionOf(message: Buffer): Buffer | undefined {
  if (message.readUInt16BE(4) === 0) return undefined;
  let at = HEADER_BYTES;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > 63) return undefined;
    at += length + 1;
    if (length === 0) break;
  }
  return at + 4 <= message.length ? message.subarray(HEADER_BYTES, at + 4) : undefined;
}
