/** Uploads an image: sends what the platform does not have, and continues after interruptions. */
import { delay } from "./delay.ts";
import { ApiError } from "./error.ts";
import type { ImageSource } from "./options.ts";
import { Pieces } from "./pieces.ts";
import type { ImageUpload, UploadBlob, UploadProgress } from "./types.ts";

/** The requests that an upload consists of. */
interface UploadRequests {
  begin(signal: AbortSignal): Promise<ImageUpload>;
  append(digest: string, offset: number, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<UploadBlob>;
}

interface Sending {
  source: ImageSource;
  requests: UploadRequests;
  signal: AbortSignal;
  /** Milliseconds before the first new attempt; doubled before each further one. */
  retryMs: number;
  report(blob: UploadBlob, doneBytes: number): void;
}

/** Blobs at a time, as many as a pull downloads. */
const AT_ONCE = 3;
/** Failures in a row, without a byte that arrived in between. With the default pause they take a quarter of a minute. */
const TRIES = 5;
const RETRY_MS = 500;
/** Milliseconds between two reports of a blob. A progress bar that moves ten times a second looks smooth. */
const REPORT_MS = 100;

/** Sends every blob that the platform does not have. Resolves with the upload's reference when all have arrived. */
export async function sendImage(
  source: ImageSource,
  requests: UploadRequests,
  options: { signal?: AbortSignal; retryMs?: number; onProgress?(progress: UploadProgress): void },
): Promise<string> {
  const { onProgress = () => {}, retryMs = RETRY_MS } = options;
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  const { ref, ready, blobs } = await requests.begin(signal);
  const missing = blobs.filter((blob) => blob.offset < blob.size_bytes);
  // The configuration comes first, and is not a layer.
  for (const { digest, size_bytes } of blobs.slice(1))
    if (ready || !missing.some((blob) => blob.digest === digest))
      onProgress({ step: "exists", layer: digest, total_bytes: size_bytes });
  if (ready) return ref;
  const sending = { source, requests, signal, retryMs, report: reporter(blobs, onProgress) };
  // The configuration tells the platform whether it can use the image.
  const [first] = blobs;
  const [config, layers] = [missing.filter((blob) => blob === first), missing.filter((blob) => blob !== first)];
  for (const blob of config) await sendBlob(blob, sending);
  await eachAtOnce(layers, (blob) => sendBlob(blob, sending), stop);
  return ref;
}

/** Does the work a few items at a time. The first failure stops the others through `stop`, and is what this rejects with. */
async function eachAtOnce<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
  stop: AbortController,
): Promise<void> {
  const left = [...items];
  const failures: unknown[] = [];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined && failures.length === 0; item = left.shift()) await work(item);
  };
  const failed = (error: unknown) => {
    failures.push(error);
    stop.abort();
  };
  // Waits for all of them, also after a failure, so that nothing is still being read when this rejects.
  await Promise.all(Array.from({ length: AT_ONCE }, () => worker().catch(failed)));
  if (failures.length > 0) throw failures[0];
}

async function sendBlob(blob: UploadBlob, { source, requests, signal, retryMs, report }: Sending): Promise<void> {
  const { digest, size_bytes: size } = blob;
  let { offset } = blob;
  let failures = 0;
  /** A damaged beginning may be from an earlier upload: worth one attempt from the first byte. */
  let inherited = offset > 0;
  await using pieces = new Pieces((from) => source.read(digest, from));
  while (offset < size) {
    const from = offset;
    try {
      const bytes = pieces.next(from, (sent) => report(blob, Math.min(size, from + sent)));
      ({ offset } = await requests.append(digest, from, bytes, signal));
      if (offset <= from) throw tooShort(digest, from, size);
      pieces.succeeded();
      failures = 0;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (pieces.fault !== undefined) throw pieces.fault as Error;
      const advice = adviceOf(error, inherited);
      if (advice === "fail" || (advice === "smaller" && !pieces.smaller())) throw error;
      if (advice === "restart") inherited = false;
      await pieces.restart();
      const at = offsetIn(error) ?? (await offsetNow(digest, requests, signal));
      failures = at === undefined || at <= offset ? failures + 1 : 0;
      if (failures >= TRIES) throw error;
      if (failures > 0) await delay(retryMs * 2 ** (failures - 1), signal);
      offset = at ?? offset;
    }
    report(blob, offset);
  }
}

function tooShort(digest: string, bytes: number, size: number): ApiError {
  const message = `The image cannot be uploaded: its part ${digest} ends after ${bytes} bytes, and its manifest says that it has ${size}. Create the image again.`;
  return new ApiError({ code: "invalid_argument", message });
}

/** What to do after a failed request. Pure. */
function adviceOf(error: unknown, inherited: boolean): "fail" | "again" | "smaller" | "restart" {
  if (!(error instanceof ApiError)) return "fail";
  const { code, status } = error;
  if (code === "invalid_argument" && offsetIn(error) === 0 && inherited) return "restart";
  // A proxy in front of the platform may take less at a time.
  if (status === 413) return "smaller";
  const passing = ["unavailable", "deadline_exceeded", "aborted"].includes(code) || [429, 502, 504].includes(status);
  return passing ? "again" : "fail";
}

/** Where the platform says to continue. */
function offsetIn(error: unknown): number | undefined {
  const offset = error instanceof ApiError ? error.details.offset : undefined;
  return typeof offset === "number" ? offset : undefined;
}

/** Asks the platform. Undefined when it does not answer now. */
async function offsetNow(digest: string, { begin }: UploadRequests, signal: AbortSignal): Promise<number | undefined> {
  try {
    return (await begin(signal)).blobs.find((blob) => blob.digest === digest)?.offset;
  } catch (error) {
    if (signal.aborted || adviceOf(error, false) !== "again") throw error;
    return undefined;
  }
}

/** Reports a blob at its beginning, at its end, and every 100 ms in between. */
function reporter(blobs: readonly UploadBlob[], onProgress: (progress: UploadProgress) => void): Sending["report"] {
  const done = new Map(blobs.map(({ digest, offset }) => [digest, offset]));
  const total = blobs.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  const reportedAt = new Map<string, number>();
  return ({ digest, size_bytes }, doneBytes) => {
    done.set(digest, doneBytes);
    const now = performance.now();
    const recent = now - (reportedAt.get(digest) ?? Number.NEGATIVE_INFINITY) < REPORT_MS;
    if (recent && doneBytes < size_bytes) return;
    reportedAt.set(digest, now);
    onProgress({
      step: "upload",
      layer: digest,
      done_bytes: doneBytes,
      total_bytes: size_bytes,
      image_done_bytes: [...done.values()].reduce((sum, bytes) => sum + bytes, 0),
      image_total_bytes: total,
    });
  };
}
