/** Shapes of `.../machines/{machine_id}/archive`. */
import { Type } from "typebox";
import { bytes, closed, oneOf } from "../schemas.ts";

/** What can be at a path. */
const KINDS = ["file", "directory", "link", "other"] as const;

const path = Type.String({
  pattern: "^/[^\\u0000]*$",
  maxLength: 4096,
  description: "An absolute path in the machine.",
});

/** `?path=/srv/data` */
export const PathQuery = Type.Object({ path }, closed);

/** `?path=/srv&owner=archive` */
export const UnpackQuery = Type.Object(
  {
    path,
    owner: Type.Optional({
      ...oneOf(["image", "archive"] as const),
      description: "Whom the files belong to: the image's user, or whom the archive says. Default: image.",
    }),
  },
  closed,
);

/** What is at a path. */
export const PathReply = Type.Object(
  {
    kind: oneOf(KINDS),
    leads_to: Type.Union([oneOf(KINDS), Type.Null()], {
      description: "What is behind a link, else the same as `kind`. Null for a link that leads nowhere.",
    }),
    size_bytes: bytes,
    mode: Type.Integer({ minimum: 0, maximum: 0o7777, description: "Permissions." }),
    path: Type.String({ description: "The path without symbolic links." }),
  },
  { ...closed, title: "MachinePath", description: "What is at a path in a machine." },
);

/** What was unpacked. */
export const UnpackReply = Type.Object(
  {
    entries: Type.Integer({ minimum: 0, description: "Files, directories and links of the archive." }),
    bytes: { ...bytes, description: "Bytes of all files." },
  },
  { ...closed, title: "UnpackedArchive", description: "What was copied into a machine." },
);
