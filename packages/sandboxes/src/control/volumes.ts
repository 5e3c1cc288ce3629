/** `/volumes`: the disks of the app that sandboxes keep files on. */
import type { VolumeView } from "@hibernaut/volumes";
import type { FastifyInstance } from "fastify";
import type { Static } from "typebox";
import { volumeToken } from "../volume/token.ts";
import type { ControlDeps } from "./deps.ts";
import { NewVolume, VolumeParams } from "./volume-schemas.ts";

interface ById {
  Params: Static<typeof VolumeParams>;
}

export function volumeRoutes(app: FastifyInstance, { volumes, tokens }: ControlDeps): void {
  const listed = ({ id, name }: VolumeView) => ({ volumeID: id, name });
  const opened = (volume: VolumeView) => ({ ...listed(volume), token: volumeToken(tokens, volume) });

  app.get("/volumes", async ({ sandboxApp }) => volumes.list(sandboxApp).map(listed));
  app.post<{ Body: Static<typeof NewVolume> }>(
    "/volumes",
    { schema: { body: NewVolume } },
    async ({ sandboxApp, body: { name } }, reply) =>
      reply.code(201).send(opened(await volumes.create(sandboxApp, name))),
  );
  app.get<ById>("/volumes/:volumeID", { schema: { params: VolumeParams } }, async ({ sandboxApp, params }) =>
    opened(volumes.get(sandboxApp, params.volumeID)),
  );
  app.delete<ById>(
    "/volumes/:volumeID",
    { schema: { params: VolumeParams } },
    async ({ sandboxApp, params }, reply) => {
      await volumes.destroy(sandboxApp, params.volumeID);
      return reply.code(204).send();
    },
  );
}
