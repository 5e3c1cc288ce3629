/** Variables in the values of variables, as in a Dockerfile: `$NAME`, `${NAME}`, and `\$` for the sign itself. Pure. */

const VARIABLE = /\\\$|\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})/g;

/** The names of the variables that a value has, each once. */
export function variablesIn(values: readonly string[]): string[] {
  const found = values.flatMap((value) =>
    [...value.matchAll(VARIABLE)].flatMap(([, plain, braced]) => plain ?? braced ?? []),
  );
  return [...new Set(found)];
}

/**
 * Returns the value with what its variables have; one that is not there is empty. Throws `tooLong` before the value has more
 * than `most` characters: a few variables that name each other make gigabytes.
 */
export function expanded(
  value: string,
  known: ReadonlyMap<string, string>,
  { most, tooLong }: { most: number; tooLong: Error },
): string {
  let length = value.length;
  return value.replace(VARIABLE, (whole, plain?: string, braced?: string) => {
    const name = plain ?? braced;
    const has = name === undefined ? "$" : (known.get(name) ?? "");
    length += has.length - whole.length;
    if (length > most) throw tooLong;
    return has;
  });
}
