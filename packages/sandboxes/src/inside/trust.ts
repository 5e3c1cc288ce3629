/** Has the programs of a sandbox trust the platform's authority, which their connections to some names end at. */
import type { CommandSpec, GuestCommand } from "@hibernaut/guest";
import { beginningOf } from "./guest.ts";

/** How long it may take, in milliseconds: a few lines of shell, on a busy host. */
const TRUST_MS = 30_000;
/** Where Debian and others keep certificates that an owner adds, from which their tools make the list of all again. */
const OWN = "/usr/local/share/ca-certificates/hibernaut-egress.crt";
const BUNDLE = "/etc/ssl/certs/ca-certificates.crt";

/** For programs that do not read the system's list. A program's own variables come before them. */
export const TRUST_ENV: Readonly<Record<string, string>> = {
  NODE_EXTRA_CA_CERTS: OWN,
  REQUESTS_CA_BUNDLE: BUNDLE,
  SSL_CERT_FILE: BUNDLE,
};

/** Adds the certificate to what is there. Safe to repeat. `$1` is the certificate, `$2` a line that only it has. */
const SCRIPT = `set -e
mkdir -p ${OWN.replace(/\/[^/]*$/, "")} ${BUNDLE.replace(/\/[^/]*$/, "")}
printf '%s' "$1" > ${OWN}
for list in ${BUNDLE} /etc/pki/tls/certs/ca-bundle.crt; do
  if [ "$list" = ${BUNDLE} ] || [ -e "$list" ]; then
    case "$(cat "$list" 2>/dev/null)" in *"$2"*) ;; *) printf '%s' "$1" >> "$list" ;; esac
  fi
done`;

/** Rejects with an error that says why it is not trusted. */
export async function trust(run: (spec: CommandSpec) => GuestCommand, certificate: string): Promise<void> {
  // The last full line of its text: the first ones are the same for all.
  const line = certificate.trim().split("\n").at(-3) ?? "";
  const command = run({
    args: ["/bin/sh", "-c", SCRIPT, "sh", certificate, line],
    user: "root",
    workdir: "/",
    timeoutMs: TRUST_MS,
  });
  command.stdout.resume();
  const said = beginningOf(command.stderr);
  const { code, failure } = await command.exit;
  if (code !== 0) throw new Error(failure ?? ((await said).toString("utf8").trim() || `the shell ended with ${code}`));
}
