/** Which jail a host gets, and what it is told when a part is missing. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { readSettings } from "@hibernaut/settings";
import { JAIL_LAUNCHER } from "@hibernaut/settings/places";
import { expect, onTestFinished, test } from "vitest";
import { diskFolder } from "../../../platform/test/helpers/temp.ts";
import { Cgroups } from "../../src/qemu/jail/cgroups.ts";
import { findJail } from "../../src/qemu/jail/find.ts";
import { findProgram, hostPlaces } from "../../src/qemu/jail/host-places.ts";

const options = (env: Record<string, string> = {}) => ({
  ...readSettings({ HOME: "/nowhere", ...env }),
  accelerator: "tcg" as const,
  look: true,
});

/** What programs need of the host. */
const PLACES = ["--read", "/usr", "--link", "/lib", "usr/lib", "--link", "/lib64", "usr/lib64"];

async function folder(within = tmpdir()): Promise<string> {
  const path = await mkdtemp(join(within, "hibernaut-jail-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

test("none where the settings say so, and no word of complaint", async () => {
  expect(await findJail(options({ HIBERNAUT_JAIL: "off" }))).toMatchObject({ found: "none, as set by HIBERNAUT_JAIL" });
});

test("none for a QEMU that is not there; a platform that requires one does not start", async () => {
  const absent = { HIBERNAUT_QEMU: "/nowhere/qemu" };
  const { jail, found } = await findJail(options(absent));
  expect([jail, found]).toEqual([undefined, "none: /nowhere/qemu is not installed"]);
  await expect(findJail(options({ ...absent, HIBERNAUT_JAIL: "require" }))).rejects.toThrow(
    /^HIBERNAUT_JAIL is require, but machines would lack a part of it: QEMU runs with the rights of the platform, because \/nowhere\/qemu is not installed\./,
  );
});

test("none for a QEMU that does not run there, with its own words", async () => {
  const path = join(await folder(), "qemu");
  await writeFile(path, "#!/no/such/shell\n", { mode: 0o755 });
  expect((await findJail(options({ HIBERNAUT_QEMU: path }))).found).toMatch(
    /^none: running .*: No such file or directory$/,
  );
});

test("this host's own: namespaces, and for root a user for each machine", async () => {
  const { jail, found } = await findJail(options());
  expect(jail).toBeDefined();
  expect(found).toBe(
    process.getuid?.() === 0 ? "a user and namespaces for each machine" : "namespaces for each machine",
  );
});

test("it is made where the host's name may not be set, as in the systemd unit", async () => {
  // Refuses sethostname, as ProtectHostname does: a filter of four instructions.
  const filter = 'pack("(SCCL)*", 0x20,0,0,0, 0x15,0,1,170, 0x06,0,0,0x50001, 0x06,0,0,0x7fff0000)';
  const code = `my $f = ${filter}; my $p = pack("Sx6P", 4, $f); syscall(157, 38, 1, 0, 0, 0); syscall(157, 22, 2, $p, 0, 0) == 0 or die; exec @ARGV`;
  const root = await folder();
  const jail = [JAIL_LAUNCHER, "--root", root, ...PLACES, "--", "/usr/bin/echo", "in the jail"];
  const { stdout } = await promisify(execFile)("perl", ["-e", code, "--", ...jail]);
  expect(stdout).toBe("in the jail\n");
});

test.runIf(process.getuid?.() === 0)(
  "a device that only root may open, such as /dev/kvm without udev, is the jail's own",
  async () => {
    const device = `/dev/hibernaut-test-${process.pid}`;
    await promisify(execFile)("mknod", ["--mode=600", device, "c", "1", "5"]); // /dev/zero
    onTestFinished(() => rm(device));
    const jail = [
      "--root",
      await folder(),
      "--uid",
      "200000",
      ...PLACES,
      "--device",
      device,
      "--",
      "/usr/bin/head",
      "-c",
      "4",
      device,
    ];
    const { stdout } = await promisify(execFile)(JAIL_LAUNCHER, jail);
    expect(stdout).toBe("\0\0\0\0");
    expect((await stat(device)).mode & 0o777, "the host's is as it was").toBe(0o600);
  },
);

test.runIf(process.getuid?.() === 0)("a device that cannot be opened is refused before the program runs", async () => {
  const name = `hibernaut-test-${process.pid}`;
  const device = join(await folder(diskFolder()), name); // not in /dev, where files in memory are, so it is shown as it is
  await promisify(execFile)("mknod", ["--mode=600", device, "c", "1", "5"]);
  const jail = [
    "--root",
    await folder(),
    "--uid",
    "200000",
    ...PLACES,
    "--device",
    device,
    "--",
    "/usr/bin/echo",
    "it runs",
  ];
  await expect(promisify(execFile)(JAIL_LAUNCHER, jail)).rejects.toThrow(`opening ${device}: Permission denied`);
});

test("a program outside of /usr brings its libraries and data along, and nothing else", async () => {
  const place = await folder();
  await mkdir(join(place, "opt/bin"), { recursive: true });
  for (const name of ["opt/bin/qemu", "qemu"]) await writeFile(join(place, name), "", { mode: 0o755 });
  await symlink(join(place, "opt/bin/qemu"), join(place, "link"));
  expect(await findProgram(join(place, "link"))).toBe(join(place, "opt/bin/qemu"));
  for (const name of ["opt/lib", "opt/share/qemu", "opt/.ssh"]) await mkdir(join(place, name), { recursive: true });
  const { read } = await hostPlaces(join(place, "opt/bin/qemu"));
  const own = ["opt/bin/qemu", "opt/lib", "opt/share/qemu"].map((name) => join(place, name));
  expect(read.filter((path) => path.startsWith(place))).toEqual(own);
  expect((await hostPlaces(join(place, "qemu"))).read).toContain(join(place, "qemu"));
  expect((await hostPlaces("/usr/bin/qemu")).read).toContain("/usr");
});

/** The files of cgroup2 that matter here, in an ordinary directory. */
async function cgroupMount(controllers: string): Promise<string> {
  const mount = await folder();
  await writeFile(join(mount, "cgroup.controllers"), controllers);
  await writeFile(join(mount, "cgroup.subtree_control"), "");
  return mount;
}

test("control groups: why there are none", async () => {
  expect(await Cgroups.open("/data", await folder())).toMatch(/is not a cgroup2 file system$/);
  expect(await Cgroups.open("/data", await cgroupMount("cpuset io"))).toBe(
    "the host's control groups lack cpu, memory, pids",
  );
});

test("control groups: one for each start, in a directory for the data directory, and nothing of it stays", async () => {
  const mount = await cgroupMount("cpuset cpu io memory pids");
  const groups = await Cgroups.open("/data", mount);
  if (typeof groups === "string") throw new Error(groups);
  const [one, other] = [await groups.make("0f", {}), await groups.make("0f", { "pids.max": "256" })];
  expect(one).not.toBe(other);
  expect(await readFile(join(other, "pids.max"), "utf8")).toBe("256");
  await groups.remove(one);
  expect(await groups.of(process.pid)).toBeUndefined();
  const [parent = ""] = (await readdir(mount)).filter((name) => name.startsWith("hibernaut-"));
  expect(await readdir(join(mount, parent))).toEqual([expect.stringMatching(/^0f\./), "cgroup.subtree_control"]);
});
