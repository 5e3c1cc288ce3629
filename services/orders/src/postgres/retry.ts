import { DatabaseUnavailableError } from "../storage.ts";
import { faultOf } from "./faults.ts";

/**
 * Runs an operation, and once more, never twice more, when the database was at fault. The connections that failed are
 * given up by whoever lent them, so that the second attempt has a new one.
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
