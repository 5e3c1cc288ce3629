/** Shapes of `/v1/images/uploads` and `/v1/images/blobs`. */
import { Type } from "typebox";
import { bytes, closed, digest, digestOf, time } from "../schemas.ts";

/** Twice this fits into a request, because JSON escapes each quote. Real manifests have a few KB. */
const MAX_MANIFEST_LENGTH = 512 * 1024;

const reference = Type.String({ description: "The reference for machines and pulls: `upload:NAME@sha256:...`." });

export const UploadBody = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 255,
      description: "What the reference shows, such as `shop:latest`. The digest alone decides which image it is.",
    }),
    manifest: Type.String({
      minLength: 1,
      maxLength: MAX_MANIFEST_LENGTH,
      description:
        "The image's manifest for linux/amd64, exactly as its digest is computed: an OCI image manifest or a Docker manifest of schema 2.",
    }),
  },
  closed,
);

const Blob = Type.Object(
  {
    digest: digestOf("Digest of the blob."),
    size_bytes: bytes,
    offset: Type.Integer({
      minimum: 0,
      description: "How many bytes the platform has. Equal to `size_bytes` if the blob is complete and was checked.",
    }),
  },
  { ...closed, title: "UploadBlob", description: "The configuration of an image, or one of its layers." },
);

export const UploadReply = Type.Object(
  {
    ref: reference,
    digest,
    ready: Type.Boolean({ description: "Whether the platform has the image. Then nothing needs to be sent." }),
    blobs: Type.Array(Blob, { description: "Each blob once, the configuration first. Send it first." }),
  },
  { ...closed, title: "ImageUpload", description: "An image that is being uploaded." },
);

export const UploadList = Type.Object(
  {
    uploads: Type.Array(
      Type.Object(
        {
          ref: reference,
          digest,
          size_bytes: bytes,
          done_bytes: Type.Integer({ minimum: 0, description: "How many bytes the platform has." }),
          used_at: Type.String({ ...time, description: "When a client last continued it." }),
        },
        { ...closed, title: "OpenUpload", description: "An upload that has not ended." },
      ),
    ),
  },
  closed,
);

export const UploadParams = Type.Object({ digest: digestOf("Digest of the image's manifest.") }, closed);

export const BlobParams = Type.Object({ digest: digestOf("Digest of the blob.") }, closed);

/** `?offset=1048576` */
export const BlobQuery = Type.Object(
  { offset: Type.Integer({ minimum: 0, description: "How many bytes of the blob the platform has before these." }) },
  closed,
);

export const BlobBytes = Type.Any({ description: "The next bytes of the blob, as many as you like." });

export const BlobReply = Blob;
