/** Programs of the host. */

/**
 * The environment to run them with. Those for administrators (`mkfs.ext4`, `ip`, `nft`) are in folders that users of
 * Debian do not have in their PATH.
 */
export function programEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env.PATH ?? ""}:/usr/sbin:/sbin` };
}
