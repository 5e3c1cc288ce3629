/** Copies between this computer and machines, in parts, for the CLI. */
export { addEntry, addFile } from "./archive-entries.ts";
export { type Copied, type CopyClient, type CopyOptions, copyIn, copyOut, passed } from "./copies.ts";
export { CopyError } from "./copy-error.ts";
