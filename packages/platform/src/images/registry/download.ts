/** Brings all parts of an image into the layer cache, a few at once, and says how far it is. */
import type { ImageProgress } from "../contract.ts";
import type { LayerCache } from "../layers.ts";
import { downloadBlob } from "./blob.ts";
import type { Descriptor } from "./manifest.ts";
import type { Patience } from "./patience.ts";
import type { Session } from "./session.ts";

/** What to bring, and who wants to know. */
interface Download {
  session: Session;
  repository: string;
  blobs: readonly Descriptor[];
  cache: LayerCache;
  patience: Patience;
  signal: AbortSignal;
  report(progress: ImageProgress): void;
}

/** As docker does: one connection rarely fills a line, and many are no faster and unkind to the registry. */
const AT_ONCE = 3;
/** A bar that moves ten times a second looks smooth. */
const REPORT_MS = 100;

/** Resolves when every part is whole in the cache. The first failure ends the others, and is what is thrown. */
export async function downloadAll({ blobs, cache, signal, ...download }: Download): Promise<void> {
  const wanted = [...new Map(blobs.map((blob) => [blob.digest, blob])).values()];
  const tell = reporter(wanted, download.report);
  const abort = new AbortController();
  const any = AbortSignal.any([signal, abort.signal]);
  const queue = [...wanted];
  const worker = async () => {
    for (let blob = queue.shift(); blob !== undefined; blob = queue.shift()) {
      const current = blob;
      const onProgress = (doneBytes: number) => tell(current, doneBytes);
      await cache.obtain(
        current.digest,
        (file) => downloadBlob({ ...download, blob: current, file, signal: any, onProgress }),
        any,
      );
      tell(current, current.size);
    }
  };
  let failure: { error: unknown } | undefined;
  const guarded = () =>
    worker().catch((error: unknown) => {
      failure ??= { error };
      abort.abort();
    });
  // All of them have ended when this resolves: nothing writes on unseen.
  await Promise.all(Array.from({ length: AT_ONCE }, guarded));
  if (failure) throw failure.error;
}

/** Reports a part at its beginning, at its end, and now and then between. */
function reporter(blobs: readonly Descriptor[], report: Download["report"]) {
  const done = new Map(blobs.map(({ digest }) => [digest, 0]));
  const total = blobs.reduce((sum, { size }) => sum + size, 0);
  const toldAt = new Map<string, number>();
  return ({ digest, size }: Descriptor, doneBytes: number) => {
    done.set(digest, doneBytes);
    const now = performance.now();
    const recent = now - (toldAt.get(digest) ?? Number.NEGATIVE_INFINITY) < REPORT_MS;
    if (recent && doneBytes < size) return;
    toldAt.set(digest, now);
    const allDone = [...done.values()].reduce((sum, bytes) => sum + bytes, 0);
    report({
      step: "download",
      layer: digest,
      doneBytes,
      totalBytes: size,
      imageDoneBytes: allDone,
      imageTotalBytes: total,
    });
  };
}
