/** Variables in the values of variables, as in a Dockerfile: `$NAME`, `${NAME}`, and `\$` for the sign itself. Pure. */

const VARIABLE = /\\\$|\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})/g;

/** The names of the variables that a value has, each once. */
export function variablesIn(values: readonly string[]): string[] {
  const found = values.flatMap((value) =>
    [...value.matchAll(VARIABLE)].flatMap(([, plain, braced]) => plain ?? braced ?? []),
  );
  return [...new Set(found)];
}

/** Returns the value with what its variables have; one that is not there is empty. */
export function expanded(value: string, known: ReadonlyMap<string, string>): string {
  return value.replace(VARIABLE, (_whole, plain?: string, braced?: string) => {
    const name = plain ?? braced;
    return name === undefined ? "$" : (known.get(name) ?? "");
  });
}
