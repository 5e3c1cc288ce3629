/** Decides whether an image is uploaded, or read by the platform. Pure. */

interface Situation {
  /** `--upload` or `--no-upload`. Undefined when neither was given. */
  asked: boolean | undefined;
  apiUrl: string;
  /** Whether the image is on this machine. */
  here: boolean;
}

/**
 * Whether to upload. Without a wish of the user: a platform at a loopback address is taken for one on this machine, which
 * reads the file itself. Any other is sent what is here; what is not can only be a path on its host.
 */
export function shouldUpload({ asked, apiUrl, here }: Situation): boolean {
  return asked ?? (here && !isLoopback(apiUrl));
}

/**
 * Whether to upload after the platform failed to read an image: there is no such file where it runs, and there is one
 * here. So it runs elsewhere, behind a tunnel or in a container. Or the token may not use files of the host.
 */
export function shouldUploadAfter(
  { error, details }: { error: string; details: Record<string, unknown> },
  { asked, here }: Omit<Situation, "apiUrl">,
): boolean {
  const refused = error === "permission_denied" && details.upload === true;
  return asked === undefined && here && (refused || (error === "not_found" && typeof details.path === "string"));
}

/** Whether an address is that of this machine. */
export function isLoopback(apiUrl: string): boolean {
  const { hostname } = URL.parse(apiUrl) ?? { hostname: "" };
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}
