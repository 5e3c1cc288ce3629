/** `hibernaut images` */
import type { Image } from "@hibernaut/client";
import { command, type Noun } from "../command.ts";
import { pull as pullImage } from "../pulling.ts";
import { listText, QUIET } from "../listing.ts";
import { ago, megabytes } from "../terminal.ts";

const list = command({
  name: "list",
  aliases: ["ls"],
  summary: "List the images on the platform's disk",
  options: [QUIET],
  examples: ["hibernaut images list"],
  async run(context, _args, options) {
    const images = await (await context.client()).listImages();
    const listing = {
      head: ["IMAGE", "DIGEST", "SIZE", "IN USE", "IMPORTED"],
      row: ({ digest, ref, size_bytes, imported_at, in_use }: Image) => [
        ref ?? "-",
        digest.slice("sha256:".length, "sha256:".length + 12),
        megabytes(size_bytes),
        in_use ? "yes" : "no",
        ago(imported_at),
      ],
      id: ({ digest }: Image) => digest,
      empty: "No images.",
    };
    return { document: images, text: listText(images, listing, options) };
  },
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

const prune = command({
  name: "prune",
  summary: "Delete images that no machine needs",
  description:
    "Also deletes the downloaded layers that are kept for the next import. Machines keep the images they need, asleep or not.",
  examples: ["hibernaut images prune"],
  async run(context) {
    const { deleted, freed_bytes } = await (await context.client()).pruneImages();
    const count = deleted.length === 1 ? "1 image" : `${deleted.length} images`;
    return {
      document: { deleted, freed_bytes },
      text: `Deleted ${count}, freed ${megabytes(freed_bytes)}.`,
    };
  },
});

/** The commands about images. */
export const images: Noun = {
  name: "images",
  aliases: ["image"],
  summary: "Manage images",
  commands: [list, pull, prune],
};
