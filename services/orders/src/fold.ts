/**
 * Makes texts that differ only in case equal: `fold("STRASSE") === fold("Straße")`, `fold("ΟΔΟΣ") === fold("οδος")`.
 *
 * Databases disagree about letters beyond ASCII, so neither is asked: each stores the folded name beside the
 * name, and a search compares folded texts byte by byte. Composed first, so that an `é` typed as two code points is
 * the same `é`. Down, up and down again, because some letters meet only there: `ẞ` and `ß`, then `ß` and `SS`. The final
 * sigma is undone last: `toLowerCase` makes it depend on the neighbours, and a part of a name has other neighbours.
 */
export function fold(text: string): string {
  return text.normalize("NFC").toLowerCase().toUpperCase().toLowerCase().replaceAll("ς", "σ").normalize("NFC");
}
