/** The guest refused something, or its channel ended. */
export class GuestError extends Error {
  override name = "GuestError";
}
