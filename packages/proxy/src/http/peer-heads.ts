/**
 * What two proxies of a cluster tell each other about a request, in fields that exist only between them. The client's own
 * fields go along as they came, so that the app sees the same request as if the first proxy had given it to the app. Pure.
 */
import { BOOT_KINDS, type BootKind } from "@hibernaut/domain/machine";
import { type Destination, type Field, type Lease, type LeaseStart, ProxyRefusal } from "../contract.ts";
import { Malformed } from "./grammar.ts";
import { type Answer, endingHere, field, framingField, type Origin, ownAnswer, TRAILERS } from "./heads.ts";
import type { RequestMessage } from "./request.ts";
import type { ResponseMessage } from "./response.ts";

/** Of a request: which machine it is for, and where it comes from, as JSON. */
const REQUEST = "Hibernaut-Peer-Request";
/** Of a response: the proxy gives it in the app's place, as JSON. There is no body. */
const REFUSED = "Hibernaut-Peer-Refused";
const WAKE = "hibernaut-wake";
const WAKE_VALUE = /^([a-z]+); dur=(\d+)$/;
/** Longer messages are cut: a head has a limit. */
const MOST_MESSAGE = 4_000;

/** A request for one machine that another host's proxy has admitted. */
export interface PeerRequest {
  /** As the client sent it. */
  message: RequestMessage;
  origin: Origin;
  to: Destination;
  /** The value of `fly-replay-src`, if another app sent the request on. */
  source: string | undefined;
}

/**
 * Bodies of up to this many bytes are kept until the app answers, unless those of other open requests take up all that may
 * be kept. The client then gets the refusal.
 */
const SHORT_BODY = 65_536;

/** {@link PeerRequest} on the wire. Keys that are not known are ignored: hosts may be a version apart. */
interface Wire {
  app: string;
  machine: string;
  port?: number | undefined;
  others?: boolean | undefined;
  id: string;
  peer: string;
  client: string;
  secure: boolean;
  version: RequestMessage["httpVersion"];
  source?: string | undefined;
}

/** Returns the head of the request to the proxy of another host. */
export function peerRequestHead(message: RequestMessage, origin: Origin, lease: Lease, source?: string): string {
  let text = `${message.method} ${message.target} HTTP/1.1\r\nHost: ${message.authority}\r\n`;
  for (const { name, key, value } of message.fields)
    if (key === "te" && TRAILERS.test(value)) text += "Connection: TE\r\nTE: trailers\r\n";
    else if (!endingHere(key) && !key.startsWith("hibernaut-peer-") && !message.connection.includes(key))
      text += `${name}: ${value}\r\n`;
  if (message.upgrade !== undefined) text += `Connection: Upgrade\r\nUpgrade: ${message.upgrade}\r\n`;
  const wire: Wire = {
    app: lease.appName,
    machine: lease.machineId,
    port: lease.peer?.port,
    others: lease.peer?.hasOthers === true && isShort(message) ? true : undefined,
    id: origin.requestId,
    peer: origin.peer,
    client: origin.clientAddress,
    secure: origin.secure,
    version: message.httpVersion,
    source,
  };
  return `${text}${framingField(message.framing)}${REQUEST}: ${asciiJson(wire)}\r\n\r\n`;
}

/** Reads a request of another host's proxy. Throws {@link Malformed} if it is not one. */
export function readPeerRequest(message: RequestMessage): PeerRequest {
  const key = REQUEST.toLowerCase();
  const given = message.fields.filter((one) => one.key === key);
  const wire = given.length === 1 ? parsed(given[0]?.value) : undefined;
  if (!isWire(wire)) throw new Malformed(`A request between hosts needs one ${REQUEST}.`);
  const { app, machine, port, others, id: requestId, peer, client: clientAddress, secure, version, source } = wire;
  const fields = message.fields.filter((one) => one.key !== key);
  return {
    message: { ...message, fields, httpVersion: version },
    origin: { requestId, peer, clientAddress, secure },
    to: { from: app, app, machineId: machine, port, hasOthers: others === true },
    source,
  };
}

/** Returns the app's response for the other proxy, which adds what clients get. It may ask to send the request on. */
export function peerAnswer(response: ResponseMessage, { wake }: Pick<Lease, "wake">): Answer {
  const { status, reason, framing, connection } = response;
  const fields: Field[] = response.fields.filter(({ key }) => {
    if (key === "fly-replay" || key === "hibernaut-replay") return true;
    return !endingHere(key) && !connection.includes(key) && !key.startsWith("hibernaut-");
  });
  fields.push(field("Hibernaut-Wake", `${wake.kind}; dur=${Math.round(wake.durationMs)}`));
  const asked = status === 426 ? { upgrade: response.upgrade } : undefined;
  return { status, reason, fields, framing, length: status === 204 ? undefined : response.length, ...asked };
}

/**
 * Returns a refusal for the other proxy, which puts it into words for the client, or asks another machine.
 *
 * @param seen whether the app may have seen the request
 */
export function peerRefusal({ status, code, message, retryAfterS, location, page }: ProxyRefusal, seen: boolean) {
  const wire: RefusalWire = { code, message: message.slice(0, MOST_MESSAGE), retryAfterS, location, page, seen };
  return ownAnswer(status, [field(REFUSED, asciiJson(wire))], Buffer.alloc(0));
}

interface RefusalWire {
  code: string;
  message: string;
  retryAfterS?: number | undefined;
  location?: string | undefined;
  page: boolean;
  seen: boolean;
}

/** What the proxy of another host answered in the app's place. */
export interface PeerRefusal {
  refusal: ProxyRefusal;
  /** Whether the app may have seen the request. */
  seen: boolean;
}

/** Returns the refusal that a response of another host's proxy is. Undefined if it is the app's response. */
export function refusedByPeer({ status, fields }: ResponseMessage): PeerRefusal | undefined {
  const key = REFUSED.toLowerCase();
  const value = fields.find((one) => one.key === key)?.value;
  if (value === undefined) return undefined;
  const wire = parsed(value) as Partial<RefusalWire> | undefined;
  const { code = "internal", message = "", retryAfterS, location, page = false, seen = true } = wire ?? {};
  const options = { ...(retryAfterS !== undefined && { retryAfterS }), ...(location !== undefined && { location }) };
  return { refusal: new ProxyRefusal(status, code, message, { ...options, page }), seen };
}

/** Returns how the machine of another host came to answer. */
export function wakeAtPeer(fields: readonly Field[]): LeaseStart {
  const [, kind = "", ms = "0"] = WAKE_VALUE.exec(fields.find(({ key }) => key === WAKE)?.value ?? "") ?? [];
  const known = BOOT_KINDS.includes(kind as BootKind);
  return { kind: known ? (kind as BootKind) : "running", durationMs: Number(ms) };
}

/** Whether all of the request can be sent again, to another machine. */
function isShort({ framing }: RequestMessage): boolean {
  return framing.kind === "none" || (framing.kind === "length" && framing.length <= SHORT_BODY);
}

function isWire(wire: unknown): wire is Wire {
  if (typeof wire !== "object" || wire === null) return false;
  const { app, machine, port, id, peer, client, secure, version, source } = wire as Record<string, unknown>;
  const texts = [app, machine, id, peer, client].every((text) => typeof text === "string");
  const known = version === "1.0" || version === "1.1" || version === "2.0";
  const optional = (port === undefined || Number.isInteger(port)) && ["string", "undefined"].includes(typeof source);
  return texts && known && optional && typeof secure === "boolean";
}

/** Fields carry latin1, and what an app says may be anything. */
function asciiJson(value: object): string {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (unit) => {
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}
