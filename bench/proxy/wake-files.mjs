/** Puts a snapshot's files into the host's page cache, and drops them from it. */
import { spawnSync } from "node:child_process";

/** Runs a system tool to its end and returns what it printed. @param {string} program @param {string[]} args */
export function runTool(program, args) {
  const { error, status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (error === undefined && status === 0) return stdout;
  throw new Error(`${program} ${args.join(" ")} failed: ${error?.message ?? stderr.trim()}`);
}

/** Returns how many bytes of the files are in the page cache. @param {string[]} files */
export function cachedBytes(files) {
  const sizes = runTool("fincore", ["--bytes", "--noheadings", "--output", "RES", ...files]);
  return sizes
    .trim()
    .split(/\s+/)
    .map(Number)
    .reduce((sum, size) => sum + size, 0);
}

/**
 * Reads the files, so that they are completely in the cache. After a wake from the disk, only what the guest touched
 * is. Another process reads them, because a larger process of ours would take longer to start QEMU.
 *
 * @param {string[]} files
 */
export function intoCache(files) {
  for (const file of files) runTool("dd", [`if=${file}`, "of=/dev/null", "bs=1M", "status=none"]);
}

/**
 * Drops the files, and no others, from the cache. Throws if the file system does not allow it.
 *
 * @param {string[]} files
 */
export function outOfCache(files) {
  for (const file of files) {
    runTool("sync", [file]); // the kernel does not drop what is not on the disk yet
    runTool("dd", [`if=${file}`, "iflag=nocache", "count=0", "status=none"]);
  }
  const left = cachedBytes(files);
  if (left === 0) return;
  throw new Error(
    `${left} bytes of ${files.join(", ")} stay in the page cache. Set TMPDIR to a directory on a real disk.`,
  );
}
