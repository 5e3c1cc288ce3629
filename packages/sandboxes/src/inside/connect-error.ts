/** Errors of the services, in Connect's codes. */
import { Code, ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { isHibernautError } from "@hibernaut/domain/errors";
import { failureOf } from "../failure.ts";

const CODES: Record<number, Code> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  409: Code.AlreadyExists,
  429: Code.ResourceExhausted,
  499: Code.Canceled,
  501: Code.Unimplemented,
  503: Code.Unavailable,
  504: Code.DeadlineExceeded,
  507: Code.ResourceExhausted,
};

/** How the library begins to say that it cannot read a request. It calls that a fault of its own. */
const MISREAD = /^(parse binary|decompression failed|received compressed envelope)/;

/** Has the client told, before it hears of the error, that it sent what cannot be read. */
export function blameClient({ signal }: HandlerContext): void {
  const blame = () => {
    const { reason } = signal as { reason: unknown };
    if (reason instanceof ConnectError && reason.code === Code.Internal && MISREAD.test(reason.rawMessage))
      Object.assign(reason, { code: Code.InvalidArgument });
  };
  signal.addEventListener("abort", blame, { once: true });
}

function connectError(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  const { code: status, message } = failureOf(error);
  // Over HTTP both are 409.
  const code = isHibernautError(error, "failed_precondition") ? Code.FailedPrecondition : CODES[status];
  return new ConnectError(message, code ?? Code.Internal, undefined, undefined, error);
}

/** Says in Connect's terms why a method failed, before it answered or in the middle of its stream. */
export const inConnectTerms: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: streaming(response.message) } : response;
  } catch (error) {
    throw connectError(error);
  }
};

async function* streaming<T>(messages: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* messages;
  } catch (error) {
    throw connectError(error);
  }
}
