/** The format of tar archives, which layers of images have, and uploads of others. What is read is not trusted. */
export { Bytes } from "./flatten/bytes.ts";
export { Refusal as TarRefusal } from "./flatten/refusal.ts";
export { nextEntry, padded, type TarEntry } from "./flatten/tar-read.ts";
export { headsOf, padding, TAR_END } from "./flatten/tar-write.ts";
