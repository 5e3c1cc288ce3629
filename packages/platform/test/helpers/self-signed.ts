/** Certificates that sign themselves, in the files that the proxy reads. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface SelfSigned {
  /** The files, and what is in the certificate's one. */
  certFile: string;
  keyFile: string;
  cert: string;
}

/**
 * Makes `<file>.crt` and `<file>.key` in the directory, for the hostnames: `_.example.org.crt` is usual for `*.example.org`.
 */
export function selfSigned(folder: string, file: string, names: readonly string[]): SelfSigned {
  const [certFile, keyFile] = [join(folder, `${file}.crt`), join(folder, `${file}.key`)];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
  const subject = ["-subj", `/CN=${names[0] ?? ""}`];
  const sans = ["-addext", `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}`];
  const files = ["-keyout", keyFile, "-out", certFile];
  execFileSync("openssl", ["req", "-x509", ...curve, "-nodes", "-days", "2", ...subject, ...sans, ...files], {
    stdio: "ignore",
  });
  return { certFile, keyFile, cert: readFileSync(certFile, "utf8") };
}
