/** Runs `ip`, `bridge` and `nft`, each with all of its work in one call. */
import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { ifAbsent, isThere } from "@hibernaut/lib/absence";
import { failureReason, programEnvironment } from "@hibernaut/lib/exec";
import { parseAddress, type Subnet, size } from "@hibernaut/lib/ipv4";
import type { Names } from "./names.ts";

/** The programs take milliseconds, and longer while the kernel removes many interfaces. */
const TIMEOUT_MS = 20_000;
const INTERFACES = "/sys/class/net";

/** Runs lines of `ip` in order, until one fails. */
export async function ip(lines: readonly string[]): Promise<void> {
  if (lines.length > 0) await run("ip", ["-batch", "-"], lines);
}

/** Runs lines of `bridge` in order, until one fails. */
export async function bridge(lines: readonly string[]): Promise<void> {
  if (lines.length > 0) await run("bridge", ["-batch", "-"], lines);
}

/** Loads a ruleset, completely or not at all. */
export async function nft(ruleset: string): Promise<void> {
  await run("nft", ["-f", "-"], [ruleset]);
}

/** Whether the kernel would take a ruleset. Loads nothing. Rejects when there is no nft. */
export async function acceptsRuleset(ruleset: string): Promise<boolean> {
  return run("nft", ["--check", "-f", "-"], [ruleset]).then(
    () => true,
    (error: HibernautError) => {
      if (error.details.missing !== undefined) throw error;
      return false;
    },
  );
}

/** Whether all of these tables exist, each named as `inet name`. */
export async function hasTables(wanted: readonly string[]): Promise<boolean> {
  const tables = await listTables();
  return wanted.every((name) => tables.includes(name));
}

/** Lists all tables, each named as `inet name`. */
export async function listTables(): Promise<string[]> {
  return [...(await run("nft", ["list", "tables"])).matchAll(/^table (.+)$/gm)].map(([, name = ""]) => name);
}

/** Lists a set with its elements, as JSON. */
export function listSet(family: string, table: string, set: string): Promise<string> {
  return run("nft", ["--json", "list", "set", family, table, set]);
}

/** How many packets a named counter has counted. */
export async function readCounter(family: string, table: string, counter: string): Promise<number> {
  const text = await run("nft", ["--json", "list", "counter", family, table, counter]);
  const { nftables } = JSON.parse(text) as { nftables: { counter?: { packets: number } }[] };
  return nftables.find((one) => one.counter !== undefined)?.counter?.packets ?? 0;
}

/** Lists the names of the platform's taps. */
export async function listTaps({ tapPrefix }: Names): Promise<Set<string>> {
  return new Set((await readdir(INTERFACES)).filter((name) => name.startsWith(tapPrefix)));
}

/** Whether there is an interface of that name. Takes a tenth of a millisecond. */
export function hasLink(name: string): Promise<boolean> {
  return isThere(`${INTERFACES}/${name}`);
}

/** A subnet that the host has an address in or a route to. */
interface UsedSubnet extends Subnet {
  /** The interface; empty for a route that has none. */
  device: string;
}

interface Addresses {
  ifname: string;
  addr_info: { local: string; prefixlen: number }[];
}

/**
 * Lists the IPv4 subnets that the host has addresses in or routes to. Leaves out the default route and everything on the
 * interface `except`.
 */
export async function usedSubnets(except: string): Promise<UsedSubnet[]> {
  const [addresses, routes] = await Promise.all([
    run("ip", ["-json", "-4", "address"]).then((text) => JSON.parse(text) as Addresses[]),
    run("ip", ["-json", "-4", "route", "show", "table", "all"]).then(
      (text) => JSON.parse(text) as { dst: string; dev?: string }[],
    ),
  ]);
  const own = addresses
    .filter(({ ifname }) => ifname !== except)
    .flatMap(({ ifname: device, addr_info: info }) =>
      info.map(({ local, prefixlen }) => ({ text: `${local}/${prefixlen}`, device })),
    );
  const routed = routes
    .filter(({ dst, dev }) => dst !== "default" && dev !== except)
    .map(({ dst: text, dev: device = "" }) => ({ text, device }));
  return [...own, ...routed].flatMap(({ text, device }) => {
    const subnet = subnetAround(text);
    return subnet === undefined ? [] : [{ ...subnet, device }];
  });
}

/** Lists the IPv4 addresses of an interface that exists, as `a.b.c.d/n`. */
export async function addressesOf(device: string): Promise<string[]> {
  const found = JSON.parse(await run("ip", ["-json", "-4", "address", "show", "dev", device])) as Partial<Addresses>[];
  return found.flatMap(({ addr_info: info = [] }) => info.map(({ local, prefixlen }) => `${local}/${prefixlen}`));
}

/** Reads the note that the kernel keeps with an interface (`ip link` shows it as the alias). Empty when there is none. */
export async function noteOn(device: string): Promise<string> {
  const text = await readFile(join(INTERFACES, device, "ifalias"), "utf8").catch(() => "");
  return text.replace(/\n$/, "");
}

/** Writes the note that {@link noteOn} reads. */
export async function writeNote(device: string, text: string): Promise<void> {
  await writeFile(join(INTERFACES, device, "ifalias"), text);
}

/** Whether a process, which is a guest's QEMU, has one of these taps open. */
export async function anyTapInUse(taps: Iterable<string>): Promise<boolean> {
  // One of which nothing is known counts as open.
  const states = [...taps].map((tap) =>
    readFile(join(INTERFACES, tap, "operstate"), "utf8")
      .catch(ifAbsent(""))
      .catch(() => "up"),
  );
  return (await Promise.all(states)).some((state) => state.trim() === "up");
}

/** The subnet of an address with or without a prefix length. Undefined for other words that name routes. */
function subnetAround(text: string): Subnet | undefined {
  const [address = "", length = "32"] = text.split("/");
  const number = parseAddress(address);
  const prefix = Number(length);
  return number === undefined ? undefined : { base: number - (number % size({ prefix })), prefix };
}

/** Lets the host forward packets between its interfaces. Never turned off again: other programs may rely on it by then. */
export async function forwardPackets(): Promise<void> {
  const file = "/proc/sys/net/ipv4/ip_forward";
  if ((await readFile(file, "utf8")).trim() === "0") await writeFile(file, "1");
}

/** Turns off IPv6 on an interface, because machines have none. Does nothing where the kernel has no IPv6. */
export async function withoutIpv6(name: string): Promise<void> {
  await writeFile(`/proc/sys/net/ipv6/conf/${name}/disable_ipv6`, "1").catch(() => {});
}

function run(program: string, args: string[], input: readonly string[] = []): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout: TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024, env: { ...programEnvironment(), LC_ALL: "C" } };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
      const [why = ""] = missing
        ? ["it is not installed"]
        : failureReason(Object.assign(error, { stderr })).split("\n");
      reject(
        new HibernautError(
          "unavailable",
          `The bridge network cannot be set up: ${program} failed, because ${why}. Run \`hibernaut doctor\`.`,
          missing ? { missing: program } : {},
          { cause: error },
        ),
      );
    });
    // A program that ended early has reported why; input that it did not read does not matter.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input.map((line) => `${line}\n`).join(""));
  });
}
