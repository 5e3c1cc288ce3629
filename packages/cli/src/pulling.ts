/** Pulls an image before it is used, and shows the progress of pulls and uploads. */
import type { PulledImage, UploadProgress } from "@hibernaut/client";
import type { Context } from "./context.ts";
import { type Display, gauge, jsonLines, shareOf } from "./display.ts";
import { clearLine, megabytes, redraw, shortDigest } from "./terminal.ts";

/** How often progress is shown, in milliseconds: on a terminal, and in a log. */
const DRAW_MS = 100;
const LINE_MS = 5000;
/** The speed is averaged over this time, so that a connection that became slow looks slow. */
const SPEED_WINDOW_MS = 5000;

type Moving = Extract<UploadProgress, { image_done_bytes: number }>;

const STEPS: Record<Exclude<UploadProgress["step"], "exists">, string> = {
  resolve: "Looking up",
  upload: "Uploading",
  download: "Downloading",
  copy: "Checking",
  unpack: "Unpacking",
  pack: "Packing",
};

/** Pulls the image and shows how far the pull is. */
export async function pull(context: Context, ref: string): Promise<PulledImage> {
  const client = await context.client();
  return showing(context, ref, (onProgress) => client.pullImage(ref, { onProgress }));
}

/**
 * Runs `work` and shows what it reports: a bar on a terminal, a line every few seconds elsewhere, and with `--json` every
 * event as a line of JSON.
 */
export async function showing<T>(
  context: Context,
  ref: string,
  work: (onProgress: (progress: UploadProgress) => void) => Promise<T>,
): Promise<T> {
  const display = displayOf(context, ref, process.stderr);
  try {
    return await work(display.show);
  } finally {
    display.end();
  }
}

function displayOf({ json }: Context, ref: string, stream: NodeJS.WriteStream): Display<UploadProgress> {
  if (json) return jsonLines(stream);
  return stream.isTTY ? bar(ref, stream) : plainLines(ref, stream);
}

function plainLines(ref: string, stream: NodeJS.WriteStream): Display<UploadProgress> {
  const speed = speedometer();
  let said: string | undefined;
  let saidAt = performance.now();
  stream.write(`Preparing ${ref}...\n`);
  return {
    show(progress) {
      if (progress.step === "exists") return void stream.write(`${there(progress)}\n`);
      const now = performance.now();
      const first = progress.step !== said;
      const rate = isMoving(progress) ? speed(progress.image_done_bytes, now) : undefined;
      if (progress.step === "resolve" || (!first && (rate === undefined || now - saidAt < LINE_MS))) return;
      said = progress.step;
      saidAt = now;
      stream.write(`${STEPS[progress.step]}${amounts(progress, rate)}...\n`);
    },
    end: () => {},
  };
}

function bar(ref: string, stream: NodeJS.WriteStream): Display<UploadProgress> {
  const speed = speedometer();
  let latest: Exclude<UploadProgress, { step: "exists" }> = { step: "resolve" };
  let rate: number | undefined;
  const draw = () => {
    const drawn = isMoving(latest) ? ` ${gauge(share(latest))}` : "";
    redraw(`${STEPS[latest.step]} ${ref}${drawn}${amounts(latest, rate)}`, stream);
  };
  const timer = setInterval(draw, DRAW_MS);
  draw();
  return {
    show(progress) {
      if (progress.step === "exists") {
        clearLine(stream);
        return void stream.write(`${there(progress)}\n`);
      }
      latest = progress;
      if (isMoving(progress)) rate = speed(progress.image_done_bytes, performance.now());
    },
    end() {
      clearInterval(timer);
      clearLine(stream);
    },
  };
}

function there({ layer, total_bytes: bytes }: UploadProgress & { step: "exists" }): string {
  return `Layer ${shortDigest(layer)} (${megabytes(bytes)}) is already there.`;
}

function isMoving(progress: UploadProgress): progress is Moving {
  return progress.step === "download" || progress.step === "upload";
}

function amounts(progress: UploadProgress, rate: number | undefined): string {
  if (!isMoving(progress)) return "";
  const { image_done_bytes: done, image_total_bytes: total } = progress;
  const speed = rate === undefined ? "" : `, ${megabytes(rate)}/s`;
  return ` ${Math.floor(share(progress) * 100)}%, ${megabytes(done)} of ${megabytes(total)}${speed}`;
}

function share({ image_done_bytes: done, image_total_bytes: total }: Moving): number {
  return shareOf(done, total);
}

/** Bytes per second; undefined until known. Bytes that were there at the beginning do not count. */
function speedometer(): (bytes: number, nowMs: number) => number | undefined {
  const seen: { bytes: number; atMs: number }[] = [];
  return (bytes, nowMs) => {
    seen.push({ bytes, atMs: nowMs });
    while (seen.length > 2 && nowMs - (seen[0]?.atMs ?? nowMs) > SPEED_WINDOW_MS) seen.shift();
    const { bytes: before = bytes, atMs = nowMs } = seen[0] ?? {};
    return nowMs - atMs < DRAW_MS ? undefined : ((bytes - before) / (nowMs - atMs)) * 1000;
  };
}
