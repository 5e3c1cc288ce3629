/**
 * Makes texts equal that differ only in case: `fold("STRASSE") === fold("Straße")`, `fold("ΟΔΟΣ") === fold("οδος")`.
 *
 * Databases disagree about letters beyond ASCII, so the service folds names itself and stores the folded name next to the
 * name; a search compares folded texts byte by byte. Composed first, so that an `é` typed as two code points is
 * the same `é`. Down, up and down again, because some letters become equal only then: `ẞ` and `ß`, `ß` and `SS`. The final
 * sigma is replaced last: `toLowerCase` makes it depend on its neighbors, which differ in a part of a name.
 */
export function fold(text: string): string {
  return text.normalize("NFC").toLowerCase().toUpperCase().toLowerCase().replaceAll("ς", "σ").normalize("NFC");
}
