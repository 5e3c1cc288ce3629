/** What the base image of sandboxes has, as Debian's packages. */

/** A package, and what it is there for. */
interface BasePackage {
  name: string;
  why: string;
}

/**
 * The packages in addition to Debian's essential ones and apt. Left out on purpose:
 *
 * - `npm`: Debian splits it into 350 packages, which make four times as many files and double the time of a build;
 * - `python3-pip`: 28 MB; a sandbox gets it with `sudo apt-get install python3-pip`.
 */
export const BASE_PACKAGES: readonly BasePackage[] = [
  { name: "bash", why: "the shell of commands and terminals" },
  { name: "ca-certificates", why: "HTTPS, for every program" },
  { name: "coreutils", why: "what scripts take for granted" },
  { name: "curl", why: "downloads" },
  { name: "git", why: "repositories" },
  { name: "iproute2", why: "ss, with which E2B's clients wait until a port is open" },
  { name: "nodejs", why: "runs JavaScript" },
  { name: "procps", why: "ps, kill and top, to see what runs" },
  { name: "python-is-python3", why: "agents write `python`" },
  { name: "python3", why: "runs Python" },
  { name: "sudo", why: "lets the user install more" },
];

/** The user that works in sandboxes, as in E2B's `base` template. May do everything with sudo, without a password. */
export const BASE_USER = { name: "user", uid: 1000, home: "/home/user", shell: "/bin/bash" } as const;

/** Where every user finds programs. */
export const BASE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
export const BASE_LOCALE = "C.UTF-8";
