/** Who sent a request, and which of its fields to believe. */
import { randomUUID } from "node:crypto";
import type { Field } from "../contract.ts";
import type { Origin } from "./heads.ts";
import { isReplaySource, needsTrust, plainAddress, type Trust } from "./trust.ts";

/** The other end of a client's connection. */
export interface Peer {
  readonly address: string;
  readonly secure: boolean;
  readonly trusted: boolean;
  /** The identity of the connection. */
  readonly connection: object;
}

/** Ids that are accepted from others: those that fit into logs and headers as they are. */
const SANE_ID = /^[A-Za-z0-9._:-]{1,128}$/;

export function peerOf(address: string | undefined, secure: boolean, connection: object, trust: Trust): Peer {
  const plain = plainAddress(address ?? "");
  return { address: plain, secure, trusted: trust.has(plain), connection };
}

/** Fields that are not believed. Functions that exist once: they are used for every request. */
const OF_STRANGERS = ({ key }: Field) => needsTrust(key);
const OF_PROXIES = ({ key }: Field) => isReplaySource(key);

/** Drops the fields of a message that its sender may not send, and returns where the request comes from. */
export function admit(message: { fields: readonly Field[] }, peer: Peer, trust: Trust): Origin {
  const { fields } = message;
  const forbidden = peer.trusted ? OF_PROXIES : OF_STRANGERS;
  if (fields.some(forbidden)) message.fields = fields.filter((field) => !forbidden(field));
  return originOf(message.fields, peer, trust);
}

/** Returns where a request with these fields, all of which may be believed, comes from. */
export function originOf(fields: readonly Field[], peer: Peer, trust: Trust): Origin {
  return {
    requestId: requestId(fields),
    peer: peer.address,
    clientAddress: peer.trusted ? trust.clientOf(peer.address, fields) : peer.address,
    secure: peer.secure,
  };
}

/** The request's id: from a trusted proxy, or from any client in `X-Request-Id`; otherwise a new one. */
function requestId(fields: readonly Field[]): string {
  let id: string | undefined;
  for (const { key, value } of fields) {
    if (key === "hibernaut-request-id" && SANE_ID.test(value)) return value;
    if (key === "x-request-id" && SANE_ID.test(value)) id ??= value;
  }
  return id ?? randomUUID();
}
