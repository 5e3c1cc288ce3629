/** Shapes of `/v1/tokens`. */
import { SCOPES } from "@hibernaut/domain/scopes";
import { type Static, Type } from "typebox";
import { closed, nullable, oneOf, time } from "../schemas.ts";

/** A token lives at least a minute and at most ten years: more is what no expiry is for. */
const LIFE_S = { minimum: 60, maximum: 10 * 365 * 86_400 };
/** How long a rotated token stays valid unless the rotation says otherwise, in seconds: time to change it everywhere. */
export const OVERLAP_S = 86_400;
/** The longest that it may stay valid, in seconds. A rotation that takes more than a month is two tokens. */
const MAX_OVERLAP_S = 30 * 86_400;
/** More apps than a token that is limited to some apps has. */
const MAX_APPS = 100;

const rights = {
  scopes: Type.Array(oneOf(SCOPES, { title: "Scope" }), {
    description: "What it may do. `exec` and `deploy` include `read`; `admin` includes all.",
  }),
  apps: nullable(Type.Array(Type.String()), "The only apps that it reaches; null for all, and the platform itself."),
  previews_of: Type.Optional(
    Type.Array(Type.String(), {
      description:
        "The apps whose previews it may make; of all apps, it reaches only these previews. Absent for other tokens.",
    }),
  ),
  expires_at: nullable(time, "When it stops being valid; null for never."),
};

const Token = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    ...rights,
    created_at: time,
    revoked_at: nullable(time),
    last_used_at: nullable(time, "Known to the minute. Null if it was not used yet."),
    replaced_by: nullable(Type.String(), "The id of the token that a rotation made in its place."),
  },
  { ...closed, title: "Token", description: "An API token, without its secret." },
);

export const TokenList = Type.Object({ tokens: Type.Array(Token) }, closed);

export const TokenParams = Type.Object({ token_id: Type.String() }, closed);

const life = (description: string) => Type.Optional(Type.Integer({ ...LIFE_S, description }));

export const CreateTokenBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100 }),
    scopes: Type.Optional(
      Type.Array(oneOf(SCOPES, { title: "Scope" }), {
        minItems: 1,
        maxItems: SCOPES.length,
        description: "What it may do. Default: `admin`.",
      }),
    ),
    apps: Type.Optional(
      Type.Array(Type.String(), {
        minItems: 1,
        maxItems: MAX_APPS,
        description: "The only apps that it reaches. Default: all, and the platform itself.",
      }),
    ),
    previews: Type.Optional(
      Type.Boolean({
        description:
          "Whether it is limited to the [previews](docs/previews.md) of `apps`, which it may make, and does not reach these apps themselves. Default: false.",
      }),
    ),
    expires_in: life("Seconds for which it is valid. Default: forever."),
    e2b: Type.Optional(
      Type.Boolean({
        description:
          "Whether it is a key for E2B's clients, which accept only a form of their own. It then needs one app, and may make [sandboxes](docs/sandboxes.md) in it. Default: false.",
      }),
    ),
  },
  closed,
);

export const RotateTokenBody = Type.Object(
  {
    overlap: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_OVERLAP_S,
        description: `Seconds for which the old token stays valid. Default: ${OVERLAP_S}.`,
      }),
    ),
    expires_in: life("Seconds for which the new token is valid. Default: as long as the old one was when it was made."),
  },
  closed,
);

/** A new token. Only a hash of its secret is stored. */
export const NewToken = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    token: Type.String({ description: "The secret. No other reply contains it." }),
    ...rights,
    created_at: time,
  },
  { ...closed, title: "NewToken", description: "A token that was just created." },
);

export const RotatedToken = Type.Object(
  {
    token: NewToken,
    old: Type.Object({ id: Type.String(), valid_until: time }, closed),
  },
  closed,
);

export type TokenWire = Static<typeof Token>;

export type NewTokenWire = Static<typeof NewToken>;
