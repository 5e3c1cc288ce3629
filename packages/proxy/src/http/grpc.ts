/** The proxy's own answers to gRPC calls, whose clients look at a status of gRPC's and not at a body. Pure. */
import type { ProxyRefusal } from "../contract.ts";
import { type Answer, field, reasonOf } from "./heads.ts";
import type { RequestMessage } from "./request.ts";

/** Not gRPC-Web, whose clients understand HTTP. */
const CALL = /^application\/grpc(?:$|[+;])/i;
/** What gRPC's clients make of statuses of HTTP by themselves. */
const STATUSES: ReadonlyMap<number, number> = new Map([
  [400, 13], // INTERNAL
  [401, 16], // UNAUTHENTICATED
  [403, 7], // PERMISSION_DENIED
  [404, 12], // UNIMPLEMENTED
  [429, 14], // UNAVAILABLE
  [502, 14],
  [503, 14],
  [504, 14],
]);
const UNKNOWN = 2;
const NO_BODY = Buffer.alloc(0);

/** Whether a request is a call of gRPC. */
export function isGrpc({ httpVersion, method, fields }: RequestMessage): boolean {
  if (httpVersion !== "2.0" || method !== "POST") return false;
  return fields.some(({ key, value }) => key === "content-type" && CALL.test(value));
}

/** Returns a refusal as the end of a call: the status that its client would find anyway, with our words. */
export function grpcAnswer(refusal: ProxyRefusal, requestId: string): { answer: Answer; body: Buffer } {
  const { status, code, message } = refusal;
  const fields = [
    field("Content-Type", "application/grpc"),
    field("Grpc-Status", String(STATUSES.get(status) ?? UNKNOWN)),
    field("Grpc-Message", encoded(`${code}: ${message}`)),
    field("Hibernaut-Request-Id", requestId),
  ];
  return {
    answer: { status: 200, reason: reasonOf(200), fields, framing: { kind: "none" }, length: undefined },
    body: NO_BODY,
  };
}

/** As gRPC wants it: UTF-8, with everything that is not printable ASCII, and the percent sign, percent-encoded. */
function encoded(message: string): string {
  return [...Buffer.from(message)]
    .map((byte) =>
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
    )
    .join("");
}
