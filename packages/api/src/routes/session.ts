/** `/v1/session`: a browser shows a token once and gets a cookie in its place. */
import { HibernautError } from "@hibernaut/domain/errors";
import { hasScope } from "@hibernaut/domain/scopes";
import type { TokenRecord } from "@hibernaut/store";
import type { FastifyRequest } from "fastify";
import { FailedAttempts } from "../attempts.ts";
import { beginAudit } from "../audit.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { NoQuery, Ok, replies } from "../schemas.ts";
import { requireOwnOrigin } from "../session-access.ts";
import { isSecure, sessionCookie, sessionIn } from "../session-cookie.ts";
import type { Sessions } from "../sessions.ts";
import { verifyToken } from "../tokens.ts";
import { SessionBody, SessionReply, type SessionWire } from "./session.schemas.ts";

interface SessionDeps extends Pick<ApiDeps, "tokens" | "audit" | "hostnames"> {
  sessions: Sessions;
  onToken(token: TokenRecord): void;
}

/** Registers the routes of sessions. */
export function sessionRoutes(app: Api, { tokens, sessions, audit, hostnames, onToken }: SessionDeps): void {
  const tags = ["tokens"];
  const attempts = new FailedAttempts();

  app.post(
    "/v1/session",
    {
      config: { open: true },
      schema: {
        tags,
        security: [],
        summary: "Sign in from a browser: exchange a token for a cookie",
        querystring: NoQuery,
        body: SessionBody,
        response: replies(201, SessionReply),
      },
    },
    async (request, reply) => {
      const token = identify(request, request.body.token);
      request.token = token;
      onToken(token);
      hostnames.signIn(request.headers.host, token.apps === null && hasScope(token.scopes, "deploy"));
      if (audit !== undefined) beginAudit(audit, request);
      const { secret, endsAt } = sessions.begin(token);
      const secure = isSecure(request.headers.origin, request.protocol === "https");
      const cookie = sessionCookie(secret, { secure, maxAgeMs: endsAt - Date.now() });
      return reply.header("set-cookie", cookie).code(201).send(sessionWire(token, endsAt));
    },
  );

  function identify(request: FastifyRequest, secret: string): TokenRecord {
    // A page of another site must not sign anyone in.
    if (request.headers.origin !== undefined) requireOwnOrigin(request);
    // Anyone who shows a valid token is let in, however often others behind the same address, as of a proxy, were wrong.
    const token = verifyToken(tokens, secret);
    if (token !== undefined) return token;
    const from = request.socket.remoteAddress ?? "unknown";
    const waitS = Math.ceil(attempts.waitMs(from) / 1000);
    if (waitS > 0)
      throw new HibernautError(
        "resource_exhausted",
        `Too many attempts to sign in from ${from} failed. Try again in ${waitS} s.`,
        { per: "sign_ins", retry_after_s: waitS },
      );
    attempts.failed(from);
    throw new HibernautError(
      "unauthenticated",
      "The token is unknown, expired or revoked. `hibernaut tokens create <name>` makes one.",
    );
  }

  app.get(
    "/v1/session",
    {
      config: { scope: "read", limited: "shared" },
      schema: {
        tags,
        summary: "Show who is signed in",
        querystring: NoQuery,
        response: replies(200, SessionReply),
      },
    },
    async ({ session, token }) => {
      if (session !== null) return sessionWire(session.token, session.endsAt);
      if (token === null) throw new Error("a request without a token reached a route that needs one");
      return sessionWire(token, token.expiresAt === null ? null : Date.parse(token.expiresAt));
    },
  );

  app.delete(
    "/v1/session",
    {
      config: { scope: "read", limited: "shared" },
      schema: { tags, summary: "Sign out: end the session", querystring: NoQuery, response: replies(200, Ok) },
    },
    async (request, reply) => {
      if (request.session !== null) sessions.end(request.session);
      const tls = request.protocol === "https";
      const secure = sessionIn(request.headers.cookie, tls)?.secure ?? tls;
      return reply.header("set-cookie", sessionCookie("", { secure, maxAgeMs: 0 })).send({ ok: true });
    },
  );
}

function sessionWire({ id, name, scopes, apps }: TokenRecord, endsAt: number | null): SessionWire {
  return {
    token: { id, name },
    scopes: [...scopes],
    apps: apps === null ? null : [...apps],
    expires_at: endsAt === null ? null : new Date(endsAt).toISOString(),
  };
}
