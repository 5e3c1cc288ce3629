/** Errors as Fly's clients expect them: `{error, status}`, where `error` has the phrases that they look for. */
import type { ErrorCode } from "@hibernaut/domain/errors";

/** The body of every refusal. `status` is a word that clients tell errors apart by. */
export interface Failure {
  error: string;
  status: string;
}

/** An answer other than success. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly statusCode: number;
  readonly word: string;

  constructor(statusCode: number, message: string, word = "unknown") {
    super(message);
    this.statusCode = statusCode;
    this.word = word;
  }
}

/** The platform's API refused what it was asked. */
export class PlatformRefusal extends Error {
  override name = "PlatformRefusal";
  readonly statusCode: number;
  readonly code: ErrorCode;
  readonly details: Record<string, unknown>;

  constructor(statusCode: number, code: ErrorCode, message: string, details: Record<string, unknown>) {
    super(message);
    this.statusCode = statusCode;
    this.code = code;
    this.details = details;
  }
}

/**
 * Errors that clients look for by a word or a phrase, and statuses that mean something else to them: at 503, they send the
 * same again, whatever it was, so that only what has changed nothing may answer with it.
 */
const SPECIAL: Partial<Record<ErrorCode, { status?: number; word?: string; text?(refusal: PlatformRefusal): string }>> =
  {
    host_full: { status: 422, word: "insufficient_capacity", text: () => "could not reserve resource for machine" },
    host_unreachable: { status: 504 },
    unavailable: { status: 504 },
    lease_held: {
      text: ({ details }) =>
        `lease currently held by ${String(details["owner"])}, expires at ${String(details["expires_at"])}`,
    },
  };

/** What clients look for in the text of an error that says that there is no such thing, by the detail that names it. */
const MISSING: readonly [detail: string, phrase: string][] = [
  ["secret", "secret not found"],
  ["snapshot_id", "snapshot not found"],
  ["volume_id", "volume not found"],
  ["image", "image not found"],
  ["hostname", "certificate not found"],
  ["machine_id", "machine not found"],
  ["app_name", "app not found"],
];

/** What the platform's sentences call otherwise than a client of this port has to. */
const NAMES: readonly [platform: string, fly: string][] = [
  ["hibernaut-lease-nonce", "fly-machine-lease-nonce"],
  ["HIBERNAUT_API_TOKEN", "FLY_API_TOKEN"],
  ["destroy it with --force (over HTTP `?force=true`)", "destroy it with `?force=true`"],
];

/** Returns what the client is told, and the HTTP status. Any error other than ours is a fault of the platform. */
export function failureOf(error: unknown): { status: number; body: Failure } {
  if (error instanceof Refusal) return { status: error.statusCode, body: { error: error.message, status: error.word } };
  if (error instanceof PlatformRefusal) {
    const { status = error.statusCode, word = "unknown", text } = SPECIAL[error.code] ?? {};
    const said = text === undefined ? textOf(error) : `${text(error)}: ${error.message}`;
    return {
      status,
      body: { error: NAMES.reduce((all, [one, other]) => all.replaceAll(one, other), said), status: word },
    };
  }
  const { statusCode, message } = error as { statusCode?: unknown; message?: unknown };
  // Fastify's own: a body that is not JSON, is too large, or is not as its schema says.
  if (typeof statusCode === "number" && statusCode >= 400 && statusCode < 500)
    return { status: statusCode, body: { error: `invalid_argument: ${String(message)}`, status: "unknown" } };
  const body = { error: "internal: Something is wrong with the platform. Its log says more.", status: "unknown" };
  return { status: 500, body };
}

/** After how many seconds a client that was refused for what it has or does too much of may try again. */
export function waitOf(error: unknown): number {
  const { retry_after_s: seconds } = error instanceof PlatformRefusal ? error.details : {};
  return typeof seconds === "number" ? seconds : 1;
}

function textOf({ code, message, details }: PlatformRefusal): string {
  if (code !== "not_found") return `${code}: ${message}`;
  // A client looks for it after a blank.
  if (message.startsWith("lease not found")) return `the machine's ${message}`;
  const [, phrase] = MISSING.find(([detail]) => detail in details) ?? [];
  return phrase === undefined ? message : `${phrase}: ${message}`;
}
