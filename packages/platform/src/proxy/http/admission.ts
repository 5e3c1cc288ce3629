/** Who sent a request, and what of its fields is believed. */
import { randomUUID } from "node:crypto";
import type { Field } from "../contract.ts";
import type { Origin } from "./heads.ts";
import { needsTrust, plainAddress, type Trust } from "./trust.ts";

/** The other end of a client's connection. */
export interface Peer {
  readonly address: string;
  readonly secure: boolean;
  readonly trusted: boolean;
  /** The identity of the connection. */
  readonly connection: object;
}

/** Ids that we take from others: what fits into logs and headers as it is. */
const SANE_ID = /^[A-Za-z0-9._:-]{1,128}$/;

export function peerOf(address: string | undefined, secure: boolean, connection: object, trust: Trust): Peer {
  const plain = plainAddress(address ?? "");
  return { address: plain, secure, trusted: trust.has(plain), connection };
}

/** The fields that may stay, and what the request is to the app. */
export function admit(
  fields: readonly Field[],
  peer: Peer,
  trust: Trust,
): { fields: readonly Field[]; origin: Origin } {
  const forged = !peer.trusted && fields.some(({ key }) => needsTrust(key));
  const believed = forged ? fields.filter(({ key }) => !needsTrust(key)) : fields;
  const origin = {
    requestId: requestId(believed),
    peer: peer.address,
    clientAddress: peer.trusted ? trust.clientOf(peer.address, fields) : peer.address,
    secure: peer.secure,
  };
  return { fields: believed, origin };
}

/** The id that the request has: from a trusted proxy, or as anyone may say in `X-Request-Id`; else a new one. */
function requestId(believed: readonly Field[]): string {
  let id: string | undefined;
  for (const { key, value } of believed) {
    if (key === "hibernaut-request-id" && SANE_ID.test(value)) return value;
    if (key === "x-request-id" && SANE_ID.test(value)) id ??= value;
  }
  return id ?? randomUUID();
}
