/** `/v1/images`: lists, imports and deletes images. */
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { reachesApp } from "@hibernaut/domain/scopes";
import type { Image, ImageProgress } from "@hibernaut/images";
import type { MachineView } from "@hibernaut/machines";
import type { TokenRecord } from "@hibernaut/store";
import type { FastifyError } from "fastify";
import type { Static } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { errorWire, toHibernautError } from "../errors.ts";
import { NoQuery, replies } from "../schemas.ts";
import { ImageList, PruneQuery, PruneReply, PullBody, PullEvent } from "./images.schemas.ts";

const NDJSON = "application/x-ndjson";
/** Unpacking a large image takes minutes, and a client or proxy may close a connection that is silent for that long. */
const REPEAT_MS = 10_000;

type PullWire = Static<typeof PullEvent>;

/** Registers the routes of images. A client that disconnects cancels its pull, unless others wait for the same image. */
export function imageRoutes(app: Api, { images, machines }: Pick<ApiDeps, "images" | "machines">): void {
  const tags = ["images"];
  const closing = new AbortController();
  const open = new Set<Promise<void>>();
  app.addHook("preClose", async () => {
    closing.abort();
    await Promise.all(open);
    // What was written is sent before the server closes its connections.
    await setImmediate();
  });

  app.get(
    "/v1/images",
    {
      config: { scope: "read", limited: "filtered" },
      schema: { tags, summary: "List images", querystring: NoQuery, response: replies(200, ImageList) },
    },
    async ({ token }) => {
      const all = await images.list();
      const listed = token === null || token.apps === null ? all : ownImages(all, machines.all(), token);
      return {
        images: listed.map(({ digest, ref, sizeBytes, importedAt, inUse }) => ({
          digest,
          ref: ref ?? null,
          size_bytes: sizeBytes,
          imported_at: importedAt,
          in_use: inUse,
        })),
      };
    },
  );

  app.delete(
    "/v1/images",
    {
      config: { scope: "admin" },
      schema: {
        tags,
        summary: "Delete the images that no machine uses, and the downloaded layers",
        querystring: PruneQuery,
        response: replies(200, PruneReply),
      },
    },
    async () => {
      const { digests, freedBytes } = await images.prune();
      return { deleted: digests, freed_bytes: freedBytes };
    },
  );

  const { default: failure } = replies(200, PullEvent);
  app.post(
    "/v1/images/pull",
    {
      config: { scope: "deploy", limited: "shared", audited: ["ref"] },
      schema: {
        tags,
        summary:
          "Import an image and stream the progress: one JSON object per line, the last one with `done` or `error`",
        querystring: NoQuery,
        body: PullBody,
        response: {
          200: { description: "one event per line", content: { [NDJSON]: { schema: PullEvent } } },
          default: failure,
        },
      },
    },
    async (request, reply) => {
      const lines = new Lines();
      const signal = AbortSignal.any([closing.signal, clientGone(reply)]);
      const pulled = images.pull(request.body.ref, { signal, onProgress: (event) => lines.write(progressWire(event)) });
      // An invalid reference is an HTTP error like that of any other request, before the first line is written.
      await Promise.race([pulled, lines.begun]).catch((error) => {
        lines.out.destroy();
        throw error;
      });
      const sending = pulled
        .then(
          (image) => lines.end(doneWire(image)),
          (thrown: FastifyError) => {
            const error = toHibernautError(thrown, request);
            if (error.code === "internal") request.log.error({ err: thrown, url: request.url }, "a pull failed");
            lines.end(errorWire(error, request.id));
          },
        )
        .finally(() => open.delete(sending));
      open.add(sending);
      return reply.header("cache-control", "no-store").type(NDJSON).send(lines.out);
    },
  );
}

/** Returns the images that the machines in the token's reach use, under the references that these machines have. */
function ownImages<T extends { digest: string }>(
  images: readonly T[],
  machines: readonly MachineView[],
  token: TokenRecord,
): (T & { ref: string })[] {
  const own = machines.filter(({ record }) => reachesApp(token, record.app));
  const refs = new Map(own.map(({ record }) => [record.imageDigest, record.config.image]));
  return images.flatMap((image) => {
    const ref = refs.get(image.digest);
    return ref === undefined ? [] : [{ ...image, ref }];
  });
}

/** Writes events as lines. Repeats the last event during silence, and skips events while the client does not keep up. */
class Lines {
  readonly out = new PassThrough();
  /** Resolves when the first line is written. */
  readonly begun: Promise<void>;
  readonly #begin: () => void;
  readonly #timer = setInterval(() => this.#last && this.write(this.#last), REPEAT_MS);
  #last: PullWire | undefined;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.begun = promise;
    this.#begin = resolve;
    this.out.once("close", () => clearInterval(this.#timer));
  }

  write(event: PullWire): void {
    this.#last = event;
    this.#begin();
    if (!this.out.writableNeedDrain && !this.out.destroyed) this.out.write(`${JSON.stringify(event)}\n`);
  }

  end(event: PullWire): void {
    clearInterval(this.#timer);
    if (!this.out.destroyed) this.out.end(`${JSON.stringify(event)}\n`);
  }
}

function progressWire(progress: ImageProgress): PullWire {
  if (progress.step !== "download") return { step: progress.step };
  const { step, layer, doneBytes, totalBytes, imageDoneBytes, imageTotalBytes } = progress;
  return {
    step,
    layer,
    done_bytes: doneBytes,
    total_bytes: totalBytes,
    image_done_bytes: imageDoneBytes,
    image_total_bytes: imageTotalBytes,
  };
}

function doneWire({ ref, digest, sizeBytes }: Image): PullWire {
  return { done: true, ref, digest, size_bytes: sizeBytes };
}
