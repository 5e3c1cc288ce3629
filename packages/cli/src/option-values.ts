/** Values of options, as the API takes them. */
export { given } from "@hibernaut/lib/given";

/** Values that are repeated, separated by commas, or both. */
export function separated(values: readonly string[]): string[] {
  return values.flatMap((value) => value.split(",")).map((word) => word.trim());
}
