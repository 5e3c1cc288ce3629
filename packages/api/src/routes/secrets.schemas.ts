/** Shapes of `/v1/apps/{app_name}/secrets`. */
import { Type } from "typebox";
import { closed, time } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";

const Secret = Type.Object(
  {
    name: Type.String(),
    digest: Type.String({ description: "Equal for equal values." }),
    updated_at: time,
  },
  { ...closed, title: "Secret", description: "A secret of an app, without its value." },
);

/** An app's secrets. */
export const SecretList = Type.Object({ secrets: Type.Array(Secret) }, closed);

/** The part of the path that names a secret. */
export const SecretParams = Type.Object({ ...AppParams.properties, secret_name: Type.String() }, closed);

/** Sets secrets. */
export const SecretsBody = Type.Object(
  {
    secrets: Type.Record(Type.String(), Type.String(), {
      description: "Values by names of environment variables. HIBERNAUT_* and FLY_* are reserved.",
    }),
  },
  closed,
);

/** What a change of secrets means to the app's machines. */
export const SecretsEffect = Type.Object(
  {
    discarded: Type.Array(Type.String(), {
      description: "Ids of the sleeping machines whose snapshots were deleted. Their next start is a cold start.",
    }),
    pending: Type.Array(Type.String(), {
      description: "Ids of the running machines, which see the change after a restart.",
    }),
  },
  { ...closed, title: "SecretsEffect", description: "What a change of secrets means to the app's machines." },
);

/** `?dry_run=true` */
export const DryRunQuery = Type.Object(
  {
    dry_run: Type.Optional(
      Type.Boolean({ description: "Change nothing and return what would happen. Default: false." }),
    ),
  },
  closed,
);
