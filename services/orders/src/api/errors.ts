/** Replies to all errors with problem details. Faults of the service are logged and not shown. */
import type { Socket } from "node:net";
import type { FastifyBaseLogger, FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { DatabaseUnavailableError, StillReferencedError, UnknownSupplierError } from "../storage.ts";
import type { Routes } from "./allowed.ts";
import { explainRefusals } from "./explain.ts";
import { PROBLEM_TYPE, Problem } from "./problems.ts";

/** Seconds after which a client should try again when the database is unavailable. */
const RETRY_AFTER_S = 1;

const FRAMEWORK: Record<string, () => Problem> = {
  FST_ERR_CTP_BODY_TOO_LARGE: () =>
    new Problem("body_too_large", "The request body is larger than 4 MiB. Send less at a time."),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () =>
    new Problem("unsupported_media_type", "The request body must be sent as application/json."),
  FST_ERR_CTP_INVALID_JSON_BODY: () => new Problem("malformed_request", "The request body is not valid JSON."),
};

/** Returns the error handlers, which log faults. */
export function errorReplies(log: FastifyBaseLogger, routes: Routes) {
  /** Answers a request with an error. */
  function sendError(thrown: FastifyError, { method, url }: FastifyRequest, reply: FastifyReply): void {
    const problem = toProblem(thrown);
    // Not a fault, but someone will ask why the row is still there.
    if (problem.code === "still_referenced") log.info({ method, url, reason: thrown.message }, "a delete was rejected");
    if (problem.status === 500) log.error({ err: thrown, method, url }, "a request failed");
    if (problem.status === 503) {
      log.warn({ err: thrown, method, url }, "the database is unavailable");
      reply.header("retry-after", RETRY_AFTER_S);
    }
    reply.code(problem.status).type(PROBLEM_TYPE).send(problem.wire());
  }

  /** Answers a request for an address that does not exist, or does not have this method. */
  function sendNotFound(request: FastifyRequest, reply: FastifyReply): void {
    const allowed = routes.at(request.url).join(", ");
    if (allowed !== "") {
      reply.header("allow", allowed);
      const refused = `There is no ${request.method} at this address, only ${allowed}.`;
      return sendError(new Problem("method_not_allowed", refused) as Error as FastifyError, request, reply);
    }
    const detail = `There is no ${request.method} at this address. See /openapi.json for all routes.`;
    sendError(new Problem("not_found", detail) as Error as FastifyError, request, reply);
  }

  return { sendError, sendNotFound };
}

/** Replies to bytes that are not valid HTTP, for which there is no request. */
export function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const problem = new Problem("malformed_request", `The request is not valid HTTP (${error.code ?? "unknown"}).`);
  const body = JSON.stringify(problem.wire());
  const head = `content-type: ${PROBLEM_TYPE}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close`;
  socket.end(`HTTP/1.1 400 Bad Request\r\n${head}\r\n\r\n${body}`);
}

function toProblem(thrown: FastifyError): Problem {
  if (thrown instanceof Problem) return thrown;
  if (thrown.validation) return explainRefusals(thrown.validation, thrown.validationContext ?? "body");
  const cause: unknown = thrown;
  if (cause instanceof UnknownSupplierError) {
    const errors = cause.rows.map(
      ({ index, supplierId }) =>
        ({
          in: "body",
          pointer: `/${index}/supplierId`,
          message: `names supplier ${supplierId}, which does not exist`,
        }) as const,
    );
    const detail = "The batch refers to suppliers that do not exist. Nothing was created; create the suppliers first.";
    return new Problem("unknown_supplier", detail, { errors });
  }
  if (cause instanceof StillReferencedError) {
    return new Problem("still_referenced", "Other rows still refer to this one. Nothing was deleted.");
  }
  if (cause instanceof DatabaseUnavailableError) {
    return new Problem("database_unavailable", "The database does not answer. Try again in a moment.");
  }
  const known = FRAMEWORK[thrown.code];
  if (known) return known();
  const { statusCode: status = 500 } = thrown;
  if (status >= 400 && status < 500) return new Problem("malformed_request", thrown.message);
  return new Problem("internal_error", "Something went wrong inside the service. Its log has the details.");
}
