import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** An image without layers, as an OCI layout. */
export async function writeTinyLayout(folder: string): Promise<void> {
  const blobs = join(folder, "blobs/sha256");
  await mkdir(blobs, { recursive: true });
  const put = async (content: object) => {
    const json = JSON.stringify(content);
    const hex = createHash("sha256").update(json).digest("hex");
    await writeFile(join(blobs, hex), json);
    return { digest: `sha256:${hex}`, size: json.length };
  };
  const config = await put({ os: "linux", architecture: "amd64" });
  const manifest = await put({ schemaVersion: 2, config, layers: [] });
  await writeFile(join(folder, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }));
}
