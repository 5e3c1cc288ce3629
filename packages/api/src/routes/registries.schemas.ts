/** Shapes of `/v1/registries`. */
import { Type } from "typebox";
import { closed } from "../schemas.ts";

/** The part of the path that names a registry. */
export const RegistryParams = Type.Object(
  { host: Type.String({ description: "The registry's host, as references of images name it." }) },
  closed,
);

/** Stores a login. No reply ever contains the password. */
export const RegistryBody = Type.Object(
  {
    username: Type.String({ minLength: 1, maxLength: 16_384 }),
    password: Type.String({ minLength: 1, maxLength: 16_384, writeOnly: true }),
  },
  closed,
);

/** A login. */
export const RegistryReply = Type.Object(
  { host: Type.String(), username: Type.String() },
  { ...closed, title: "RegistryLogin", description: "A login for a registry, without its password." },
);

/** All logins. */
export const RegistryList = Type.Object({ registries: Type.Array(RegistryReply) }, closed);
