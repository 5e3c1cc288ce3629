#!/usr/bin/env node
/**
 * `npm run bench:cold` measures where the time of a cold start goes, and what other ways to store the kernel and the
 * image would change. It boots the same guest with QEMU and nothing else (`proxy/bare.mjs`), with the arguments that the
 * platform uses. The variants take turns, round by round. Prints medians and spread, and records every sample in
 * `bench/results/cold.json`.
 */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setup } from "../scripts/setup.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { mapValues, round, summaries } from "./lib/stats.mjs";
import { openBare } from "./proxy/bare.mjs";
import { intoCache, outOfCache, runTool } from "./proxy/wake-files.mjs";
import { bareOptions, openPlatform } from "./proxy/wake-platform.mjs";
import { quietMoment } from "./proxy/wake-quiet.mjs";

const PACKAGES = join(import.meta.dirname, "../packages/guest/.build/cache");
/** How long a sample waits for the host to become quiet. */
const PATIENCE_MS = 8_000;

const { values } = parseArgs({ options: { rounds: { type: "string", default: "10" } } });

/** @typedef {{ name: string, kernel?: string, image?: string, cached: boolean }} Variant */

/** The parts of a cold start, each from one moment to the next. */
const PARTS = /** @type {const} */ ({
  qemu: ["began", "qemu"],
  kernel_and_agent: ["qemu", "booted"],
  configure: ["booted", "started"],
  app: ["started", "first"],
  total: ["began", "first"],
});

/** Returns the value of an option in QEMU's arguments. @param {string[]} args @param {string} option */
const valueOf = (args, option) => args[args.indexOf(option) + 1] ?? "";

/** Returns the image's file. @param {string[]} args */
function imageOf(args) {
  return /,file=([^,]+)/.exec(args.find((arg) => arg.startsWith("if=none,id=image,")) ?? "")?.[1] ?? "";
}

/** Unpacks the kernel of the package that the guest bundle was built from, as the distribution compressed it. @param {string} to */
function packedKernel(to) {
  const [deb] = readdirSync(PACKAGES).filter((name) => name.endsWith(".deb"));
  if (deb === undefined) throw new Error("the guest bundle was not built from a package; run `npm run setup` first");
  runTool("dpkg-deb", ["-x", join(PACKAGES, deb), to]);
  const [kernel = ""] = readdirSync(join(to, "boot")).filter((name) => name.startsWith("vmlinuz"));
  return join(to, "boot", kernel);
}

/** Makes the image again with other options. @param {string} rootfs @param {string} to @param {string[]} options */
function repacked(rootfs, to, ...options) {
  runTool("mksquashfs", [rootfs, to, "-no-exports", "-no-progress", "-quiet", ...options]);
  return to;
}

/** The arguments of a variant. @param {string[]} args @param {Variant} variant */
function argsOf(args, { kernel, image }) {
  const own = imageOf(args);
  return args.map((arg, index) => {
    if (kernel !== undefined && args[index - 1] === "-kernel") return kernel;
    return image === undefined ? arg : arg.replace(`,file=${own},`, `,file=${image},`);
  });
}

await setup({ quiet: true });
const about = environment();
const platform = await openPlatform();
/** @type {Record<string, Record<string, number[]>>} */
const samples = {};
try {
  const { accelerator, hypervisor_version: qemu } = await platform.call("GET", "/health");
  const options = await bareOptions(platform);
  const { args } = options;
  const rootfs = join(platform.folder, "rootfs");
  runTool("unsquashfs", ["-quiet", "-no-progress", "-d", rootfs, imageOf(args)]);
  mkdirSync(join(platform.folder, "kernel"));
  const plain = ["-noD", "-noF", "-noI", "-noX"];
  /** @type {Variant[]} */
  const variants = [
    { name: "as the platform does it", cached: true },
    { name: "kernel as packed", cached: true, kernel: packedKernel(join(platform.folder, "kernel")) },
    { name: "image with LZ4", cached: true, image: repacked(rootfs, join(platform.folder, "lz4"), "-comp", "lz4") },
    {
      name: "image with zstd",
      cached: true,
      image: repacked(rootfs, join(platform.folder, "zstd"), "-comp", "zstd"),
    },
    {
      name: "image in blocks of 1 MB",
      cached: true,
      image: repacked(rootfs, join(platform.folder, "big"), "-b", "1M", ...plain),
    },
    { name: "nothing in the page cache", cached: false },
  ];
  for (let number = 0; number < Number(values.rounds); number += 1)
    for (const variant of variants) {
      process.stderr.write(`round ${number + 1} of ${values.rounds}: ${variant.name}\n`);
      const changed = argsOf(args, variant);
      const files = [valueOf(changed, "-kernel"), valueOf(changed, "-initrd"), imageOf(changed)];
      (variant.cached ? intoCache : outOfCache)(files);
      await quietMoment(PATIENCE_MS);
      const bare = openBare({ ...options, args: changed });
      process.once("exit", bare.kill);
      /** @type {Record<string, number>} */
      const marks = (await bare.boot()).marks;
      await bare.end();
      process.off("exit", bare.kill);
      const parts = (samples[variant.name] ??= {});
      for (const [part, [from, to]] of Object.entries(PARTS))
        (parts[part] ??= []).push(round((marks[to] ?? Number.NaN) - (marks[from] ?? Number.NaN)));
    }
  const results = mapValues(samples, (parts) => summaries(parts, 0));
  const spread = (/** @type {import("./lib/stats.mjs").Summary} */ { median, min, p90 }) =>
    `${median} (${round(min, 0)}-${round(p90, 0)})`;
  console.table(mapValues(results, (parts) => mapValues(parts, spread)));
  writeResult("cold", { ...about, accelerator, qemu, results, samples });
} finally {
  await platform.close();
}
