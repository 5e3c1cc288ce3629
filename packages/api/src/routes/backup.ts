/** `/v1/platform/backup`: everything the platform has, as one archive, while it serves. */
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { BackupView } from "@hibernaut/backup";
import { type Static, Type } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, nullable, oneOf, streamed, time } from "../schemas.ts";

const route = routesOf("platform");

const WithoutMemory = Type.Object(
  { machine_id: Type.String(), app_name: Type.String(), reason: Type.String() },
  { ...closed, description: "A machine that was running and whose memory is not in the backup." },
);

/** Also of backups to targets. */
export const FailedCommand = Type.Object(
  { machine_id: Type.String(), app_name: Type.String(), reason: Type.String() },
  { ...closed, description: "A machine whose `backup.command` failed. It is in the backup as it was." },
);

const BackupReply = Type.Object(
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
    failed_commands: Type.Array(FailedCommand),
    error: nullable(
      Type.Object({ code: Type.String(), message: Type.String() }, closed),
      "Why the backup is `failed`.",
    ),
  },
  { ...closed, title: "Backup", description: "How far the latest backup since the platform started came." },
);

type BackupWire = Static<typeof BackupReply>;

const TAR = "application/x-tar";
/** After how many milliseconds without traffic the kernel asks whether the client is still there. */
const ASK_CLIENT_MS = 30_000;
/**
 * A client that reads nothing for this long, in milliseconds, is disconnected: the next backup waits for it. Long, because
 * tools that store backups pause to upload what they have.
 */
const STALL_MS = 10 * 60_000;

/** Registers the routes of backups. */
export function backupRoutes(app: Api, { backups }: Pick<ApiDeps, "backups">): void {
  const path = "/v1/platform/backup";

  app.get(path, route("Show how far the latest backup came", { scope: "read" }, { reply: BackupReply }), async () =>
    backupWire(backups.get()),
  );

  app.post(
    path,
    route(
      "Back up the platform",
      { scope: "admin" },
      {
        description:
          "Holds all secrets. The reply breaks off if the backup fails after its beginning, and `GET` says why: an archive that ends with a `backup.sha256` that fits is whole.",
        response: streamed(200, TAR, "a tar archive of a data directory"),
      },
    ),
    async ({ raw: { socket } }, reply) => {
      const archive = backups.create(clientGone(reply));
      socket.setKeepAlive(true, ASK_CLIENT_MS);
      disconnectStalled(reply.raw, STALL_MS);
      return reply
        .header("cache-control", "no-store")
        .type(TAR)
        .send(Readable.from(archive, { objectMode: false }));
    },
  );
}

/** Ends a reply whose client reads nothing of what waits for it for `stallMs`, at the latest after twice that time. */
function disconnectStalled(reply: ServerResponse, stallMs: number): void {
  let before = -1;
  const timer = setInterval(() => {
    const sent = reply.socket?.bytesWritten ?? 0;
    if (reply.writableNeedDrain && sent === before) reply.destroy();
    before = sent;
  }, stallMs);
  timer.unref();
  reply.once("close", () => clearInterval(timer));
}

function backupWire({ error, ...view }: BackupView): BackupWire {
  return {
    state: view.state,
    started_at: view.startedAt,
    ended_at: view.endedAt,
    machines_done: view.machinesDone,
    machines: view.machines,
    bytes: view.bytes,
    longest_pause_ms: view.longestPauseMs,
    without_memory: view.withoutMemory.map(({ id, app, reason }) => ({ machine_id: id, app_name: app, reason })),
    failed_commands: failedWire(view.failedCommands),
    error,
  };
}

/** Returns them as clients get them. */
export function failedWire(failed: BackupView["failedCommands"]): Static<typeof FailedCommand>[] {
  return failed.map(({ id, app, reason }) => ({ machine_id: id, app_name: app, reason }));
}
