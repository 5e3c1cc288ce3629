/** Settings of images. */
import { duration, integer, list, size } from "./forms.ts";

/** A registry's host as references name it, with its port. */
const REGISTRY = /^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d{1,5})?$/;

export const IMAGE_SETTINGS = {
  insecureRegistries: list("HIBERNAUT_INSECURE_REGISTRIES", {
    default: [],
    item: REGISTRY,
    of: "names of registries such as registry.lan:5000",
    description:
      "[Registries](images.md#registries) that may speak plain HTTP or present any certificate, named as images name them. Those at `localhost` and `127.x.y.z` always may. Anyone on the network path to such a registry can read its login; content is still checked by digest, unless you ask for a tag.",
  }),
  layerCacheMb: size("HIBERNAUT_LAYER_CACHE_SIZE", {
    formerly: "HIBERNAUT_LAYER_CACHE_MB",
    default: 2048,
    min: 0,
    max: 1_048_576,
    description:
      "How many [downloaded layers](images.md#how-long-images-are-kept) to keep for the next import: an app's next version shares most of them. Layers that a pull in progress needs are kept in addition.",
  }),
  uploadMaxMb: size("HIBERNAUT_UPLOAD_SIZE", {
    default: 16_384,
    min: 1,
    max: 1_048_576,
    description:
      "How many bytes the [uploads](images.md#upload-an-image) that have not ended may have together, so that half-finished ones cannot fill the disk. An image that is larger cannot be uploaded.",
  }),
  imageMaxMb: size("HIBERNAUT_IMAGE_SIZE", {
    default: 16_384,
    min: 1,
    max: 1_048_576,
    description:
      "How large the layers of an [image](images.md#how-large-an-image-may-be) may be together when they are unpacked. A few megabytes can unpack to terabytes. The default is for images of machine learning; most have less than 2 GB.",
  }),
  imageMaxEntries: integer("HIBERNAUT_IMAGE_ENTRIES", {
    default: 500_000,
    min: 100,
    max: 1_000_000,
    description:
      "How many files, directories and other entries the layers of an [image](images.md#how-large-an-image-may-be) may have together. Each takes memory during the import, 1.2 KB or so. Most images have less than 100,000.",
  }),
  diskReserveMb: size("HIBERNAUT_DISK_RESERVE", {
    default: 1024,
    min: 0,
    max: 1_048_576,
    description:
      "How much of the data directory's disk must stay free when an [image](images.md#how-large-an-image-may-be) is imported, so that machines can still fall asleep and the platform can store what happens.",
  }),
  uploadKeepH: duration("HIBERNAUT_UPLOAD_KEEP", {
    unit: "h",
    default: 24,
    min: 1,
    max: 8760,
    description:
      "How long an [upload](images.md#upload-an-image) that was interrupted can continue. Then its unfinished parts are deleted.",
  }),
  imageKeepH: duration("HIBERNAUT_IMAGE_KEEP", {
    formerly: "HIBERNAUT_IMAGE_KEEP_HOURS",
    unit: "h",
    default: 24,
    min: 0,
    max: 8760,
    description:
      "How long to keep an image that no machine needs: going back to yesterday's version downloads nothing.",
  }),
  imageKeepMb: size("HIBERNAUT_IMAGE_KEEP_SIZE", {
    default: 20_480,
    min: 0,
    max: 1_073_741_824,
    description:
      "How much disk [images](images.md#how-long-images-are-kept) that no machine needs may take together. The ones that were used least recently are deleted first, so that nobody fills the disk with pulls and uploads.",
  }),
};
