/** What is stored about certificates that the platform gets by itself. */

/** An order that failed. Times are RFC 3339. */
export interface OrderFailure {
  /** A sentence. */
  reason: string;
  /** How many attempts in a row have failed. */
  attempts: number;
  at: string;
  /** When the next attempt is due. */
  next: string;
  /** Whether the authority named that time: no attempt is made before it, even if a user asks. */
  held: boolean;
}
