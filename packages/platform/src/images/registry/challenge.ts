/** Reads `WWW-Authenticate`: what a registry wants to be shown (RFC 9110, section 11.6.1). Pure. */

/** One way to prove who we are. */
export interface Challenge {
  /** In lower case: `basic`, `bearer`. */
  scheme: string;
  /** Names in lower case. */
  parameters: ReadonlyMap<string, string>;
}

const SEPARATORS = /[\s,]*/y;
/** A word followed by an equals sign is none: it belongs to a parameter that could not be read. */
const SCHEME = /[\w!#$%&'*+.^`|~-]+(?=[\s,]|$)/y;
/** `name=token` or `name="text"`. Values without quotes may be URLs: some registries write them so. */
const PARAMETER = /[\s,]*([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",=][^\s",]*))\s*(?=,|$)/y;
/** What schemes other than ours put in place of parameters, e.g. Negotiate. */
const TOKEN68 = /\s+[\w.~+/-]+=*\s*(?=,|$)/y;

/**
 * The challenges of a header, in order. What cannot be read ends the list: nothing is guessed.
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
    // A parameter is told from the next scheme by its equals sign.
    for (let found = read(PARAMETER); found; found = read(PARAMETER)) {
      const [, name = "", quoted, plain = ""] = found;
      parameters.set(name.toLowerCase(), quoted === undefined ? plain : quoted.replace(/\\(.)/g, "$1"));
    }
    if (parameters.size === 0) read(TOKEN68);
    challenges.push({ scheme: scheme.toLowerCase(), parameters });
  }
}
