/** An image's reference in the parts that Fly has. Pure. */

/** Where references without a registry lead. */
const DEFAULT_REGISTRY = "docker.io";

/** An image that is not of a registry, such as an archive, has the transport as its registry. */
export function imageRef({ ref, digest }: { ref: string; digest: string }) {
  const [named = "", pinned] = ref.split("@", 2);
  const local = /^(oci|oci-archive|docker-archive|docker-daemon|upload):(.*)$/.exec(named);
  const slash = named.indexOf("/");
  const first = slash < 0 ? "" : named.slice(0, slash);
  const hasRegistry = /[.:]|^localhost$/.test(first);
  const registry = local?.[1] ?? (hasRegistry ? first : DEFAULT_REGISTRY);
  const rest = local?.[2] ?? (hasRegistry ? named.slice(slash + 1) : named);
  const colon = rest.lastIndexOf(":");
  const isTagged = colon > rest.lastIndexOf("/");
  return {
    registry,
    repository: isTagged ? rest.slice(0, colon) : rest,
    tag: isTagged ? rest.slice(colon + 1) : "latest",
    digest: digest === "" ? (pinned ?? "") : digest,
  };
}
