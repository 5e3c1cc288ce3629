/** A snapshot's files in the host's page cache, and out of it. */
import { spawnSync } from "node:child_process";

/** Runs a tool of the system to its end; returns what it printed. @param {string} program @param {string[]} args */
export function runTool(program, args) {
  const { error, status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (error === undefined && status === 0) return stdout;
  throw new Error(`${program} ${args.join(" ")} failed: ${error?.message ?? stderr.trim()}`);
}

/** How many bytes of the files are in the page cache. @param {string[]} files */
export function cachedBytes(files) {
  const sizes = runTool("fincore", ["--bytes", "--noheadings", "--output", "RES", ...files]);
  return sizes
    .trim()
    .split(/\s+/)
    .map(Number)
    .reduce((sum, size) => sum + size, 0);
}

/**
 * Reads the files, so that all of each is in the cache: after a wake from the disk only what the guest touched is. Not
 * into this process, which would take longer to start others.
 *
 * @param {string[]} files
 */
export function intoCache(files) {
  for (const file of files) runTool("dd", [`if=${file}`, "of=/dev/null", "bs=1M", "status=none"]);
}

/**
 * Drops the files, and only them, from the cache. Throws where they cannot be.
 *
 * @param {string[]} files
 */
export function outOfCache(files) {
  for (const file of files) {
    runTool("sync", [file]); // what is not on the disk yet is not dropped
    runTool("dd", [`if=${file}`, "iflag=nocache", "count=0", "status=none"]);
  }
  const left = cachedBytes(files);
  if (left === 0) return;
  throw new Error(
    `${left} bytes of ${files.join(", ")} stay in the page cache; set TMPDIR to a folder on a real disk.`,
  );
}
