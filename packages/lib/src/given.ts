/** The object without what is undefined: what was given. */
export function given<T extends object>(values: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as ReturnType<typeof given<T>>;
}
