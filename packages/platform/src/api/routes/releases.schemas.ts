/** Shapes of `/v1/apps/{app_name}/releases`. */
import { type Static, Type } from "typebox";
import { closed, imageReference, oneOf, time } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";

/** A release. */
export const ReleaseReply = Type.Object(
  {
    version: Type.Integer({ description: "Counted from 1 in each app." }),
    status: oneOf(["pending", "complete", "failed", "abandoned"]),
    image: imageReference,
    pinned_image: Type.String({
      description:
        "The reference with its digest. Machines of this release use it, so that a tag cannot move under them.",
    }),
    description: Type.String(),
    created_at: time,
  },
  { ...closed, title: "Release", description: "A deploy of an image to an app, and how it ended." },
);

/** An app's releases. */
export const ReleaseList = Type.Object({ releases: Type.Array(ReleaseReply) }, closed);

/** The part of the path that names a release. */
export const ReleaseParams = Type.Object(
  { ...AppParams.properties, version: Type.String({ pattern: "^[1-9]\\d{0,8}$" }) },
  closed,
);

/** Begins a release. */
export const CreateReleaseBody = Type.Object(
  {
    image: Type.String({ minLength: 1, maxLength: 1024, description: "Reference of the image to deploy." }),
    description: Type.Optional(Type.String({ maxLength: 500 })),
  },
  { ...closed, title: "CreateReleaseRequest" },
);

/** Ends a release, or reports that it is still being deployed. */
export const UpdateReleaseBody = Type.Object(
  {
    status: oneOf(["pending", "complete", "failed"]),
    description: Type.Optional(Type.String({ maxLength: 500 })),
  },
  { ...closed, title: "UpdateReleaseRequest" },
);

/** A release on the wire. */
export type ReleaseWire = Static<typeof ReleaseReply>;
