/** Whatever goes wrong, the reply has one shape: `{error, message, details, request_id}`. */
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { type ErrorCode, HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { concealed } from "./access.ts";
import { explainRefusals } from "./explain.ts";
import type { ErrorWire } from "./schemas.ts";

/** Seconds after which a client may try again when the fault itself does not say. */
const RETRY_AFTER_S = 1;

/** Fastify's own refusals whose status is not already the right one for a plain `invalid_argument`. */
const FRAMEWORK_CODES: Record<string, ErrorCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "payload_too_large",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported_media_type",
};

const FRAMEWORK_MESSAGES: Record<string, string> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "The request body is over 1 MiB. Send less.",
  FST_ERR_BAD_URL: "The address is not valid: a % must be followed by two hex digits of UTF-8.",
  FST_ERR_MAX_PARAM_LENGTH: "A name or an id in the address is too long.",
  FST_ERR_CTP_INVALID_JSON_BODY: "The request body is not valid JSON.",
  FST_ERR_CTP_INVALID_MEDIA_TYPE:
    "The request body must be JSON, sent with `content-type: application/json`, or for a blob of an image its bytes, sent with `content-type: application/octet-stream`.",
};

/** Answers a request with an error; a fault of ours is logged with its stack and not shown. */
export function sendError(thrown: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const error = concealed(toHibernautError(thrown, request), request.token);
  if (error.code === "internal")
    request.log.error({ err: thrown, method: request.method, url: request.url }, "a request failed");
  if (error.status === 401) reply.header("www-authenticate", 'Bearer realm="hibernaut"');
  if (error.status === 429 || error.status === 503) reply.header("retry-after", retryAfter(error));
  // Also set at the start of a request; those that the framework itself refuses never get there.
  reply.header("x-request-id", request.id);
  reply.code(error.status).type("application/json; charset=utf-8").send(errorWire(error, request.id));
}

/** Answers a request for a path that does not exist. */
export function sendNotFound(request: FastifyRequest, reply: FastifyReply): void {
  const path = request.url.split("?", 1)[0] ?? "";
  const message = `There is no ${request.method} ${path.slice(0, 200)}. /openapi.json lists what there is.`;
  sendError(new HibernautError("not_found", message), request, reply);
}

/** Answers bytes that are not HTTP, or not acceptable as such: no request exists yet. */
export function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const refusal =
    error.code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? new HibernautError(
          "deadline_exceeded",
          "The request did not arrive in time. Send less at a time, or try again.",
        )
      : new HibernautError(
          "invalid_argument",
          `The request is not acceptable HTTP (${error.code ?? "unknown fault"}).`,
        );
  const body = JSON.stringify(errorWire(refusal, "none"));
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

/** An error on the wire. */
export function errorWire(error: HibernautError, requestId: string): ErrorWire {
  return { error: error.code, message: error.message, details: error.details, request_id: requestId };
}

/** Anything that was thrown as an error for users. */
export function toHibernautError(thrown: FastifyError, request: FastifyRequest): HibernautError {
  if (thrown instanceof HibernautError) return thrown;
  // Node wraps why a signal was aborted, e.g. that the client went away.
  if (thrown.name === "AbortError" && thrown.cause instanceof HibernautError) return thrown.cause;
  if (thrown.validation) {
    const part = thrown.validationContext ?? "body";
    return explainRefusals(thrown.validation, request.routeOptions.schema?.[part], part);
  }
  const status = thrown.statusCode ?? 500;
  if (status >= 400 && status < 500) return frameworkRefusal(thrown);
  const message = `Something went wrong inside Hibernaut. The platform's log has the details under request ${request.id}.`;
  return new HibernautError("internal", message);
}

function frameworkRefusal(thrown: FastifyError): HibernautError {
  const code = FRAMEWORK_CODES[thrown.code] ?? "invalid_argument";
  return new HibernautError(code, FRAMEWORK_MESSAGES[thrown.code] ?? `${messageOf(thrown)}.`.replace(/\.\.$/, "."));
}

function retryAfter(error: HibernautError): number {
  const wanted = Number(error.details.retry_after_s);
  return Number.isFinite(wanted) && wanted > 0 ? Math.ceil(wanted) : RETRY_AFTER_S;
}
