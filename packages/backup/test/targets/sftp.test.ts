/**
 * Backups on a server that is reached with SSH: a real `sshd` on a free port, with the user who runs the tests.
 *
 * @module-tag again
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { findTool } from "../../../../scripts/lib/test-tools.mjs";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { Home, patient, restore } from "./helpers.ts";

let home: Home;

beforeEach(async () => {
  home = await Home.open();
});
afterEach(() => home.close());

/** As root, `sshd` needs the user and the directory that Debian's package makes when it is installed. */
const isPossible = process.getuid?.() !== 0 || (await readFile("/etc/passwd", "utf8")).includes("\nsshd:");

interface Server {
  url: string;
  sshKey: string;
  folder: string;
  port: number;
}

function makeKey(file: string): void {
  execFileSync(findTool("ssh-keygen"), ["-q", "-t", "ed25519", "-N", "", "-f", file]);
}

/** Starts a server that lets one key in, and nobody do anything but SFTP. It has a new host key each time. */
async function startServer(at?: { folder: string; port: number }): Promise<Server & { stop(): Promise<void> }> {
  const folder = at?.folder ?? (await tempFolder("sftp"));
  const port = at?.port ?? (await freePort());
  const hostKey = join(folder, `host-${Math.random().toString(16).slice(2)}`);
  const userKey = join(folder, "user");
  makeKey(hostKey);
  if (!existsSync(userKey)) makeKey(userKey);
  if (process.getuid?.() === 0) await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
  const settings = {
    ...{ Port: port, ListenAddress: "127.0.0.1", HostKey: hostKey, AuthorizedKeysFile: `${userKey}.pub` },
    ...{ PidFile: "none", UsePAM: "no", StrictModes: "no", PermitRootLogin: "prohibit-password" },
    ...{ PasswordAuthentication: "no", Subsystem: "sftp internal-sftp", ForceCommand: "internal-sftp" },
  };
  const file = join(folder, "sshd_config");
  await writeFile(
    file,
    Object.entries(settings)
      .map(([name, value]) => `${name} ${value}\n`)
      .join(""),
  );
  const child: ChildProcess = spawn(findTool("sshd"), ["-D", "-e", "-f", file], { stdio: "ignore" });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  onTestFinished(stop);
  await vi.waitFor(() => answers(port), { timeout: 20_000 });
  const url = `sftp://${userInfo().username}@127.0.0.1:${port}${join(folder, "stored")}`;
  return { url, sshKey: await readFile(userKey, "utf8"), folder, port, stop };
}

function answers(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("data", () => resolve(socket.destroy() && undefined)).once("error", reject);
    socket.setTimeout(2000, () => socket.destroy(new Error("nobody says anything")));
  });
}

const TIMEOUT = { timeout: 300_000 };

test.skipIf(!isPossible)("an SFTP server alone gives the platform back", TIMEOUT, async () => {
  home.platform.apps.create("shop");
  const { url, sshKey } = await startServer();
  const target = await home.add({ url, sshKey });
  expect(await home.backUp()).toMatchObject({ state: "complete", error: null });
  expect(await readdir(await restore({ ...target, sshKey }))).toContain("hibernaut.db");
  const left = await readdir(join(home.world.folder, "backup-cache", "tmp"));
  expect(
    left.filter((name) => name.startsWith("ssh-")),
    "no private key is left behind",
  ).toEqual([]);
});

test.skipIf(!isPossible)("another key, or another server at the same address, is refused", TIMEOUT, async () => {
  const server = await startServer();
  const { url, folder, port } = server;
  makeKey(join(folder, "stranger"));
  const stranger = await readFile(join(folder, "stranger"), "utf8");
  await expect(home.add({ url, sshKey: stranger })).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/refuses the access/),
  });
  await home.add({ url, sshKey: server.sshKey });
  await server.stop();
  const failed = await home.backUp();
  expect(failed).toMatchObject({ state: "failed", error: { message: expect.stringMatching(/cannot be reached/) } });
  await startServer({ folder, port });
  await expect(home.targets.sets("disk", patient())).rejects.toThrow(/its host key has changed/);
});
