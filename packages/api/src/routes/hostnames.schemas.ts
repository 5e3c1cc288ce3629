/** Shapes of `/v1/apps/{app_name}/hostnames`. */
import { Type } from "typebox";
import { closed } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";

/** Adds a hostname. */
export const HostnameBody = Type.Object({ hostname: Type.String({ minLength: 1, maxLength: 254 }) }, closed);

/** The hostname as it is stored. */
export const HostnameReply = Type.Object({ hostname: Type.String() }, closed);

/** An app's hostnames. */
export const HostnameList = Type.Object({ hostnames: Type.Array(Type.String()) }, closed);

/** The part of the path that names a hostname. */
export const HostnameParams = Type.Object({ ...AppParams.properties, hostname: Type.String() }, closed);
