/** Shapes of `/v1/images`. */
import { Type } from "typebox";
import { bytes, closed, digest, digestOf, ErrorBody, nullable, oneOf, time } from "../schemas.ts";

export const PullBody = Type.Object(
  { ref: Type.String({ minLength: 1, maxLength: 4096, description: "Reference of the image." }) },
  closed,
);

const PullStep = Type.Object({ step: oneOf(["resolve", "copy", "unpack", "pack"]) }, closed);

const Download = Type.Object(
  {
    step: Type.Literal("download"),
    layer: digestOf("Digest of the layer."),
    done_bytes: bytes,
    total_bytes: bytes,
    image_done_bytes: Type.Integer({ minimum: 0, description: "Bytes, of all layers of the image." }),
    image_total_bytes: Type.Integer({ minimum: 0, description: "Bytes, of all layers of the image." }),
  },
  closed,
);

const PulledImage = Type.Object(
  {
    ...{ done: Type.Literal(true), ref: Type.String(), digest, size_bytes: bytes },
    exposed_ports: Type.Optional(
      Type.Array(Type.Integer(), {
        description: "The TCP ports that the image says it listens on. Absent if it names none.",
      }),
    ),
  },
  { ...closed, title: "PulledImage", description: "An image that is ready." },
);

/** One line of the reply. The last line has `done` or `error`. */
export const PullEvent = Type.Union([
  Type.Union([PullStep, Download], { title: "PullProgress", description: "How far a pull is." }),
  PulledImage,
  ErrorBody,
]);

const Image = Type.Object(
  {
    digest,
    ref: nullable(Type.String(), "The reference that the image was pulled by."),
    size_bytes: bytes,
    imported_at: time,
    in_use: Type.Boolean({ description: "Whether a machine needs the image." }),
  },
  { ...closed, title: "Image", description: "An image on the host's disk." },
);

export const ImageList = Type.Object({ images: Type.Array(Image) }, closed);

/** `?unused=true` */
export const PruneQuery = Type.Object(
  {
    unused: Type.Literal("true", {
      description: "Required: only images that no machine needs can be deleted.",
    }),
  },
  closed,
);

export const PruneReply = Type.Object(
  {
    deleted: Type.Array(digest, { description: "Digests of the deleted images." }),
    freed_bytes: Type.Integer({ description: "Bytes that were freed, including those of downloaded layers." }),
  },
  { ...closed, title: "PrunedImages" },
);
