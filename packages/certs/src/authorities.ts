/** Where certificates come from. */
/** The authorities with a name. Let's Encrypt's staging server has generous limits, and issues what no browser accepts. */
export const AUTHORITIES: Readonly<Record<string, string>> = {
  letsencrypt: "https://acme-v02.api.letsencrypt.org/directory",
  "letsencrypt-staging": "https://acme-staging-v02.api.letsencrypt.org/directory",
};

/** Returns the URL of an authority's directory from its name or URL. */
export function directoryUrl(authority: string): string {
  return AUTHORITIES[authority] ?? authority;
}
