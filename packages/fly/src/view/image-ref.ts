/** An image's reference in the parts that Fly has. Pure. */

/** Where references without a registry lead. */
const DEFAULT_REGISTRY = "docker.io";
/** Images of files have a path, and of a file with one image no tag. */
const OF_FILES = /^(oci|oci-archive|docker-archive):/;
const OF_NAMES = /^(docker-daemon|upload):/;

/**
 * Clients write the parts together again, as `registry/repository:tag@digest`, and make a machine of that. An image that is not of a
 * registry, such as an archive, has its transport in front of the first part.
 */
export function imageRef({ ref, digest }: { ref: string; digest: string }) {
  const [named = "", pinned] = ref.split("@", 2);
  const transport = (OF_FILES.exec(named) ?? OF_NAMES.exec(named))?.[0] ?? "";
  const isFile = OF_FILES.test(named);
  const rest = named.slice(transport.length);
  const slash = rest.indexOf("/");
  const first = rest.slice(0, Math.max(slash, 0));
  const isSplit = slash >= 0 && (isFile || /[.:]|^localhost$/.test(first));
  const registry = isSplit ? first : isFile ? "." : DEFAULT_REGISTRY;
  const name = isSplit ? rest.slice(slash + 1) : rest;
  const colon = name.lastIndexOf(":");
  const isTagged = colon > name.lastIndexOf("/");
  return {
    registry: transport + registry,
    repository: isTagged ? name.slice(0, colon) : name,
    tag: isTagged ? name.slice(colon + 1) : isFile ? "" : "latest",
    digest: digest === "" ? (pinned ?? "") : digest,
  };
}
