/** Reads an address to listen at. Pure. */
import { UsageError } from "./failure.ts";

const MOST_PORT = 65_535;

/** Reads `127.0.0.1:7075` or `[::1]:7075`; port 0 is any free one. Throws a usage error for anything else. */
export function readAddress(text: string): { host: string; port: number } {
  const [, bracketed, plain = "", digits = ""] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === "" || port > MOST_PORT)
    throw new UsageError(`\`${text}\` is not an address to listen at. It looks like 127.0.0.1:7075, or [::1]:7075.`);
  return { host: bracketed ?? plain, port };
}
