/** Downloads all parts of an image into the layer cache, a few at a time, and reports the progress. */
import pLimit from "p-limit";
import type { ImageProgress } from "../contract.ts";
import type { LayerCache } from "../layers.ts";
import { downloadBlob } from "./blob.ts";
import type { Descriptor } from "./manifest.ts";
import type { Patience } from "./patience.ts";
import type { Session } from "./session.ts";

/** The parts to download, and where to. */
interface Download {
  session: Session;
  repository: string;
  blobs: readonly Descriptor[];
  cache: LayerCache;
  patience: Patience;
  signal: AbortSignal;
  report(progress: ImageProgress): void;
}

/** Downloads at a time, as many as Docker has: one rarely fills the line, and more only burden the registry. */
const DOWNLOADS_AT_ONCE = 3;
/** Milliseconds between two reports of a part. A progress bar that moves ten times a second looks smooth. */
const REPORT_MS = 100;

/** Resolves when every part is whole in the cache. The first failure stops the others, and is what this rejects with. */
export async function downloadAll({ blobs, cache, signal, ...download }: Download): Promise<void> {
  const wanted = [...new Map(blobs.map((blob) => [blob.digest, blob])).values()];
  const progress = reporter(wanted, download.report);
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const fetchPart = async (blob: Descriptor) => {
    either.throwIfAborted();
    const onProgress = (doneBytes: number) => progress(blob, doneBytes);
    const toFile = (file: string) => downloadBlob({ ...download, blob, file, signal: either, onProgress });
    await cache.obtain(blob.digest, toFile, either);
    progress(blob, blob.size);
  };
  const limit = pLimit(DOWNLOADS_AT_ONCE);
  let failure: { error: unknown } | undefined;
  const parts = wanted.map((blob) =>
    limit(fetchPart, blob).catch((error: unknown) => {
      failure ??= { error };
      stop.abort();
    }),
  );
  // Waits for all parts, also after a failure, so that nothing keeps writing to the cache.
  await Promise.all(parts);
  if (failure) throw failure.error;
}

/** Reports a part at its beginning, at its end, and every 100 ms in between. */
function reporter(blobs: readonly Descriptor[], report: Download["report"]) {
  const done = new Map(blobs.map(({ digest }) => [digest, 0]));
  const total = blobs.reduce((sum, { size }) => sum + size, 0);
  const reportedAt = new Map<string, number>();
  return ({ digest, size }: Descriptor, doneBytes: number) => {
    done.set(digest, doneBytes);
    const now = performance.now();
    const recent = now - (reportedAt.get(digest) ?? Number.NEGATIVE_INFINITY) < REPORT_MS;
    if (recent && doneBytes < size) return;
    reportedAt.set(digest, now);
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
