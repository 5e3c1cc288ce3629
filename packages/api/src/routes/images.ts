/** `/v1/images`: lists, imports and deletes images. */
import { PassThrough } from "node:stream";
import { reachesApp } from "@hibernaut/domain/scopes";
import type { Image, ImageProgress } from "@hibernaut/images";
import { background } from "@hibernaut/lib/background";
import type { MachineView } from "@hibernaut/machines";
import type { TokenRecord } from "@hibernaut/store";
import type { FastifyError } from "fastify";
import type { Static } from "typebox";
import type { Api, ApiDeps } from "../deps.ts";
import { errorWire, toHibernautError } from "../errors.ts";
import { routesOf } from "../route.ts";
import { streamed } from "../schemas.ts";
import { NDJSON, OpenReplies } from "../stream-replies.ts";
import { ImageList, PruneQuery, PruneReply, PullBody, PullEvent } from "./images.schemas.ts";

const route = routesOf("images");

/** Unpacking a large image takes minutes, and a client or proxy may close a connection that is silent for that long. */
const REPEAT_MS = 10_000;

type PullWire = Static<typeof PullEvent>;

/** Registers the routes of images. A client that disconnects cancels its pull, unless others wait for the same image. */
export function imageRoutes(app: Api, { images, machines }: Pick<ApiDeps, "images" | "machines">): void {
  const pulls = new OpenReplies(app);

  app.get(
    "/v1/images",
    route("List images", { scope: "read", limited: "filtered" }, { reply: ImageList }),
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
    route(
      "Delete the images that no machine uses, and the downloaded layers",
      { scope: "admin" },
      { querystring: PruneQuery, reply: PruneReply },
    ),
    async () => {
      const { digests, freedBytes } = await images.prune();
      return { deleted: digests, freed_bytes: freedBytes };
    },
  );

  app.post(
    "/v1/images/pull",
    route(
      "Import an image and stream the progress: one JSON object per line, the last one with `done` or `error`",
      { scope: "deploy", limited: "shared", audited: ["ref"] },
      { body: PullBody, response: streamed(200, NDJSON, "one event per line", PullEvent) },
    ),
    async (request, reply) => {
      const lines = new Lines();
      const signal = pulls.until(reply);
      const pulled = images.pull(request.body.ref, { signal, onProgress: (event) => lines.write(progressWire(event)) });
      // An invalid reference is an HTTP error like that of any other request, before the first line is written.
      await Promise.race([pulled, lines.begun]).catch((error) => {
        lines.out.destroy();
        throw error;
      });
      const sending = pulled.then(
        (image) => lines.end(doneWire(image)),
        (thrown: FastifyError) => {
          const error = toHibernautError(thrown, request);
          if (error.code === "internal") request.log.error({ err: thrown, url: request.url }, "a pull failed");
          lines.end(errorWire(error, request.id));
        },
      );
      background(pulls.hold(sending), "the progress of a pull");
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

function doneWire({ ref, digest, sizeBytes, config: { exposedPorts } }: Image): PullWire {
  return { done: true, ref, digest, size_bytes: sizeBytes, ...(exposedPorts && { exposed_ports: exposedPorts }) };
}
