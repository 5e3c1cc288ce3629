/** The documents of the base image, as in the OCI specification. Pure. */
import { createHash } from "node:crypto";
import { BASE_LOCALE, BASE_PATH, BASE_USER } from "./packages.ts";

/** The image's only layer: a tar archive that is not compressed, because that is imported fastest. */
export interface BaseLayer {
  /** `sha256:` and 64 hex digits. */
  digest: string;
  bytes: number;
}

/** A document of an OCI layout. */
interface Document {
  /** Its path in the layout. */
  path: string;
  text: string;
}

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";
const LAYER = "application/vnd.oci.image.layer.v1.tar";
const NAME = "org.opencontainers.image.ref.name";

/** How the base image is started: as root, and waiting. What runs in a sandbox is started by those who use it. */
const SETTINGS = {
  User: "",
  Env: [`PATH=${BASE_PATH}`, `LANG=${BASE_LOCALE}`],
  Cmd: ["/bin/sleep", "infinity"],
  WorkingDir: BASE_USER.home,
};

/** All documents of a layout with the image `base`, and the digest of its manifest, which is the image's. */
export function baseDocuments(layer: BaseLayer, created: Date): { digest: string; documents: Document[] } {
  const config = JSON.stringify({
    created: created.toISOString(),
    architecture: "amd64",
    os: "linux",
    config: SETTINGS,
    rootfs: { type: "layers", diff_ids: [layer.digest] },
  });
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: describe(CONFIG, config),
    layers: [{ mediaType: LAYER, digest: layer.digest, size: layer.bytes }],
  });
  const image = { ...describe(MANIFEST, manifest), annotations: { [NAME]: "base" } };
  const documents = [
    { path: "oci-layout", text: JSON.stringify({ imageLayoutVersion: "1.0.0" }) },
    { path: "index.json", text: JSON.stringify({ schemaVersion: 2, manifests: [image] }) },
    ...[config, manifest].map((text) => ({ path: blobPath(digestOf(text)), text })),
  ];
  return { digest: image.digest, documents };
}

/** Where the blob of a digest is in a layout. */
export function blobPath(digest: string): string {
  return `blobs/sha256/${digest.slice("sha256:".length)}`;
}

function describe(mediaType: string, text: string): { mediaType: string; digest: string; size: number } {
  return { mediaType, digest: digestOf(text), size: Buffer.byteLength(text) };
}

function digestOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
