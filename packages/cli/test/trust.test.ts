/** The CLI and a platform whose certificate a private authority signed. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeAuthority } from "./authority.ts";
import { startCli } from "./helpers.ts";

/** A platform whose certificate is for this name, and what signed it. */
async function platform(san?: string) {
  const authority = await makeAuthority();
  const cli = await startCli({ tls: authority.sign("api", san === undefined ? {} : { san }) });
  onTestFinished(() => cli.close());
  return { cli, folder: authority.folder, trusted: { HIBERNAUT_API_CA: authority.ca } };
}

test("without the authority, the CLI says what to set; with it, it works", async () => {
  const { cli, trusted } = await platform();
  const refused = await cli.hibernaut("apps list");
  expect(refused.stderr).toMatch(/is signed by an authority that is not known here \(\w+\)\. Set HIBERNAUT_API_CA/);
  expect((await cli.hibernaut("apps list", trusted)).stdout).toMatch(/^shop /m);
  // Files and commands have connections of their own.
  const exec = await cli.hibernaut("machine exec none -- id", trusted);
  expect(exec.stderr).toContain("has no machine none");
});

test("a certificate for another name, and a file that is not a certificate, are told apart", async () => {
  const { cli, folder, trusted } = await platform("DNS:other.example.com");
  writeFileSync(join(folder, "junk"), "junk");
  const failure = async (ca: string) => (await cli.hibernaut("apps list", { HIBERNAUT_API_CA: ca })).stderr;
  expect(await failure(trusted.HIBERNAUT_API_CA)).toContain("is for other names");
  expect(await failure(join(folder, "none.crt"))).toContain("which cannot be read (ENOENT)");
  expect(await failure(join(folder, "junk"))).toContain("not a certificate in PEM");
});

test("https to a platform without TLS is explained", async () => {
  const cli = await startCli();
  onTestFinished(() => cli.close());
  const plain = await cli.hibernaut("apps list", { HIBERNAUT_API_URL: cli.server.url.replace("http:", "https:") });
  expect(plain.stderr).toContain("does not serve TLS");
});
