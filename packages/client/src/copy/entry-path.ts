/** Which names of an archive are accepted on this computer. The archive comes from a machine and is not trusted. Pure. */
import { ApiError } from "../error.ts";

/** The character that takes the place of bytes that are not UTF-8. */
const NOT_UTF8 = "\uFFFD";
const CONTROL = /\p{Cc}/u;

/** Returns the parts of an entry's path. Throws for a path that leads out of the directory, or that a terminal acts on. */
export function entryPath(name: string): string[] {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw refused(name, "leads out of the directory");
  checkText(name, name);
  return parts;
}

/** Throws for the target of a link that a terminal would act on. Where it leads is of no concern: links aren't followed. */
export function checkLink(name: string, target: string): void {
  checkText(name, target);
}

function checkText(name: string, text: string): void {
  if (CONTROL.test(text)) throw refused(name, "contains a control character");
  if (text.includes(NOT_UTF8)) throw refused(name, "is not valid UTF-8");
}

/** The error for an entry that is not accepted. */
export function refused(name: string, why: string): ApiError {
  const shown = JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}...` : name);
  const message = `The entry ${shown} ${why}, so the copy ended there. Copy the archive itself, as a stream, to look into it.`;
  return new ApiError({ code: "invalid_argument", message });
}
