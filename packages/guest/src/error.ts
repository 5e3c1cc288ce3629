/** The guest refused something, or its channel closed. */
export class GuestError extends Error {
  override name = "GuestError";
}
