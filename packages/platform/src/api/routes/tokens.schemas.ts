/** Shapes of `/v1/tokens`. */
import { type Static, Type } from "typebox";
import { closed, nullable, time } from "../schemas.ts";

const Token = Type.Object(
  { id: Type.String(), name: Type.String(), created_at: time, revoked_at: nullable(time) },
  { ...closed, title: "Token", description: "An API token, without its secret." },
);

/** All tokens. */
export const TokenList = Type.Object({ tokens: Type.Array(Token) }, closed);

/** The part of the path that names a token. */
export const TokenParams = Type.Object({ token_id: Type.String() }, closed);

/** Creates a token. */
export const CreateTokenBody = Type.Object({ name: Type.String({ minLength: 1, maxLength: 100 }) }, closed);

/** A new token. Only a hash of its secret is stored. */
export const NewToken = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    token: Type.String({ description: "The secret. No other reply contains it." }),
    created_at: time,
  },
  { ...closed, title: "NewToken", description: "A token that was just created." },
);

/** A token on the wire. */
export type TokenWire = Static<typeof Token>;
