/** An authority of a test's own, and certificates that it signs, as files. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { tempFolder } from "../../platform/test/helpers/temp.ts";

export interface Authority {
  folder: string;
  /** The authority's own certificate. */
  ca: string;
  /** Signs a certificate, for 127.0.0.1 and 2 days from now unless asked otherwise, and returns its files. */
  sign(name: string, options?: { days?: number; san?: string }): { cert: string; key: string };
  /** Runs openssl in the directory of the files. */
  openssl(...args: string[]): void;
}

export async function makeAuthority(): Promise<Authority> {
  const folder = await tempFolder("authority");
  const openssl = (...args: string[]) => void execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl("req", "-x509", ...ec, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt");
  const sign = (name: string, { days = 2, san = "IP:127.0.0.1" } = {}) => {
    writeFileSync(join(folder, "san"), `subjectAltName=${san}\n`);
    openssl("req", ...ec, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.csr`);
    const by = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", String(days), "-extfile", "san"];
    openssl("x509", "-req", "-in", `${name}.csr`, ...by, "-out", `${name}.crt`);
    return { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
  };
  return { folder, ca: join(folder, "ca.crt"), sign, openssl };
}
