/**
 * Texts of others on the user's terminal. What apps print, and what guests say in reasons and checks, may have sequences that
 * write the clipboard, hide lines or rename the window. Control characters are therefore shown, not sent, except for
 * colours, which end with their line. Sessions of the user's own, such as `machine console`, are not changed.
 */

/** All but tab and newline: C0, delete, and C1, which terminals take for ESC and another character. */
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
/** A colour or another style of text. It moves nothing, and hides nothing but what has it. */
const STYLE = /(\u001b\[[\d;]{0,40}m)/;
/** The styles of `style()`, which ends them itself. */
const OWN = /^\u001b\[(?:1|2|22|31|32|33|39)m$/;
const RESET = "\u001b[0m";

/** The text with its control characters as JSON writes them: `\u001b`. A JSON document stays one. */
export function visible(text: string): string {
  return text.replace(CONTROL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** What may be written to the stream: on a terminal, nothing but text and colours. */
export function shown(text: string, stream: Pick<NodeJS.WriteStream, "isTTY">): string {
  return stream.isTTY ? text.split("\n").map(shownLine).join("\n") : text;
}

function shownLine(line: string): string {
  const parts = line.split(STYLE);
  const isStyle = (index: number) => index % 2 === 1;
  const ends = parts.some((part, index) => isStyle(index) && part !== RESET && !OWN.test(part)) ? RESET : "";
  return parts.map((part, index) => (isStyle(index) ? part : visible(part))).join("") + ends;
}
