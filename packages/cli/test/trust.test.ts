/** The CLI and a platform whose certificate a private authority signed. */
import { execFile, execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { startApi } from "../../api/test/helpers.ts";
import { openTempFolder } from "../../platform/test/helpers/temp.ts";

const CLI = join(import.meta.dirname, "../bin/hibernaut.js");

let folder: string;
const at = (name: string) => join(folder, name);

function sign(name: string, san: string): void {
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  if (name === "ca")
    openssl("req", "-x509", ...ec, "-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt");
  openssl("req", ...ec, "-subj", `/CN=${name}`, "-keyout", `${name}-leaf.key`, "-out", `${name}.csr`);
  writeFileSync(at("san"), `subjectAltName=${san}\n`);
  const by = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san"];
  openssl("x509", "-req", "-in", `${name}.csr`, ...by, "-out", `${name}-leaf.crt`);
}

beforeAll(async () => {
  const made = await openTempFolder("trust");
  folder = made.path;
  sign("ca", "IP:127.0.0.1");
  sign("other", "DNS:other.example.com");
  return made.dispose;
});

async function platform(name: string) {
  const server = await startApi({ tls: { cert: at(`${name}-leaf.crt`), key: at(`${name}-leaf.key`) } });
  onTestFinished(() => server.close());
  const { url, token } = server;
  return (args: string[], more: Record<string, string> = {}): Promise<{ out: string; err: string }> => {
    const env = { ...process.env, HIBERNAUT_API_URL: url, HIBERNAUT_API_TOKEN: token, ...more };
    return new Promise((resolve) => {
      execFile(process.execPath, [CLI, ...args], { env }, (_error, out, err) => resolve({ out, err }));
    });
  };
}

test("without the authority, the CLI says what to set; with it, it works", async () => {
  const cli = await platform("ca");
  const refused = await cli(["apps", "list"]);
  expect(refused.err).toMatch(/is signed by an authority that is not known here \(\w+\)\. Set HIBERNAUT_API_CA/);
  const trusted = { HIBERNAUT_API_CA: at("ca.crt") };
  expect(await cli(["apps", "create", "shop"], trusted)).toMatchObject({
    out: expect.stringContaining("Created app shop"),
  });
  // Files and commands have connections of their own.
  const exec = await cli(["machine", "exec", "none", "--app", "shop", "--", "id"], trusted);
  expect(exec.err).toContain("has no machine none");
});

test("a certificate for another name, and a file that is not a certificate, are told apart", async () => {
  const cli = await platform("other");
  const wrong = await cli(["apps", "list"], { HIBERNAUT_API_CA: at("ca.crt") });
  expect(wrong.err).toContain("is for other names");
  const missing = await cli(["apps", "list"], { HIBERNAUT_API_CA: at("none.crt") });
  expect(missing.err).toContain("which cannot be read (ENOENT)");
  writeFileSync(at("junk"), "junk");
  expect((await cli(["apps", "list"], { HIBERNAUT_API_CA: at("junk") })).err).toContain("not a certificate in PEM");
});

test("http to a platform with TLS, and https to one without, are explained", async () => {
  const cli = await platform("ca");
  const server = await startApi();
  onTestFinished(() => server.close());
  const plain = await cli(["apps", "list"], { HIBERNAUT_API_URL: server.url.replace("http:", "https:") });
  expect(plain.err).toContain("does not serve TLS");
});
