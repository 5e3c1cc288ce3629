/** `/v1/images/uploads` and `/v1/images/blobs`: receive images from clients on other machines. */
import { Readable } from "node:stream";
import { HibernautError } from "@hibernaut/domain/errors";
import type { UploadBlob } from "@hibernaut/images";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { Ok } from "../schemas.ts";
import { UploadShares } from "../upload-shares.ts";
import {
  BlobBytes,
  BlobParams,
  BlobQuery,
  BlobReply,
  UploadBody,
  UploadList,
  UploadParams,
  UploadReply,
} from "./uploads.schemas.ts";

const route = routesOf("images");

const OCTETS = "application/octet-stream";

/** Registers the routes of uploads. A pull of the reference that an upload returns makes an image of what was uploaded. */
export function uploadRoutes(
  app: Api,
  { uploads, uploadsPerApp = 0 }: Pick<ApiDeps, "uploads" | "uploadsPerApp">,
): void {
  const shares = new UploadShares(uploadsPerApp);

  app.get(
    "/v1/images/uploads",
    route("List the uploads that have not ended", { scope: "read" }, { reply: UploadList }),
    async () => ({
      uploads: (await uploads.list()).map(({ ref, digest, sizeBytes, doneBytes, usedAt }) => ({
        ref,
        digest,
        size_bytes: sizeBytes,
        done_bytes: doneBytes,
        used_at: usedAt,
      })),
    }),
  );

  app.post(
    "/v1/images/uploads",
    route(
      "Begin or continue the upload of an image: says which bytes the platform does not have",
      { scope: "deploy", limited: "shared", audited: ["name"] },
      { body: UploadBody, reply: UploadReply },
    ),
    async ({ body: { name, manifest }, token }) => {
      const open = () => uploads.list();
      const { ref, digest, ready, blobs } = await shares.begin({ token, manifest }, open, () =>
        uploads.begin(name, manifest),
      );
      return { ref, digest, ready, blobs: blobs.map(blobWire) };
    },
  );

  app.delete(
    "/v1/images/uploads/:digest",
    route("Cancel an upload and delete its unfinished blobs", { scope: "deploy" }, { params: UploadParams, reply: Ok }),
    async ({ params: { digest } }) => {
      if (await uploads.cancel(digest)) return { ok: true as const };
      const message = `There is no open upload of the image ${digest}. See \`hibernaut images uploads\`.`;
      throw new HibernautError("not_found", message, { digest });
    },
  );

  void app.register(async (bytes: Api) => {
    // Handed on as they come: a layer never is in memory as a whole.
    bytes.removeAllContentTypeParsers();
    bytes.addContentTypeParser(OCTETS, (_request, body, done) => done(null, body));
    bytes.patch(
      "/v1/images/blobs/:digest",
      route(
        "Append bytes to a blob of an upload",
        { scope: "deploy", limited: "shared" },
        {
          params: BlobParams,
          querystring: BlobQuery,
          body: { content: { [OCTETS]: { schema: BlobBytes } } },
          reply: BlobReply,
        },
      ),
      async (request, reply) => {
        const body: unknown = request.body;
        const stream = body instanceof Readable ? body : Readable.from([]);
        return blobWire(await uploads.append(request.params.digest, request.query.offset, stream, clientGone(reply)));
      },
    );
  });
}

function blobWire({ digest, sizeBytes, offset }: UploadBlob) {
  return { digest, size_bytes: sizeBytes, offset };
}
