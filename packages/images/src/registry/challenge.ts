/** Parses `WWW-Authenticate`, which says how to authenticate (RFC 9110, section 11.6.1). Pure. */

/** One way to authenticate. */
export interface Challenge {
  /** In lowercase: `basic`, `bearer`. */
  scheme: string;
  /** By name, in lowercase. */
  parameters: ReadonlyMap<string, string>;
}

const SEPARATORS = /[\s,]*/y;
/** A word before an equals sign is not a scheme: it is part of a parameter that could not be parsed. */
const SCHEME = /[\w!#$%&'*+.^`|~-]+(?=[\s,]|$)/y;
/** `name=token` or `name="text"`. Values without quotes may be URLs, because some registries send them. */
const PARAMETER = /[\s,]*([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",=][^\s",]*))\s*(?=,|$)/y;
/** What other schemes, such as Negotiate, have in place of parameters. */
const TOKEN68 = /\s+[\w.~+/-]+=*\s*(?=,|$)/y;

/**
 * Returns the challenges in a header, in order. The list ends before the first one that cannot be parsed.
 *
 * @example
 * parseChallenges('Bearer realm="https://auth.example/token",service="registry"');
 */
export function parseChallenges(header: string): Challenge[] {
  const challenges: Challenge[] = [];
  let at = 0;
  const read = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(header);
    if (match) at = pattern.lastIndex;
    return match;
  };
  for (;;) {
    read(SEPARATORS);
    const scheme = read(SCHEME)?.[0];
    if (scheme === undefined) return challenges;
    const parameters = new Map<string, string>();
    // The equals sign distinguishes a parameter from the next scheme.
    for (let found = read(PARAMETER); found; found = read(PARAMETER)) {
      const [, name = "", quoted, plain = ""] = found;
      parameters.set(name.toLowerCase(), quoted === undefined ? plain : quoted.replace(/\\(.)/g, "$1"));
    }
    if (parameters.size === 0) read(TOKEN68);
    challenges.push({ scheme: scheme.toLowerCase(), parameters });
  }
}
