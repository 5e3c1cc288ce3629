/** What a request to the inside of a sandbox asks for. */
import type { IncomingMessage } from "node:http";
import { Refusal } from "../failure.ts";

/** Returns its path and query, as a URL of no host. Throws a {@link Refusal} with 400 for those that are none, and without a host. */
export function targetOf({ url = "/", headers: { host = "" } }: Pick<IncomingMessage, "url" | "headers">): URL {
  const isPath = url.startsWith("/");
  // Those who read it next would fail at such a host, which is not theirs to judge.
  if (URL.canParse(`http://${host}`) && URL.canParse(isPath ? `http://sandbox${url}` : url))
    return new URL(isPath ? `http://sandbox${url}` : url);
  throw new Refusal(
    400,
    "The address of the request cannot be read: `Host` is a name, and the path begins with a slash.",
  );
}
