/** Shapes of `/v1/session`. */
import { SCOPES } from "@hibernaut/domain/scopes";
import { type Static, Type } from "typebox";
import { closed, nullable, oneOf, time } from "../schemas.ts";

/** Longer than any token. */
const MAX_TOKEN = 200;

/** Begins a session. */
export const SessionBody = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: MAX_TOKEN, description: "The secret of an API token." }) },
  { ...closed, title: "StartSessionRequest" },
);

/** Who is signed in. */
export const SessionReply = Type.Object(
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

/** A session on the wire. */
export type SessionWire = Static<typeof SessionReply>;
