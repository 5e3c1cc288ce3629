/** What a health check says about a machine. */

/** The latest result of one check. */
export interface CheckResult {
  name: string;
  /** `warning`: the check has not passed yet, and its grace period is not over. */
  status: "passing" | "warning" | "critical";
  output: string;
  /** RFC 3339. */
  updated_at: string;
}
