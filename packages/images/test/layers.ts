/** Images made of layers that a test describes entry by entry, as no tool would make them. */
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";

/** An entry of a layer: what tar-stream takes, and its content. */
export type Part = Partial<Header> & { name: string } & { content?: string };

/** A layer as a tar archive. */
export async function tarOf(parts: readonly Part[]): Promise<Buffer> {
  const archive = pack();
  for (const { content = "", ...head } of parts)
    archive.entry({ mtime: new Date(1_600_000_000_000), ...head }, content);
  archive.finalize();
  return buffer(archive);
}

const sha256 = (content: Buffer | string) => createHash("sha256").update(content).digest("hex");

interface Layer {
  /** As it is stored. */
  blob: Buffer;
  /** The digest of what is in it; default: of what gzip makes of the blob, undone. */
  diffId?: string;
}

/** Writes an OCI layout `<folder>/<name>` with the image `latest`. Returns its path. */
export async function writeLayout(folder: string, name: string, layers: readonly Layer[]): Promise<string> {
  const layout = join(folder, name);
  await mkdir(join(layout, "blobs/sha256"), { recursive: true });
  const put = async (content: Buffer | string, mediaType: string) => {
    await writeFile(join(layout, "blobs/sha256", sha256(content)), content);
    return { mediaType, digest: `sha256:${sha256(content)}`, size: content.length };
  };
  const type = "application/vnd.oci.image";
  const config = await put(
    JSON.stringify({
      architecture: "amd64",
      os: "linux",
      config: {},
      rootfs: { type: "layers", diff_ids: layers.map(({ blob, diffId }) => `sha256:${diffId ?? sha256(blob)}`) },
    }),
    `${type}.config.v1+json`,
  );
  const described = await Promise.all(layers.map(({ blob }) => put(blob, `${type}.layer.v1.tar`)));
  const manifest = { schemaVersion: 2, mediaType: `${type}.manifest.v1+json`, config, layers: described };
  const descriptor = await put(JSON.stringify(manifest), manifest.mediaType);
  const annotations = { "org.opencontainers.image.ref.name": "latest" };
  await writeFile(join(layout, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
  const index = { schemaVersion: 2, manifests: [{ ...descriptor, annotations }] };
  await writeFile(join(layout, "index.json"), JSON.stringify(index));
  return layout;
}

/** The same, of the entries of each layer. */
export async function layoutOf(folder: string, name: string, layers: readonly (readonly Part[])[]): Promise<string> {
  return writeLayout(folder, name, await Promise.all(layers.map(async (parts) => ({ blob: await tarOf(parts) }))));
}

/** A layer that gzip makes small. */
export function gzipped(content: Buffer): Layer {
  return { blob: gzipSync(content), diffId: sha256(content) };
}
