/** Where the packages of the base image come from: the same mirrors as the host's. Pure. */

/** The distribution of the base image. */
export interface Distribution {
  /** `debian` or `ubuntu`. */
  id: string;
  /** Its suite, such as `bookworm`. */
  suite: string;
}

interface Source {
  uris: string[];
  suites: string[];
  components: string[];
  signedBy: string | undefined;
}

/** What apt on any other host can make. */
const FALLBACK: Distribution = { id: "debian", suite: "stable" };

/** The distribution of the host, as /etc/os-release tells; Debian's `stable` on one that is neither Debian nor Ubuntu. */
export function distributionOf(osRelease: string): Distribution {
  const value = (name: string) => new RegExp(`^${name}="?([^"\n]*)"?$`, "m").exec(osRelease)?.[1] ?? "";
  const [id, suite] = [value("ID"), value("VERSION_CODENAME")];
  return (id === "debian" || id === "ubuntu") && suite !== "" ? { id, suite } : FALLBACK;
}

/**
 * The lines of a sources.list for the image, from the files of apt on the host: the texts of those in the one-line format,
 * and of those in the deb822 format. Only the distribution's own sources are taken, because an image has no other keys and
 * a sandbox must be able to update itself. Empty when the host has none for the suite; mmdebstrap then knows the usual ones.
 */
export function sourceLines(
  { oneLine, deb822 }: { oneLine: readonly string[]; deb822: readonly string[] },
  { id, suite }: Distribution,
): string[] {
  const suites = [suite, `${suite}-updates`, `${suite}-security`];
  const keyring = new RegExp(`^/usr/share/keyrings/${id}-archive-keyring\\.(?:gpg|pgp)$`);
  const lines = [...oneLine.flatMap(readOneLine), ...deb822.flatMap(readDeb822)]
    .filter(({ components, signedBy }) => components.includes("main") && keyring.test(signedBy ?? keyringOf(id)))
    .flatMap((source) => source.uris.flatMap((uri) => source.suites.map((of) => ({ ...source, uri, of }))))
    // The lists of `mirror+file:` are files of the host, and so are the packages of `file:`.
    .filter(({ uri, of }) => /^https?:\/\//.test(uri) && suites.includes(of))
    .map(({ uri, of, components, signedBy }) => {
      const options = signedBy === undefined ? "" : `[signed-by=${signedBy}] `;
      return `deb ${options}${uri} ${of} ${components.join(" ")}`;
    });
  return lines.some((line) => line.includes(` ${suite} `)) ? [...new Set(lines)] : [];
}

function keyringOf(id: string): string {
  return `/usr/share/keyrings/${id}-archive-keyring.gpg`;
}

function readOneLine(text: string): Source[] {
  return text.split("\n").flatMap((line) => {
    const found = /^\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s+([^#]+)/.exec(line);
    if (found === null) return [];
    const [, options = "", uri = "", suite = "", components = ""] = found;
    const signedBy = /(?:^|\s)signed-by=(\S+)/i.exec(options)?.[1];
    return [{ uris: [uri], suites: [suite], components: words(components), signedBy }];
  });
}

function readDeb822(text: string): Source[] {
  const stanzas = text.replaceAll(/^#.*\n?/gm, "").split(/\n\s*\n/);
  return stanzas.map(fieldsOf).flatMap((fields) => {
    const list = (name: string) => words(fields.get(name) ?? "");
    if (!list("types").includes("deb") || /^no$/i.test(fields.get("enabled") ?? "")) return [];
    const source = { uris: list("uris"), suites: list("suites"), components: list("components") };
    return [{ ...source, signedBy: fields.get("signed-by") }];
  });
}

/** The fields of a stanza, with their names in lower case. Lines that begin with a space continue the last one. */
function fieldsOf(stanza: string): Map<string, string> {
  const lines = stanza.replaceAll(/\n[ \t]+/g, " ").split("\n");
  return new Map(
    lines.flatMap((line) => {
      const [, name = "", value = ""] = /^([\w-]+):\s*(.*?)\s*$/.exec(line) ?? [];
      return name === "" ? [] : [[name.toLowerCase(), value] as const];
    }),
  );
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
