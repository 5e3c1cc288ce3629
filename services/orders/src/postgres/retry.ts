import { DatabaseUnavailableError } from "../storage.ts";
import { faultOf } from "./faults.ts";

/**
 * Runs an operation, and exactly once more when the database was at fault. The lender drops connections that failed, so
 * the second attempt gets a new one.
 */
export async function retryOnce<T>(attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    if (faultOf(error) === undefined) throw error;
  }
  try {
    return await attempt();
  } catch (error) {
    if (faultOf(error) === undefined) throw error;
    throw new DatabaseUnavailableError("The database does not answer.", { cause: error });
  }
}
