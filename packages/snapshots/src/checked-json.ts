/** JSON that carries its own checksum, so that a changed bit anywhere in it is noticed. */
import { createHash } from "node:crypto";

/** Writes `value`, an object without a key `sha256`, and the SHA-256 of what was written. */
export function checkedJson(value: object): string {
  return `${JSON.stringify({ ...value, sha256: sha256(JSON.stringify(value)) })}\n`;
}

/** Reads what {@link checkedJson} wrote. Returns undefined when it is not exactly that, down to the last space. */
export function readCheckedJson(text: string): object | undefined {
  try {
    const { sha256: _, ...value } = JSON.parse(text) as Record<string, unknown>;
    return checkedJson(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
