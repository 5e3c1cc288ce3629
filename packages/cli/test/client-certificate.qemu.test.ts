/**
 * A real machine behind an API that asks clients for a certificate: commands, shells, files and ports through the CLI.
 *
 * @module-tag again
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { NOTHING_LEFT, Place } from "../../platform/test/helpers/served.ts";
import { shellImage } from "../../platform/test/helpers/shell-image.ts";
import { waitS } from "../../platform/test/helpers/slow.ts";
import { trustAuthorities } from "../src/tls.ts";
import { makeAuthority } from "./authority.ts";
import { environment, runCli } from "./real-cli.ts";

const CLI = join(import.meta.dirname, "../bin/hibernaut.js");

test("exec, console and cp reach a machine with a client certificate, and nothing does without", async () => {
  const authority = await makeAuthority();
  const [api, ann] = [authority.sign("api"), authority.sign("ann")];
  const tls = {
    HIBERNAUT_API_TLS_CERT: api.cert,
    HIBERNAUT_API_TLS_KEY: api.key,
    HIBERNAUT_API_TLS_CLIENT_CA: authority.ca,
  };
  // For the test's own client: its process has started, so no variable helps.
  await trustAuthorities({ file: authority.ca, from: "the test" });
  const clientCertificate = { cert: await readFile(ann.cert, "utf8"), key: await readFile(ann.key, "utf8") };
  const place = await Place.open(tls, undefined, { clientCertificate });
  onTestFinished(async () => expect(await place.close()).toEqual(NOTHING_LEFT));
  expect(place.served.apiUrl).toMatch(/^https:/);
  const config = { image: await shellImage(), init: { cmd: ["-c", "exec sleep 3600"] }, services: [] };
  const { machine_id: id } = await place.machine(config);

  const trusted = { HIBERNAUT_API_CA: authority.ca };
  const more = { ...trusted, HIBERNAUT_API_CLIENT_CERT: ann.cert, HIBERNAUT_API_CLIENT_KEY: ann.key };
  const start = (command: string, args: string[]) => {
    const child = spawn(command, args, { env: { ...environment(place), ...more }, timeout: waitS(60) * 1000 });
    const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { child, ended: ended.then(([out, err]) => ({ code: child.exitCode, out, err })) };
  };

  const command = ["machine", "exec", id, "--", "sh", "-c", "cat; echo said >&2; exit 7"];
  const exec = start(process.execPath, [CLI, ...command]);
  exec.child.stdin.end("from outside\n");
  expect(await exec.ended).toMatchObject({ code: 7, out: "from outside\n", err: expect.stringContaining("said") });

  const shell = start("script", ["-qefc", `"${process.execPath}" "${CLI}" machine console ${id}`, "/dev/null"]);
  shell.child.stdin.write("echo $((6 * 7)); exit 5\n");
  expect(await shell.ended).toMatchObject({ code: 5, out: expect.stringMatching(/^# 42\r?$/m) });

  const [there, back] = [join(authority.folder, "there"), join(authority.folder, "back")];
  await writeFile(there, "a file");
  expect(await runCli(place, ["machine", "cp", there, `${id}:/tmp/it`], { more })).toMatchObject({ code: 0 });
  expect(await runCli(place, ["machine", "cp", `${id}:/tmp/it`, back], { more })).toMatchObject({ code: 0 });
  expect(await readFile(back, "utf8")).toBe("a file");

  for (const args of [["machine", "list"], command]) {
    const { code, out, err } = await runCli(place, args, { more: trusted });
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/asks clients for a certificate/);
  }
});
