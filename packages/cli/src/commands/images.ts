/** `hibernaut images` */
import { command, type Noun } from "../command.ts";
import { CliError, UsageError } from "../failure.ts";
import { listCommand } from "../listing.ts";
import { pull as pullImage } from "../pulling.ts";
import { ago, count, megabytes, shortDigest, shortImage } from "../terminal.ts";
import { upload } from "../upload/provide.ts";
import { localImage } from "../upload/reference.ts";

const list = listCommand({
  summary: "List the images on the platform's disk",
  examples: ["hibernaut images list", "hibernaut images list -o wide"],
  fetch: (client) => client.listImages(),
  show: () => ({
    head: ["IMAGE", "DIGEST", "SIZE", "IN USE", "IMPORTED"],
    row: ({ digest, ref, size_bytes, imported_at, in_use }) => [
      ref ?? "-",
      shortDigest(digest),
      megabytes(size_bytes),
      in_use ? "yes" : "no",
      ago(imported_at),
    ],
    wide: { head: ["WHOLE DIGEST"], row: ({ digest }) => [digest] },
    spare: ["IMPORTED", "IN USE"],
    id: ({ digest }) => digest,
    empty: "No images.",
  }),
});

const pull = command({
  name: "pull",
  summary: "Pull an image before machines need it",
  description:
    "Machines pull the images they need by themselves. A pull that was interrupted, by Ctrl-C for example, continues from there when you run it again.",
  arguments: [{ usage: "<image>", description: "e.g. ghcr.io/me/shop:v2" }],
  examples: ["hibernaut images pull ghcr.io/me/shop:v2", "hibernaut images pull docker-archive:/srv/shop.tar --json"],
  async run(context, [ref = ""]) {
    const image = await pullImage(context, ref);
    return { document: image, text: `${ref} is ready: ${image.digest}, ${megabytes(image.size_bytes)}.` };
  },
});

const push = command({
  name: "push",
  summary: "Upload an image from this machine to the platform",
  description:
    "Sends only the layers that the platform does not have. An upload that was interrupted, by Ctrl-C for example, continues from there when you run it again. `deploy` and `machine run` upload by themselves if the platform is on another machine.",
  arguments: [
    { usage: "<image>", description: "docker-archive:FILE, oci-archive:FILE, oci:DIRECTORY or docker-daemon:NAME:TAG" },
  ],
  examples: ["hibernaut images push docker-archive:./shop.tar", "hibernaut images push docker-daemon:shop:latest"],
  async run(context, [ref = ""]) {
    const image = localImage(ref);
    if (image === undefined)
      throw new UsageError(
        `\`${ref}\` is not an image on this machine. Write docker-archive:FILE, oci-archive:FILE, oci:DIRECTORY or docker-daemon:NAME:TAG.`,
      );
    const uploaded = await upload(context, image);
    context.say(`${ref} is ready, ${megabytes(uploaded.size_bytes)}. Use it as:`);
    return { document: uploaded, text: uploaded.ref };
  },
});

const uploads = listCommand({
  name: "uploads",
  summary: "List the uploads that have not ended",
  examples: ["hibernaut images uploads"],
  fetch: (client) => client.listUploads(),
  show: () => ({
    head: ["IMAGE", "DIGEST", "SIZE", "UPLOADED", "CONTINUED"],
    row: ({ ref, digest, size_bytes, done_bytes, used_at }) => [
      shortImage(ref),
      shortDigest(digest),
      megabytes(size_bytes),
      megabytes(done_bytes),
      ago(used_at),
    ],
    wide: { head: ["WHOLE DIGEST"], row: ({ digest }) => [digest] },
    id: ({ digest }) => digest,
    empty: "No uploads.",
  }),
});

const cancel = command({
  name: "cancel",
  summary: "Cancel an upload and delete what has arrived of its unfinished layers",
  arguments: [{ usage: "<digest>", description: "the image's digest, or the beginning of it" }],
  examples: ["hibernaut images cancel 4f4fb700ef54"],
  async run(context, [wanted = ""]) {
    const client = await context.client();
    const hex = wanted.replace(/^sha256:/, "");
    const found = (await client.listUploads()).filter(({ digest }) => digest.startsWith(`sha256:${hex}`));
    const [only, second] = found;
    if (only === undefined || second !== undefined) {
      const why = only === undefined ? "No upload" : "More than one upload";
      throw new CliError("not_found", `${why} has a digest that begins with ${hex}. See \`hibernaut images uploads\`.`);
    }
    await client.cancelUpload(only.digest);
    return { document: only, text: `The upload of ${shortImage(only.ref)} is canceled.` };
  },
});

const prune = command({
  name: "prune",
  summary: "Delete images that no machine needs",
  description:
    "Also deletes the downloaded layers that are kept for the next import. Machines keep the images they need, asleep or not.",
  examples: ["hibernaut images prune"],
  async run(context) {
    const { deleted, freed_bytes } = await (await context.client()).pruneImages();
    const text = `Deleted ${count(deleted.length, "image")}, freed ${megabytes(freed_bytes)}.`;
    return { document: { deleted, freed_bytes }, text };
  },
});

export const images: Noun = {
  name: "images",
  aliases: ["image"],
  summary: "Manage images",
  commands: [list, pull, push, uploads, cancel, prune],
};
