/** What a machine's QEMU finds in its jail, of what an earlier one had there. */
import { mkdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import type { VmmSpec } from "../../src/contract.ts";
import { Jail } from "../../src/qemu/jail/jail.ts";

const NOWHERE = { read: [], write: [], devices: [], links: {} };

test("what an earlier QEMU wrote in the place of its devices' state takes no space, and a link there leads nowhere", async () => {
  const folder = await tempFolder("prepare");
  const at = (name: string) => join(folder, name);
  for (const name of ["memory", "layer", "image", "kernel", "initrd", "secret"]) await writeFile(at(name), "content");
  await mkdir(at("run"));
  const spec = {
    ...{ machineId: "0".repeat(14), cpus: 1, memoryMb: 128, volumes: [], borrowed: true },
    ...{ memory: at("memory"), layer: at("layer"), image: at("image"), consoleLog: at("console"), runDir: at("run") },
    bundle: { kernel: at("kernel"), initrd: at("initrd") },
    network: { mode: "user", address: "127.0.0.11", mac: "", ports: [] },
  } as unknown as VmmSpec;
  const jail = new Jail({ launcher: "launcher", program: "qemu", host: NOWHERE });
  const sockets = { qmp: at("run/qmp.sock"), agent: at("run/agent.sock") };
  await writeFile(at("run/devices"), "a lot");
  await jail.prepare(spec, sockets);
  expect((await stat(at("run/devices"))).size).toBe(0);
  await rm(at("run/devices"));
  await symlink(at("secret"), at("run/devices"));
  await expect(jail.prepare(spec, sockets)).rejects.toMatchObject({ code: "ELOOP" });
  expect(await readFile(at("secret"), "utf8")).toBe("content");
});
