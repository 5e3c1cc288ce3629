/** Values of options, as the API takes them. */

/** The object without what is undefined: the options that were given. */
export function given<T extends object>(options: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as ReturnType<typeof given<T>>;
}

/** Values that are repeated, separated by commas, or both. */
export function separated(values: readonly string[]): string[] {
  return values.flatMap((value) => value.split(",")).map((word) => word.trim());
}
