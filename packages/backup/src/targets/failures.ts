/** What restic's complaints mean, in our words. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";

/** Longer complaints don't explain a failure better. Characters. */
const MAX_SHOWN = 400;

/** Whose complaints they are. */
export interface Asked {
  /** The place, as people write it. It has no credentials in it. */
  place: string;
  /** What was being done, as in "The backup could not be stored". */
  what: string;
}

type Rule = [complaint: RegExp, explain: (match: RegExpExecArray, asked: Asked) => Explained];
type Explained = ["unavailable" | "failed_precondition" | "resource_exhausted", why: string];

/** restic's words for "there is nothing at this place", by kind of place. Anything else may hide a repository. */
const ABSENT = [
  // a directory
  /unable to open config file: stat .*: no such file or directory/,
  // S3
  /unable to open config file: Stat: (?:The specified key does not exist|The specified bucket does not exist|NoSuchBucket|NoSuchKey)/i,
  // SFTP
  /unable to open config file: (?:Lstat|Stat|lstat|stat): file does not exist/,
];

/** The server has no room. */
const FULL =
  /no space left on device|disk quota exceeded|QuotaExceeded|Insufficient ?Storage|XMinioStorageFull|exceeds quota|EntityTooLarge|507 Insufficient/i;
/** The server does not know the credentials, or they may not do this. */
const REFUSED =
  /Access ?Denied|InvalidAccessKeyId|SignatureDoesNotMatch|request signature we calculated|InvalidSecurity|403 Forbidden|Permission denied|permission denied|Access Key Id/i;
/** What restic says when it is about to try the same again. */
const AGAIN = /returned error, retrying after/;

const RULES: Rule[] = [
  [
    /wrong password or no key found/,
    (_, { place }) => [
      "failed_precondition",
      `${place} has a repository, and this is not its key. Nothing was changed there. Use the key that was shown when the repository was made`,
    ],
  ],
  [
    /repository is already locked (?:exclusively )?by (PID \d+ on \S+)/,
    ([, who = ""], { place }) => [
      "unavailable",
      `${place} is in use by ${who}. Try again when that has ended. If it ended without removing its lock, remove that with \`restic unlock\``,
    ],
  ],
  [FULL, (_, { place }) => ["resource_exhausted", `${place} is full. Free some space there, or keep fewer backups`]],
  [
    /read-only file system/i,
    (_, { place }) => [
      "failed_precondition",
      `the platform may not write to ${place}. If systemd runs it, name the directory in ReadWritePaths: systemctl edit hibernaut`,
    ],
  ],
  [
    /RequestTimeTooSkewed|request time and the current time is too large/i,
    (_, { place }) => ["unavailable", `the clock of this host and that of ${place} differ too much. Set the clock`],
  ],
  [
    /Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED/,
    (_, { place }) => [
      "failed_precondition",
      `${place} is not the server that it was: its host key has changed. If that is meant to be so, remove the server's line from backup-known-hosts in the data directory`,
    ],
  ],
  [
    REFUSED,
    (_, { place }) => [
      "failed_precondition",
      `${place} refuses the access. Check the credentials, and what they may do there`,
    ],
  ],
  // Before damage: what could not be fetched looks like it.
  [
    /connection refused|no such host|i\/o timeout|connection reset|network is unreachable|no route to host|TLS handshake|x509|Connection closed|Connection timed out|Could not resolve hostname|50[0234] [A-Z][a-z]+|ServiceUnavailable|SlowDown|context deadline|internal error\. Please try again/i,
    unreachable,
  ],
  [
    /ciphertext verification failed|hash mismatch|does not match id|pack ID does not match|Pack .* contains|unexpected pack|not found in index|id .* not found in repository|invalid data returned|missing blob|errors were found|contains errors|number of chunks/i,
    (_, { place }) => [
      "failed_precondition",
      `what is stored at ${place} is damaged. Backups there may be lost: add another target and back up to it now`,
    ],
  ],
  [/unexpected EOF|broken pipe|server misbehaving|sftp session|\bEOF\b/, unreachable],
];

function unreachable(_: RegExpExecArray, { place }: Asked): Explained {
  return ["unavailable", `${place} cannot be reached, or the connection was cut. Try again later`];
}

/** Whether restic says that there is no repository at the place, and nothing that hides one. */
export function saysAbsent(stderr: string): boolean {
  return ABSENT.some((pattern) => pattern.test(stderr));
}

/**
 * Whether restic tries something again and again that cannot succeed before someone does something about it. By itself, it gives up
 * after a quarter of an hour.
 */
export function isHopeless(stderr: string): boolean {
  return stderr.split("\n").some((line) => AGAIN.test(line) && (FULL.test(line) || REFUSED.test(line)));
}

/** Returns the error that explains what restic complained about. */
export function resticFailure(stderr: string, asked: Asked): HibernautError {
  if (saysAbsent(stderr)) {
    const why = `there is no repository at ${asked.place}. If it is a disk that has to be mounted, mount it; otherwise add the target again`;
    return failure(asked, ["failed_precondition", why], stderr);
  }
  for (const [complaint, explain] of RULES) {
    const match = complaint.exec(stderr);
    if (match !== null) return failure(asked, explain(match, asked), stderr);
  }
  return failure(asked, ["unavailable", shown(stderr) || "restic ended without a reason"], stderr);
}

/** Returns the error for a restic that is not there. */
export function resticMissing(program: string): HibernautError {
  const message = `Backups to targets need restic, and ${program} is not installed. Install it: apt-get install restic`;
  return new HibernautError("failed_precondition", message);
}

function failure({ what, place }: Asked, [code, why]: Explained, stderr: string): HibernautError {
  return new HibernautError(code, `${what}: ${why}.`, { place, restic: shown(stderr) });
}

/** One line without control characters, which a server could have sent. */
function shown(stderr: string): string {
  const text = stderr.replace(/[\p{Cc}\s]+/gu, " ").trim();
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}...`;
}
