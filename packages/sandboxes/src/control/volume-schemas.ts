/** The shapes of requests for volumes and their files. Fields that are not known are ignored. */
import { Type } from "typebox";

/** The largest number of a user or a group, and more than any directory is deep. */
const UINT32 = 2 ** 32 - 1;
/** The bits of a mode that `chmod` changes. */
const Mode = Type.Optional(Type.Integer({ minimum: 0, maximum: 0o7777 }));
/** The very last one means "as it is" to the kernel. */
const Id = Type.Optional(Type.Integer({ minimum: 0, maximum: UINT32 - 1 }));
const Path = Type.String({ minLength: 1, maxLength: 8192 });

export const NewVolume = Type.Object({ name: Type.String({ minLength: 1, maxLength: 200 }) });
export const VolumeParams = Type.Object({ volumeID: Type.String({ minLength: 1, maxLength: 80 }) });

export const PathQuery = Type.Object({ path: Path });
export const ListQuery = Type.Object({ path: Path, depth: Type.Integer({ minimum: 1, maximum: UINT32, default: 1 }) });
export const MakeQuery = Type.Object({
  path: Path,
  uid: Id,
  gid: Id,
  mode: Mode,
  force: Type.Boolean({ default: false }),
});
export const MetadataBody = Type.Object({ uid: Id, gid: Id, mode: Mode });

/** In a new sandbox. */
export const VolumeMounts = Type.Array(
  Type.Object({
    name: Type.String({ minLength: 1, maxLength: 200 }),
    path: Type.String({ minLength: 1, maxLength: 4095 }),
  }),
  { maxItems: 100 },
);
