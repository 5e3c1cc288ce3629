/** Writes the audit log: a line before a change, so that none is missing, and one after it, which says how it ended. */
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { AuditEntry } from "./audit/entry.ts";
import type { AuditLog } from "./audit/log.ts";
import { clientAddress } from "./cluster/peer.ts";
import type { Api } from "./deps.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Fields of the body that say what is meant. Their values go into the audit log, so none may be a secret. */
    audited?: readonly string[];
  }
  interface FastifyRequest {
    /** The line that was written before the change; null if there is none. */
    auditBegun: AuditEntry | null;
  }
}

/** Longer texts are cut: a name is short. */
const MAX_TEXT = 300;
/** Someone may write a login into the name of an image. A digest also has an @. */
const LOGIN = /[^\s/@]+:[^\s/@]*@(?!sha256:)/g;
/** An address may have a token in its path: only where it leads is noted. */
const ADDRESS = /^https?:\/\//i;
/** Statuses that say that the token may not do this. */
const REFUSED = new Set([403, 404]);

/** Audits the routes that are registered after this. Call it after the hook that finds the token. */
export function auditChanges(app: Api, log: AuditLog): void {
  app.decorateRequest("auditBegun", null);
  app.addHook("preHandler", async (request) => {
    const entry = isAudited(request) ? entryOf(request, "begin", null) : undefined;
    if (entry !== undefined) append(log, request, entry);
  });
  app.addHook("onResponse", async (request, reply) => {
    const entry = endOf(request, reply);
    if (entry === undefined) return;
    try {
      log.append(entry);
    } catch (error) {
      request.log.error({ err: error, audit: entry }, "a line of the audit log could not be written");
    }
  });
}

/** Writes the line before a change whose token became known in its handler: a sign-in. The one after it follows by itself. */
export function beginAudit(log: AuditLog, request: FastifyRequest): void {
  const entry = entryOf(request, "begin", null);
  if (entry !== undefined) append(log, request, entry);
}

function append(log: AuditLog, request: FastifyRequest, entry: AuditEntry): void {
  try {
    log.append(entry);
    request.auditBegun = entry;
  } catch (error) {
    unwritten(request, entry, error);
  }
}

/** What cannot be audited is not done, except for deletions: one of them may be what frees the disk. */
function unwritten(request: FastifyRequest, entry: AuditEntry, error: unknown): void {
  request.log.error({ err: error, audit: entry }, "a line of the audit log could not be written");
  if (request.method === "DELETE") return;
  const message = `The platform cannot write its audit log (${messageOf(error)}), so it changes nothing. Free some disk space and try again.`;
  throw new HibernautError("unavailable", message, { reason: messageOf(error) }, { cause: error });
}

function endOf(request: FastifyRequest, { statusCode: status }: FastifyReply): AuditEntry | undefined {
  const { auditBegun } = request;
  // The host that it was sent on to has noted it.
  if (request.sentOnTo !== null) return undefined;
  if (auditBegun !== null) return { ...auditBegun, at: new Date().toISOString(), phase: "end", status };
  if (!REFUSED.has(status) || !isAudited(request)) return undefined;
  return entryOf(request, "refused", status);
}

/** Changes, and what reaches into a machine. A program in a machine acts on itself, which its history tells. */
function isAudited({ method, token, routeOptions: { config } }: FastifyRequest): boolean {
  return token !== null && (method !== "GET" || config.scope === "exec");
}

function entryOf(request: FastifyRequest, phase: AuditEntry["phase"], status: number | null): AuditEntry | undefined {
  const { token, session, params, method, routeOptions } = request;
  if (token === null) return undefined;
  const named = { ...(params as Record<string, unknown>), ...bodyParts(request) };
  const { app_name: app = null, ...target } = named as { app_name?: unknown };
  return {
    at: new Date().toISOString(),
    phase,
    request_id: request.id,
    token: { id: token.id, name: token.name },
    ...(session !== null && { session: true as const }),
    from: clientAddress(request),
    method,
    route: routeOptions.url ?? "unknown",
    app: typeof app === "string" ? app.slice(0, MAX_TEXT) : null,
    target: Object.fromEntries(Object.entries(target).map(([name, value]) => [name, shortened(value)])),
    status,
  };
}

/** Only what the route names: everything else may be a secret, a command or a file. */
function bodyParts({ body, routeOptions, query }: FastifyRequest): Record<string, unknown> {
  const force = (query as { force?: unknown } | null)?.force;
  const names = routeOptions.config.audited ?? [];
  if (typeof body !== "object" || body === null) return force === true ? { force } : {};
  const given = body as Record<string, unknown>;
  const parts = names.filter((name) => Object.hasOwn(given, name)).map((name) => [name, given[name]]);
  return { ...Object.fromEntries(parts), ...(force === true && { force }) } as Record<string, unknown>;
}

function shortened(value: unknown): unknown {
  if (typeof value === "string" && ADDRESS.test(value)) return URL.parse(value)?.origin ?? "...";
  if (typeof value === "string") return value.replaceAll(LOGIN, "...@").slice(0, MAX_TEXT);
  if (Array.isArray(value)) return value.slice(0, 20).map((each) => String(each).slice(0, MAX_TEXT));
  return typeof value === "number" || typeof value === "boolean" || value === null ? value : "...";
}
