/** Shapes of `/v1/platform/backup`. */
import { type Static, Type } from "typebox";
import { closed, nullable, oneOf, time } from "../schemas.ts";

const WithoutMemory = Type.Object(
  { machine_id: Type.String(), app_name: Type.String(), reason: Type.String() },
  { ...closed, description: "A machine that was running and whose memory is not in the backup." },
);

/** How far the latest backup came. */
export const BackupReply = Type.Object(
  {
    state: oneOf(["none", "running", "complete", "failed"]),
    started_at: nullable(time),
    ended_at: nullable(time),
    machines_done: Type.Integer({ description: "Machines that were copied by now." }),
    machines: Type.Integer({ description: "Machines that there are." }),
    bytes: Type.Integer({ description: "Bytes that were sent." }),
    longest_pause_ms: Type.Integer({ description: "The longest that a running machine was paused for its copy." }),
    without_memory: Type.Array(WithoutMemory, {
      description: "Machines that cold start when the backup is restored, although they were running.",
    }),
    error: nullable(
      Type.Object({ code: Type.String(), message: Type.String() }, closed),
      "Why the backup is `failed`.",
    ),
  },
  { ...closed, title: "Backup", description: "How far the latest backup since the platform started came." },
);

/** A backup on the wire. */
export type BackupWire = Static<typeof BackupReply>;
