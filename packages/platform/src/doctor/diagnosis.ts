/** What the doctor says about one thing. */
import { messageOf } from "@hibernaut/lib/text";

/** The outcome of one check. */
export interface Diagnosis {
  name: string;
  /** `warn` means that the platform works, but not as well as it could. */
  status: "ok" | "warn" | "fail";
  /** What was found, for people. */
  found: string;
  /** A command that repairs the fault. */
  fix?: string;
}

/** Looks at one thing. If that fails, the reason is what was found, with the status and the fix of `fault`. */
export async function examine(
  name: string,
  fault: Omit<Diagnosis, "name" | "found">,
  look: () => Promise<Omit<Diagnosis, "name">>,
): Promise<Diagnosis> {
  try {
    return { name, ...(await look()) };
  } catch (error) {
    return { name, found: messageOf(error), ...fault };
  }
}
