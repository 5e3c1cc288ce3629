/** A proxy that serves TLS, with a certificate that signs itself. */
import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import type { Limits } from "../../src/http/limits.ts";
import { type App, type Rig, type RigOptions, rig } from "./helpers.ts";

/** A private key and its certificate, as PEM. */
export interface Pair {
  key: string;
  cert: string;
}

/** A certificate that signs itself. */
export function certificate(name: string, more: string[] = []): Pair {
  const args = [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-days",
    "2",
    ...more,
  ];
  const text = execFileSync("openssl", [...args, "-subj", `/CN=${name}`, "-keyout", "-", "-out", "-"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const at = text.indexOf("-----BEGIN CERTIFICATE-----");
  return { key: text.slice(0, at), cert: text.slice(at) };
}

/** A running proxy in front of the app, over TLS with HTTP/2. `cert` is its certificate for 127.0.0.1 and `shop.test`. */
export async function secured(
  app: App,
  limits: Partial<Limits> = {},
  more: Partial<RigOptions> = {},
): Promise<Rig & { cert: string }> {
  const folder = await tempFolder("certificates");
  const { key, cert } = certificate("shop.test", ["-addext", "subjectAltName=DNS:shop.test,IP:127.0.0.1"]);
  await writeFile(join(folder, "default.key"), key);
  await writeFile(join(folder, "default.crt"), cert);
  return { ...(await rig({ app, limits, tls: { folder }, ...more })), cert };
}
