/**
 * Leases and metadata from the command line.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { freshCli } from "./helpers.ts";

const cli = freshCli();
const run = (words: string, env: Record<string, string> = {}) => cli.hibernaut(words, env);

test("a lease is taken, shown, used, renewed and given back, with its nonce in the environment", async () => {
  await run("machine create app:1 --name web-1");
  expect(await run("machine lease show web-1")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/lease not found/),
  });
  const taken = await run("machine lease take web-1 --ttl 5m --description nightly --json");
  const { nonce, expires_at: end } = JSON.parse(taken.stdout) as { nonce: string; expires_at: string };
  const mine = { HIBERNAUT_LEASE_NONCE: nonce };
  const shown = await run("machine lease show web-1");
  expect(shown.stdout).toMatch(/^for +nightly$/m);
  const status = await run("machine status web-1");
  expect(status.stdout).toMatch(/^lease +token \w+ \(nightly\) until .*: nobody else changes the machine$/m);
  for (const { stdout } of [shown, status, await run("machine status web-1 --json"), await run("machine list --json")])
    expect(stdout).not.toContain(nonce);
  for (const words of ["cordon web-1", "destroy web-1", "lease take web-1", "lease release web-1"]) {
    const refused = await run(`machine ${words}`);
    expect(refused, words).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/has a lease on machine.*lease clear/s),
    });
  }
  expect((await run("machine cordon web-1", mine)).code).toBe(0);
  const renewed = JSON.parse((await run("machine lease take web-1 --ttl 1h --json", mine)).stdout);
  expect(renewed).toMatchObject({ nonce, description: "nightly" });
  expect(Date.parse(renewed.expires_at)).toBeGreaterThan(Date.parse(end));
  expect((await run("machine lease release web-1", mine)).code).toBe(0);
  expect((await run("machine lease take web-1")).stdout).toMatch(/export HIBERNAUT_LEASE_NONCE=[0-9a-f]{32}$/m);
  expect((await run("machine lease clear web-1")).code).toBe(0);
  expect((await run("machine uncordon web-1")).code).toBe(0);
  expect((await run("machine status web-1")).stdout).not.toMatch(/^lease/m);
  expect(JSON.parse((await run("machine status web-1 --json")).stdout)).toMatchObject({ lease: null });
});

test("metadata are shown, set and removed, and limit a list", async () => {
  await run("machine create app:1 --name web-1 --metadata team=search");
  await run("machine create app:1 --name web-2 --metadata team=shop");
  const set = await run("machine metadata set web-1 build=a=b team=find");
  expect(set.stdout).toMatch(/^build +a=b$/m);
  expect((await run("machine metadata show web-2")).stdout).toMatch(/^team +shop$/m);
  const names = async (options: string) =>
    JSON.parse((await run(`machine list ${options} --json`)).stdout).map(({ name }: { name: string }) => name);
  expect(await names("--metadata team=find --metadata build=a=b --state created,running")).toEqual(["web-1"]);
  expect(await names("--state stopped")).toEqual([]);
  expect((await run("machine list --metadata team=none")).stdout).toContain("has no such machines");
  expect(await run("machine list --state sleeping")).toMatchObject({ code: 2 });
  expect((await run("machine metadata unset web-1 build team none")).stdout).toContain("has no metadata");
  for (const words of ["set web-1 team", "unset web-1 team=find", "set web-1"])
    expect(await run(`machine metadata ${words}`), words).toMatchObject({ code: 2 });
});
