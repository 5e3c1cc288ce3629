/** The strategies of a deploy, as Fly names them. Kept small, because every command loads it. */
export const STRATEGIES = ["rolling", "immediate", "canary", "bluegreen"] as const;
export type Strategy = (typeof STRATEGIES)[number];
