/** `/v1/session`: a browser shows a token once and gets a cookie in its place. */
import { HibernautError } from "@hibernaut/domain/errors";
import { hasScope, SCOPES } from "@hibernaut/domain/scopes";
import type { TokenRecord } from "@hibernaut/store";
import type { FastifyRequest } from "fastify";
import { type Static, Type } from "typebox";
import { FailedAttempts } from "../attempts.ts";
import { beginAudit } from "../audit.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, nullable, Ok, oneOf, time } from "../schemas.ts";
import { requireOwnOrigin } from "../session-access.ts";
import { isSecure, sessionCookie, sessionIn } from "../session-cookie.ts";
import type { Sessions } from "../sessions.ts";
import { verifyToken } from "../tokens.ts";

const route = routesOf("tokens");

/** Longer than any token. */
const MAX_TOKEN = 200;

const SessionBody = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: MAX_TOKEN, description: "The secret of an API token." }) },
  { ...closed, title: "StartSessionRequest" },
);

const SessionReply = Type.Object(
  {
    token: Type.Object({ id: Type.String(), name: Type.String() }, closed),
    scopes: Type.Array(oneOf(SCOPES, { title: "Scope" }), { description: "What the token may do." }),
    apps: nullable(Type.Array(Type.String()), "The only apps that it reaches; null for all, and the platform itself."),
    expires_at: nullable(
      time,
      "When the session ends unless it is used before. Of a request with a token: when the token expires, or null for never.",
    ),
  },
  { ...closed, title: "Session", description: "Whose rights a browser, or a request, has." },
);

type SessionWire = Static<typeof SessionReply>;

interface SessionDeps extends Pick<ApiDeps, "tokens" | "audit" | "hostnames"> {
  sessions: Sessions;
  onToken(token: TokenRecord): void;
}

/** Registers the routes of sessions. */
export function sessionRoutes(app: Api, { tokens, sessions, audit, hostnames, onToken }: SessionDeps): void {
  const attempts = new FailedAttempts();

  app.post(
    "/v1/session",
    route(
      "Sign in from a browser: exchange a token for a cookie",
      { open: true },
      { security: [], body: SessionBody, created: SessionReply },
    ),
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
    route("Show who is signed in", { scope: "read", limited: "shared" }, { reply: SessionReply }),
    async ({ session, token }) => {
      if (session !== null) return sessionWire(session.token, session.endsAt);
      if (token === null) throw new Error("a request without a token reached a route that needs one");
      return sessionWire(token, token.expiresAt === null ? null : Date.parse(token.expiresAt));
    },
  );

  app.delete(
    "/v1/session",
    route("Sign out: end the session", { scope: "read", limited: "shared" }, { reply: Ok }),
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
