/** Which service of another host takes what a client asks for. */
export const SERVICES = { http: "proxy", tcp: "tcp" } as const;
