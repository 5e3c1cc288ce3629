/** What the doctor says about one thing. */

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
